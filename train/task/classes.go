package task

import (
	"math"
	"strings"

	"gdb/sample"
	"gdb/train/backend"
	"gdb/train/model"
)

// Classes is node classification: every node has one class, by softmax and cross-entropy, or with
// Multi any number of them, each by a sigmoid and binary cross-entropy.
type Classes struct {
	Names []string
	Multi bool

	logits []float32 // of a step, to be counted
}

// Outputs is the number of classes.
func (c *Classes) Outputs() int { return len(c.Names) }

// Loss computes the loss of a mini-batch.
func (c *Classes) Loss(be backend.Backend, m model.Model, logits backend.Tensor,
	b *sample.Batch) (o Outcome, err error) {
	if !c.Multi {
		var right int
		o.Loss, right, o.Rows = be.SoftmaxCrossEntropy(m.GradLogits(), logits, b.Labels)
		o.Hit = uint64(right)
		o.Wrong, o.Missed = uint64(o.Rows-right), uint64(o.Rows-right)
		return o, nil
	}
	o.Rows = len(b.Seeds)
	targets, err := be.Host(b.Multi, o.Rows, c.Outputs())
	if err != nil {
		return o, err
	}
	c.countStep(be, logits, b.Multi, &o)
	o.Loss = be.SigmoidBCE(m.GradLogits(), logits, targets)
	return o, nil
}

// countStep counts what the logits of a step predict.
func (c *Classes) countStep(be backend.Backend, logits backend.Tensor, truth []float32,
	o *Outcome) {
	n := c.Outputs()
	counts := newCounts(n)
	c.logits = sized(c.logits, logits.Len())
	be.Read(c.logits, logits)
	for i := range o.Rows {
		counts.multi(c.logits[i*n:(i+1)*n], truth[i*n:(i+1)*n])
	}
	for k := range n {
		o.Hit += counts.hit[k]
		o.Wrong += counts.wrong[k]
		o.Missed += counts.missed[k]
	}
}

// Label names the class of the largest logit, or all classes of positive ones.
func (c *Classes) Label(logits []float32) string {
	if !c.Multi {
		return c.Names[argmax(logits)]
	}
	var names []string
	for k, v := range logits {
		if v > 0 {
			names = append(names, c.Names[k])
		}
	}
	return strings.Join(names, ";")
}

// Probabilities computes the softmax of logits, or their sigmoids for multi-labels.
func (c *Classes) Probabilities(out, logits []float32) {
	if c.Multi {
		for k, v := range logits {
			out[k] = float32(1 / (1 + math.Exp(-float64(v))))
		}
		return
	}
	top, sum := float64(logits[argmax(logits)]), 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	for k, v := range logits {
		out[k] = float32(math.Exp(float64(v)-top) / sum)
	}
}

// argmax is the first largest.
func argmax(x []float32) int32 {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return int32(best)
}

// sized returns s with room for n values, which may be any.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/8)
	}
	return s[:n]
}
