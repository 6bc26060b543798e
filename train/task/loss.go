package task

import (
	"math"

	"gdb/compute/backend"
)

// lossSum sums a loss over evaluated values: nodes, or for multi-labels the labels of nodes. Class
// weights do not count in it.
type lossSum struct {
	sum    float64
	values uint64
}

// add counts one value.
func (l *lossSum) add(loss float64) {
	l.sum += loss
	l.values++
}

// Loss returns the mean loss; ErrNothing where no label was seen.
func (l *lossSum) Loss() (float64, error) {
	if l.values == 0 {
		return 0, ErrNothing
	}
	return l.sum / float64(l.values), nil
}

// crossEntropy returns -log(softmax(logits)[label]).
func crossEntropy(logits []float32, label int32) float64 {
	largest, sum := float64(logits[argmax(logits)]), 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - largest)
	}
	return math.Log(sum) + largest - float64(logits[label])
}

// binaryCrossEntropy returns the loss of a logit whose label is set or not, in the form that cannot
// overflow.
func binaryCrossEntropy(logit, truth float32) float64 {
	x := float64(logit)
	return max(x, 0) - x*float64(truth) + math.Log1p(math.Exp(-math.Abs(x)))
}

// errorLoss returns what an error costs, in deviations of the labels: see kernel.Regression.
func errorLoss(kind backend.ErrorLoss, e float64) float64 {
	size := math.Abs(e)
	switch {
	case kind == backend.AbsoluteError:
		return size
	case kind == backend.HuberError && size > 1:
		return size - 0.5
	case kind == backend.HuberError:
		return e * e / 2
	}
	return e * e
}
