package task

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gdb/compute/backend"
	"gdb/sample"
)

// Classes is node classification: every node has one class, by softmax and cross-entropy, or with
// Multi any number of them, each by a sigmoid and binary cross-entropy.
type Classes struct {
	Names []string
	Multi bool
	// Weights of the classes in the loss, see Balanced; no values for none.
	Weights backend.Tensor
	// Thresholds are the logits above which a label of several is predicted; nil is 0 for all, a
	// probability of one half.
	Thresholds []float32
}

// thresholdAt is that of a label.
func thresholdAt(thresholds []float32, label int) float32 {
	if thresholds == nil {
		return 0
	}
	return thresholds[label]
}

// balanceFloats bounds the labels that are read at a time.
const balanceFloats = 64 << 10

// Balanced are the weights by which all classes count the same in the loss over some nodes: for one
// class a node, the labeled nodes by the number of classes that some have and by the nodes of the
// class; for several, of each the nodes without it by those with it, where that is known. A class
// that none has, or all, has 1. Memory: 24 bytes a class, and 256 KiB.
func Balanced(ctx context.Context, labels *sample.Labels, nodes []sample.NodeID) ([]float32,
	error) {
	counts, weights := make([]uint64, labels.Classes()), make([]float32, labels.Classes())
	unknown := make([]uint64, labels.Classes())
	labeled, present := uint64(0), 0
	chunk := max(1, balanceFloats/max(1, labels.Classes()))
	var b sample.Batch
	for first := 0; first < len(nodes); first += chunk {
		b.Seeds = nodes[first:min(first+chunk, len(nodes))]
		if err := labels.Fill(ctx, &b); err != nil {
			return nil, fmt.Errorf("read labels: %w", err)
		}
		for _, l := range b.Labels {
			if l >= 0 {
				counts[l]++
				labeled++
			}
		}
		for i, set := range b.Multi {
			switch {
			case set > 0:
				counts[i%len(counts)]++
			case set != set:
				unknown[i%len(counts)]++
			}
		}
	}
	for _, n := range counts {
		if n > 0 {
			present++
		}
	}
	for k, n := range counts {
		without := uint64(len(nodes)) - unknown[k] - n
		switch weights[k] = 1; {
		case n == 0 || labels.Multi() && without == 0:
		case labels.Multi():
			weights[k] = float32(float64(without) / float64(n))
		default:
			weights[k] = float32(float64(labeled) / (float64(present) * float64(n)))
		}
	}
	return weights, nil
}

// Outputs is the number of classes.
func (c *Classes) Outputs() int { return len(c.Names) }

// Labeled is how many seeds have labels: with Multi all of them, if any label is known.
func (c *Classes) Labeled(b *sample.Batch) (n int) {
	if c.Multi {
		if !slices.ContainsFunc(b.Multi, func(v float32) bool { return v == v }) {
			return 0
		}
		return len(b.Seeds)
	}
	for _, l := range b.Labels {
		if l >= 0 {
			n++
		}
	}
	return n
}

// Blank gives all seeds the first class, or none of several.
func (c *Classes) Blank(b *sample.Batch) {
	if c.Multi {
		b.Multi = make([]float32, len(b.Seeds)*c.Outputs())
		return
	}
	b.Labels = make([]int32, len(b.Seeds))
}

// Remedy is about the features.
func (c *Classes) Remedy() string { return "check the features for NaN and huge values" }

// TrainScore is F1: accuracy for one class a node. No label predicted nor true is a 0 of no weight.
func (c *Classes) TrainScore(_ string, sum *backend.Loss) float64 {
	f, _ := F1(sum.Hit, sum.Wrong, sum.Missed)
	return f
}

// Loss computes the loss of a mini-batch.
func (c *Classes) Loss(be backend.Backend, grad, logits backend.Tensor,
	b *sample.Batch) {
	if c.Multi {
		targets := be.Host(b.Multi, len(b.Seeds), c.Outputs())
		backend.SigmoidBCE(be, grad, logits, targets, c.Weights)
		return
	}
	backend.SoftmaxCrossEntropy(be, grad, logits, c.Weights, b.Labels)
}

// Label names the class of the largest logit, or all classes of those over their thresholds.
func (c *Classes) Label(logits []float32) string {
	if !c.Multi {
		return c.Names[argmax(logits)]
	}
	var names []string
	for k, v := range logits {
		if v > thresholdAt(c.Thresholds, k) {
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
