package model

import (
	"gdb/compute/program"
	"gdb/train/setting"
)

// sgc is the simplified graph convolution of Wu and others ("Simplifying Graph Convolutional
// Networks"): the features are propagated once for each layer, as in gcn, and then multiplied by W.
type sgc struct{}

// Name returns "sgc".
func (sgc) Name() string { return "sgc" }

func (sgc) weighs() {}

// Check returns an error for options that gcn does not have either.
func (sgc) Check(s *Spec) error { return gcn{}.Check(s) }

// Widths returns the width of the features for all but the last layer.
func (sgc) Widths(in, classes int, hidden []int) []int {
	dims := []int{in}
	for range hidden {
		dims = append(dims, in)
	}
	return append(dims, classes)
}

// Layer appends a propagation, and in the last layer the product.
func (sgc) Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value {
	if l == 0 {
		x = s.drop(b, l, x)
	}
	_, y := s.inputs(b, l, x)
	if !s.last(l) {
		return y
	}
	w := b.Param("weights", s.Dims[0], s.Dims[l+1], program.Glorot)
	return b.Bias(b.MatMul(y, w), b.Param("bias", 1, s.Dims[l+1], program.Zero))
}

func (sgc) sum(b *program.Builder, s *Spec, x program.Value) program.Value {
	return s.propagate(b, x)
}

// precomputed returns all sums, because everything that is learned comes after the last sum.
func (sgc) precomputed(_ *setting.Options, hops int) Precomputed {
	return Precomputed{Hops: hops, First: hops}
}
