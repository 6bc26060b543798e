package model

import (
	"gdb/compute/program"
	"gdb/train/setting"
)

// sage is GraphSAGE (Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large
// Graphs"): h'(v) = W_self·h(v) + W_nbr·reduce(h(u): u in N(v)) + b, then ReLU but after the last
// layer. The mean, sum or largest of no neighbors is zero. Of columns of edges it takes the mean.
type sage struct{}

// Name returns "sage".
func (sage) Name() string { return "sage" }

func (sage) weighs() {}

func (sage) readsEdges() {}

// Layer appends a layer of GraphSAGE.
func (sage) Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value {
	in, out, at := s.in(l), s.Dims[l+1], layerName(l)
	self := b.Param(at+"self", in, out, program.Glorot)
	nbr := b.Param(at+"neighbors", in, out, program.Glorot)
	own, reduced := s.summed(b, l, s.drop(b, l, x), nbr)
	y := b.Add(b.MatMul(own, self), reduced)
	if n := len(s.EdgeFeatures); n > 0 {
		means := b.Pull(b.EdgeColumns(n, b.Lists()), b.Lists().OfEntries(), program.Mean)
		y = b.Add(y, b.MatMul(means, b.Param(at+"edges", n, out, program.Glorot)))
	}
	return s.finish(b, l, own, y, "relu")
}

func (sage) sum(b *program.Builder, s *Spec, x program.Value) program.Value {
	return s.pull(b, x, s.reduce(program.Mean))
}

func (sage) precomputed(_ *setting.Options, hops int) Precomputed { return firstSum(true, hops) }
