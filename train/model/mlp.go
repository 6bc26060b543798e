package model

import (
	"gdb/compute/program"
	"gdb/train/setting"
)

// mlp is a perceptron over each node's own features, to compare with: it shows what the graph adds.
// With Precompute it reads the features of the node and those of 1, 2, … hops, propagated as in
// gcn: this is SIGN (Frasca and others, "SIGN: Scalable Inception Graph Neural Networks") with one
// matrix for all.
type mlp struct{}

// Name returns "mlp".
func (mlp) Name() string { return "mlp" }

// Layer appends a product and an activation.
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
