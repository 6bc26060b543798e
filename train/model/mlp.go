package model

import (
	"gdb/compute/program"
	"gdb/train/setting"
)

// mlp is a perceptron of the nodes' own features: what a graph is worth shows beside it. With
// Precompute they are those, and the features of 1, 2, … hops, propagated as in gcn: SIGN (Frasca
// and others, "SIGN: Scalable Inception Graph Neural Networks") with one matrix for all.
type mlp struct{}

// Name is mlp.
func (mlp) Name() string { return "mlp" }

// Layer is a product and an activation.
func (mlp) Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value {
	w := b.Param(layerName(l)+"weights", s.Dims[l], s.Dims[l+1], program.Glorot)
	x = s.drop(b, l, x)
	if s.readsLists(l) {
		x = b.Own(x)
	}
	return s.finish(b, l, x, b.MatMul(x, w), "relu")
}

func (mlp) sum(b *program.Builder, s *Spec, x program.Value) program.Value {
	return s.propagate(b, x)
}

func (mlp) precomputed(_ *setting.Options, hops int) Precomputed { return Precomputed{Hops: hops} }
