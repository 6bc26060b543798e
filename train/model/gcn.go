package model

import (
	"errors"

	"gdb/compute/program"
	"gdb/train/setting"
)

// gcn is the graph convolution of Kipf and Welling ("Semi-Supervised Classification with Graph
// Convolutional Networks"): h'(v) = W·sum(h(u)/sqrt((1+d(u))(1+d(v))): u in N(v) and v) + b, then
// ReLU but after the last layer; d are in-degrees in the whole graph. With --aggregate mean, each
// of N(v) and v counts 1/(1+d(v)). With --edge-weight, d are sums of weights, and h(u) counts the
// weight of its edge to v times.
type gcn struct{}

// Name returns "gcn".
func (gcn) Name() string { return "gcn" }

func (gcn) weighs() {}

// Check returns an error for options that gcn does not have.
func (gcn) Check(s *Spec) error {
	if s.Aggregate == "max" {
		return errors.New("aggregate max: gcn has sum (symmetric) and mean; sage has max")
	}
	return nil
}

// Layer appends a layer of GCN.
func (gcn) Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value {
	w := b.Param(layerName(l)+"weights", s.in(l), s.Dims[l+1], program.Glorot)
	own, y := s.summed(b, l, s.drop(b, l, x), w)
	return s.finish(b, l, own, y, "relu")
}

func (gcn) sum(b *program.Builder, s *Spec, x program.Value) program.Value {
	return s.propagate(b, x)
}

func (gcn) precomputed(o *setting.Options, hops int) Precomputed {
	return firstSum(o.Residual,
		hops)
}

// propagate appends the product of x with the normalized adjacency matrix, self loops included.
func (s *Spec) propagate(b *program.Builder, x program.Value) program.Value {
	degrees := b.Degrees()
	if s.EdgeWeight {
		degrees = b.WeightDegrees()
	}
	norm := b.Own(degrees)
	squared := b.RowScale(norm, norm)
	if s.Aggregate == "mean" && (s.EdgeWeight || s.estimates(b)) { // (sum + x)/(weights+1)
		y := b.RowScale(s.pull(b, x, program.Sum), squared)
		return b.Add(y, b.RowScale(b.Own(x), squared))
	}
	if s.Aggregate == "mean" { // of n neighbors and the node itself: (n·mean + x)/(n+1)
		y := b.RowScale(b.Pull(x, b.Lists(), program.Mean), b.Scale(b.Shift(squared, -1), -1))
		return b.Add(y, b.RowScale(b.Own(x), squared))
	}
	if !s.estimates(b) {
		norm = b.RowScale(norm, b.ListScale())
	}
	weights := b.Product(degrees, norm, b.Lists())
	if s.EdgeWeight || s.estimates(b) {
		weights = b.RowScale(weights, b.EdgeWeights())
	}
	y := b.PullWeighted(x, weights, b.Lists(), 1, false)
	return b.Add(y, b.RowScale(b.Own(x), squared))
}
