package task

import "math"

// Surprise returns minus the logarithm of the probability that logits give a class, and writes its
// gradient: the cross-entropy with a label that says the class.
func (c *Classes) Surprise(class int, logits, gradient []float32) float64 {
	p := make([]float32, len(logits))
	c.probabilities(p, logits)
	if c.Multi {
		gradient[class] = p[class] - 1
		return math.Log1p(math.Exp(-float64(logits[class])))
	}
	copy(gradient, p)
	gradient[class]--
	top, sum := float64(logits[argmax(logits)]), 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	return math.Log(sum) + top - float64(logits[class])
}
