package model

import "gdb/train/program"

// mlp is a perceptron of the nodes' own features: what a graph is worth shows beside it.
type mlp struct{}

// Name is mlp.
func (mlp) Name() string { return "mlp" }

// Layer is a product and an activation.
func (mlp) Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value {
	w := b.Param(layerName(l)+"weights", s.Dims[l], s.Dims[l+1], program.Glorot)
	x = s.drop(b, l, x)
	return s.finish(b, l, x, b.MatMul(b.Own(x), w), "relu")
}
