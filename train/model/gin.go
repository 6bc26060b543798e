package model

import (
	"gdb/compute/program"
	"gdb/train/setting"
)

// gin is the graph isomorphism network of Xu and others ("How Powerful are Graph Neural
// Networks?"), with ε = 0: h'(v) = W_2·ReLU(W_1·(h(v) + sum(h(u): u in N(v))) + b_1) + b_2, then
// ReLU but after the last layer.
type gin struct{}

// Name returns "gin".
func (gin) Name() string { return "gin" }

func (gin) weighs() {}

// Layer appends a layer of GIN.
func (gin) Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value {
	in, out, at := s.in(l), s.Dims[l+1], layerName(l)
	inner := out
	if s.last(l) { // classes may be few
		inner = in
	}
	first := b.Param(at+"weights 1", in, inner, program.Glorot)
	bias := b.Param(at+"bias 1", 1, inner, program.Zero)
	second := b.Param(at+"weights 2", inner, out, program.Glorot)
	own, y := s.summed(b, l, s.drop(b, l, x), first)
	y = b.MatMul(b.ReLU(b.Bias(y, bias)), second)
	return s.finish(b, l, own, y, "relu")
}

func (gin) sum(b *program.Builder, s *Spec, x program.Value) program.Value {
	return b.Add(s.pull(b, x, s.reduce(program.Sum)), b.Own(x))
}

func (gin) precomputed(o *setting.Options, hops int) Precomputed {
	return firstSum(o.Residual,
		hops)
}
