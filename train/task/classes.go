package task

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gdb/compute/backend"
	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/internal/tables"
	"gdb/sample"
)

// Classes is node classification. Every node has one class, learned by softmax and cross-entropy;
// or with Multi any number of classes, each learned by a sigmoid and binary cross-entropy.
type Classes struct {
	Names []string
	Multi bool
	// Weights holds the weight of each class in the loss, see Balanced; it is empty if
	// classes have none.
	Weights backend.Tensor
	// Counts are the same weights in the host's memory; nil for none.
	Counts []float32
	// Thresholds holds, with Multi, the logit above which each label is predicted; nil is 0 for
	// all, a probability of one half. Of two classes it holds the log-odds above which each is.
	Thresholds []float32
	// Temperature divides logits before they become probabilities; 0 is 1. Predictions do not
	// depend on it.
	Temperature float64
}

// thresholdAt returns the threshold of a label.
func thresholdAt(thresholds []float32, label int) float32 {
	if thresholds == nil {
		return 0
	}
	return thresholds[label]
}

// balanceFloats bounds the labels that are read at a time.
const balanceFloats = 64 << 10

// Balanced returns the weights with which all classes count the same in the loss over some nodes.
// With one class for each node the weight is the number of labeled nodes, divided by the number of
// classes that occur and by the nodes of the class. With several classes it is the nodes without
// the class divided by the nodes with it, where that is known. A class that no node has, or with
// several classes every node, gets 1. It takes 24 bytes of memory for each class, and 256 KiB.
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

// Outputs returns the number of classes.
func (c *Classes) Outputs() int { return len(c.Names) }

// Counted returns the weights of the seeds' classes, or how many seeds have labels: with Multi all
// of them, if any label is known.
func (c *Classes) Counted(b *sample.Batch) (n float64) {
	if c.Multi {
		if !slices.ContainsFunc(b.Multi, func(v float32) bool { return v == v }) {
			return 0
		}
		return float64(len(b.Seeds))
	}
	for _, l := range b.Labels {
		switch {
		case l < 0:
		case c.Counts == nil:
			n++
		default:
			n += float64(c.Counts[l])
		}
	}
	return n
}

// Blank gives all seeds the first class, or with Multi no class.
func (c *Classes) Blank(b *sample.Batch) {
	if c.Multi {
		b.Multi = make([]float32, len(b.Seeds)*c.Outputs())
		return
	}
	b.Labels = make([]int32, len(b.Seeds))
}

// Remedy returns the advice to check the features.
func (c *Classes) Remedy() string { return "check the features for NaN and huge values" }

// TrainScore returns the micro-averaged F1, which for one class a node is the accuracy. It is 0
// where no label is predicted and none true.
func (c *Classes) TrainScore(_ string, sum *backend.Loss) float64 {
	f, _ := F1(sum.Hit, sum.Wrong, sum.Missed)
	return f
}

// LabelWords returns 1, or with Multi the number of classes.
func (c *Classes) LabelWords() int {
	if c.Multi {
		return c.Outputs()
	}
	return 1
}

// Labels returns the labels as they are.
func (c *Classes) Labels(b *sample.Batch) []uint32 {
	if c.Multi {
		return mem.View[uint32](mem.BytesOf(b.Multi))
	}
	for _, l := range b.Labels {
		bug.Check(int(l) < c.Outputs(), "label %d is not below the number of classes", l)
	}
	return mem.View[uint32](mem.BytesOf(b.Labels))
}

// Loss computes the loss of a batch and its gradient.
func (c *Classes) Loss(be backend.Backend, o Outputs, b *sample.Batch) {
	switch {
	case c.Multi && o.Labels.Rows > 0:
		labels := o.Labels.Flat().View(0, len(b.Seeds), c.Outputs())
		backend.SigmoidBCE(be, o.Grad, o.Logits, labels, c.Weights)
	case c.Multi:
		labels := be.Host(b.Multi, len(b.Seeds), c.Outputs())
		backend.SigmoidBCE(be, o.Grad, o.Logits, labels, c.Weights)
	case o.Labels.Rows > 0:
		backend.SoftmaxCrossEntropyOn(be, o.Grad, o.Logits, c.Weights, o.Labels)
	default:
		backend.SoftmaxCrossEntropy(be, o.Grad, o.Logits, c.Weights, b.Labels)
	}
}

// Predictions returns what writes the names of classes. With Multi these are joined by ';'.
func (c *Classes) Predictions(probabilities, integers bool) (Predictions, error) {
	p := &classPredictions{of: c, probabilities: probabilities, width: 1}
	sum := 0
	for _, name := range c.Names {
		n := utf8.RuneCountInString(name)
		p.width, sum = max(p.width, n), sum+n+1
		v, err := strconv.ParseInt(name, 10, 64)
		integers = integers && err == nil && strconv.FormatInt(v, 10) == name
		p.integers = append(p.integers, v)
	}
	if c.Multi {
		p.width = sum
	}
	if c.Multi || !integers {
		p.integers = nil
	}
	return p, nil
}

// classPredictions writes the names of predicted classes.
type classPredictions struct {
	of            *Classes
	probabilities bool
	width         int     // length of the longest prediction in characters
	integers      []int64 // numbers that the names spell; nil if names are written
	out           []float32
}

// Columns returns the column of predictions and, if asked for, p:LABEL for each class.
func (p *classPredictions) Columns() []tables.Column {
	all := []tables.Column{{Name: "prediction", Kind: tables.String, Width: p.width}}
	if p.integers != nil {
		all[0].Kind = tables.Int64
	}
	if p.probabilities {
		for _, name := range p.of.Names {
			all = append(all, tables.Column{Name: "p:" + name, Kind: tables.Float32})
		}
	}
	return all
}

// Write adds the prediction that logits make to a row.
func (p *classPredictions) Write(row tables.Writer, logits []float32) {
	if p.integers != nil {
		row.Int64(p.integers[p.of.predicted(logits)])
	} else {
		row.String(p.of.label(logits))
	}
	if p.probabilities {
		p.out = mem.Resized(p.out, len(logits))
		p.of.probabilities(p.out, logits)
		for _, v := range p.out {
			row.Float32(v)
		}
	}
}

// predicted returns the class with the largest logit or, of two with thresholds, the one above its.
func (c *Classes) predicted(logits []float32) int32 {
	switch {
	case c.Thresholds == nil:
		return argmax(logits)
	case logits[1]-logits[0] > c.Thresholds[1]:
		return 1
	}
	return 0
}

// label returns the name of the class that is predicted, or with Multi the names of all
// classes whose logits are above their thresholds.
func (c *Classes) label(logits []float32) string {
	if !c.Multi {
		return c.Names[c.predicted(logits)]
	}
	var names []string
	for k, v := range logits {
		if v > thresholdAt(c.Thresholds, k) {
			names = append(names, c.Names[k])
		}
	}
	return strings.Join(names, ";")
}

// probabilities writes the softmax of the logits to out, or with Multi their sigmoids.
func (c *Classes) probabilities(out, logits []float32) {
	scale := c.inverse()
	if c.Multi {
		for k, v := range logits {
			out[k] = float32(1 / (1 + math.Exp(-scale*float64(v))))
		}
		return
	}
	top, sum := float64(logits[argmax(logits)]), 0.0
	for _, v := range logits {
		sum += math.Exp(scale * (float64(v) - top))
	}
	for k, v := range logits {
		out[k] = float32(math.Exp(scale*(float64(v)-top)) / sum)
	}
}

// inverse returns what logits are multiplied by before they become probabilities.
func (c *Classes) inverse() float64 {
	if c.Temperature == 0 {
		return 1
	}
	return 1 / c.Temperature
}

// argmax returns the index of the largest value, the first of equal ones.
func argmax(x []float32) int32 {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return int32(best)
}
