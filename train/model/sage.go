package model

import (
	"fmt"

	"gdb/train/program"
)

// sage is GraphSAGE with mean aggregation (Hamilton, Ying and Leskovec, "Inductive Representation
// Learning on Large Graphs"): h'(v) = W_self·h(v) + W_nbr·mean(h(u): u in N(v)) + b, then ReLU but
// after the last layer. The mean of no neighbors is zero.
type sage struct{}

// Name is sage.
func (sage) Name() string { return "sage" }

// Layer is a layer of GraphSAGE.
func (sage) Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value {
	in, out, at := s.Dims[l], s.Dims[l+1], fmt.Sprintf("layer %d ", l+1)
	self := b.Param(at+"self", in, out, program.Glorot)
	nbr := b.Param(at+"neighbors", in, out, program.Glorot)
	bias := b.Param(at+"bias", 1, out, program.Zero)
	x = b.Dropout(x, s.Dropout)
	mean := b.Pull(x, b.Lists(), program.Mean)
	y := b.Add(b.MatMul(b.Own(x), self), b.MatMul(mean, nbr))
	y = b.Bias(y, bias)
	if s.last(l) {
		return y
	}
	return b.ReLU(y)
}
