package kernel

import "math"

// ErrorLoss is what an error of a predicted number costs.
type ErrorLoss uint8

// The losses of an error e: e², |e|, and e²/2 up to 1, |e|-1/2 beyond.
const (
	SquaredError ErrorLoss = iota
	AbsoluteError
	HuberError
)

// Errors are sums over predicted numbers.
type Errors struct {
	Loss, Squared, Absolute float64
	Counted                 int // of predictions whose target is a number
}

// Regression sums the losses of outputs against targets, but for those whose target is NaN, and
// writes the gradient of their mean to grad, which may be outputs: zero where there is no target.
func Regression(p *Pool, kind ErrorLoss, grad, outputs, targets []float32) (sum Errors) {
	n := len(targets)
	grad, outputs = grad[:n], outputs[:n]
	for _, t := range targets {
		if t == t {
			sum.Counted++
		}
	}
	parts, weight := make([]Errors, partsOf(n, flatPart)), 1/float32(max(1, sum.Counted))
	p.Span(n, flatPart, func(lo, hi int) {
		parts[lo/flatPart].add(kind, grad[lo:hi], outputs[lo:hi], targets[lo:hi], weight)
	})
	for _, s := range parts {
		sum.Loss, sum.Squared = sum.Loss+s.Loss, sum.Squared+s.Squared
		sum.Absolute += s.Absolute
	}
	return sum
}

// add sums a part and writes its gradient.
func (s *Errors) add(kind ErrorLoss, grad, outputs, targets []float32, weight float32) {
	for i, t := range targets {
		if t != t {
			grad[i] = 0
			continue
		}
		e := outputs[i] - t
		size := math.Abs(float64(e))
		square := size * size
		s.Squared, s.Absolute = s.Squared+square, s.Absolute+size
		switch {
		case kind == SquaredError:
			s.Loss += square
			grad[i] = 2 * e * weight
		case kind == HuberError && size <= 1:
			s.Loss += square / 2
			grad[i] = e * weight
		case kind == HuberError:
			s.Loss += size - 0.5
			grad[i] = signOf(e) * weight
		default:
			s.Loss += size
			grad[i] = signOf(e) * weight
		}
	}
}

// signOf is -1, 0 or 1; NaN stays NaN.
func signOf(x float32) float32 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}
