package kernel

import "math"

// softmaxRow writes factor times the softmax of x to out. It returns the largest value and the
// sum of exp(x-largest).
func softmaxRow(o *ops, out, x []float32, factor float32) (largest, sum float32) {
	largest = o.rowMax(x)
	sum = o.expSum(out, x, largest)
	o.scale(out, factor/sum)
	return largest, sum
}

// argmax returns the position of the largest value: the first of equal ones.
func argmax(x []float32) int {
	best := 0
	for j, v := range x {
		if v > x[best] {
			best = j
		}
	}
	return best
}

// lossPart sums one part of a loss; parts are added in order.
type lossPart struct {
	loss    float64
	correct int
}

// SoftmaxCrossEntropy returns the mean, over the rows whose label is not negative, of
// -log(softmax(logits)[label]), how many such rows there are (counted) and in how many of them the
// label has the largest logit (correct). It writes the gradient of the mean to grad(rows,n), which
// may be logits: zero in the other rows. If no row counts, the loss is 0 and means nothing: look
// at counted first. A label that is not below n panics.
func SoftmaxCrossEntropy(p *Pool, grad, logits []float32, labels []int32, rows, n int) (
	loss float64, correct, counted int) {
	return crossEntropy(p, grad, logits, nil, labels[:rows], n)
}

// WeightedCrossEntropy is SoftmaxCrossEntropy where a row counts as the weight of its label says:
// the mean is the weighted sum by the sum of the weights, which must be positive.
func WeightedCrossEntropy(p *Pool, grad, logits, weights []float32, labels []int32, n int) (
	loss float64, correct, counted int) {
	return crossEntropy(p, grad, logits, weights[:n], labels, n)
}

// crossEntropy is either, of a row for each label; weights are nil for none.
func crossEntropy(p *Pool, grad, logits, weights []float32, labels []int32, n int) (
	loss float64, correct, counted int) {
	rows := len(labels)
	grad, logits = grad[:rows*n], logits[:rows*n]
	total := 0.0 // of the weights of the rows that count
	for _, l := range labels {
		if int(l) >= n {
			panic("BUG: a label is not below the number of classes")
		}
		if l >= 0 {
			counted++
			total += float64(weightOf(weights, l))
		}
	}
	if counted == 0 {
		total = 1
	}
	size := rowsPart(n)
	parts := make([]lossPart, partsOf(rows, size))
	o, share := level(), 1/float32(total)
	p.Span(rows, size, func(lo, hi int) {
		var sum lossPart
		for i := lo; i < hi; i++ {
			sum.row(o, rowOf(grad, i, n), rowOf(logits, i, n), labels[i],
				weightOf(weights, labels[i]), share)
		}
		parts[lo/size] = sum
	})
	for _, s := range parts {
		loss, correct = loss+s.loss, correct+s.correct
	}
	return loss / total, correct, counted
}

// weightOf returns the weight of a label; 1 without weights.
func weightOf(weights []float32, label int32) float32 {
	if weights == nil || label < 0 {
		return 1
	}
	return weights[label]
}

// row adds one row of some weight to the loss, and writes its gradient, of which share is what a
// weight of 1 has in the mean.
func (s *lossPart) row(o *ops, grad, logits []float32, label int32, weight, share float32) {
	if label < 0 {
		clear(grad)
		return
	}
	own := logits[label] // before grad, which may be logits, is written
	if argmax(logits) == int(label) {
		s.correct++
	}
	largest, sum := softmaxRow(o, grad, logits, weight*share)
	grad[label] -= weight * share
	s.loss += float64(weight) * (math.Log(float64(sum)) - float64(own-largest))
}

// SigmoidBCE returns the mean, over the values whose target is not NaN, of the binary cross-entropy
// between sigmoid(logits) and targets, both (rows,n), and writes its gradient to grad, which may be
// logits: zero for the other values. If all targets are NaN, the loss is 0.
func SigmoidBCE(p *Pool, grad, logits, targets []float32, rows, n int) float64 {
	total := rows * n
	grad, logits, targets = grad[:total], logits[:total], targets[:total]
	if total == 0 {
		return 0
	}
	known := max(1, knownTargets(targets))
	weight := 1 / float32(known)
	o, part := level(), sigmoidPart
	if known < total {
		part = maskedPart
	}
	return p.total(total, flatPart, func(lo, hi int) float64 {
		return part(o, grad[lo:hi], logits[lo:hi], targets[lo:hi], weight)
	}) / float64(known)
}

// knownTargets returns how many targets are not NaN.
func knownTargets(targets []float32) int {
	known := len(targets)
	for _, t := range targets {
		if t != t {
			known--
		}
	}
	return known
}

// maskedPart is sigmoidPart where some targets may be NaN.
func maskedPart(o *ops, grad, logits, targets []float32, weight float32) (loss float64) {
	var of, truth, out [64]float32
	var at [64]int
	for lo := 0; lo < len(logits); lo += len(of) {
		n := 0
		for i := lo; i < min(lo+len(of), len(logits)); i++ {
			if t := targets[i]; t == t {
				of[n], truth[n], at[n] = logits[i], t, i
				n++
			}
			grad[i] = 0
		}
		loss += sigmoidPart(o, out[:n], of[:n], truth[:n], weight)
		for k, i := range at[:n] {
			grad[i] = out[k]
		}
	}
	return loss
}

// sigmoidPart sums max(x,0) - x·t + log(1+exp(-|x|)), the form that cannot overflow. The
// logarithms of up to 64 factors in (1,2] are taken at once.
func sigmoidPart(o *ops, grad, logits, targets []float32, weight float32) (loss float64) {
	var exps [64]float32
	for lo := 0; lo < len(logits); lo += len(exps) {
		hi := min(lo+len(exps), len(logits))
		e := exps[:hi-lo]
		for i, x := range logits[lo:hi] {
			e[i] = -max(x, -x)
		}
		o.expSum(e, e, 0)
		product := 1.0
		for i, x := range logits[lo:hi] {
			t := targets[lo+i]
			probability := 1 / (1 + e[i])
			if x < 0 {
				probability = e[i] / (1 + e[i])
			}
			product *= 1 + float64(e[i])
			loss += float64(max(x, 0) - x*t)
			grad[lo+i] = (probability - t) * weight
		}
		loss += math.Log(product)
	}
	return loss
}

// WeightedBCE is SigmoidBCE of rows with a column for each of positive, where a target of 1 counts
// as the weight of its column says; the mean is by the number of values whose target is not NaN.
func WeightedBCE(p *Pool, grad, logits, targets, positive []float32, rows int) float64 {
	n := len(positive)
	total := rows * n
	grad, logits, targets = grad[:total], logits[:total], targets[:total]
	share := 1 / float64(max(1, knownTargets(targets)))
	return share * p.total(total, flatPart, func(lo, hi int) (sum float64) {
		for i := lo; i < hi; i++ {
			x, t, weight := float64(logits[i]), float64(targets[i]), 1.0
			switch {
			case t > 0:
				weight = float64(positive[i%n])
			case t != t:
				grad[i] = 0
				continue
			}
			e := math.Exp(-math.Abs(x))
			probability := 1 / (1 + e)
			if x < 0 {
				probability = e / (1 + e)
			}
			sum += weight * (max(x, 0) - x*t + math.Log1p(e))
			grad[i] = float32(weight * (probability - t) * share)
		}
		return sum
	})
}

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
