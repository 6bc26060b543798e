package model

import "gdb/compute/program"

// head appends what is computed of edges from the outputs x of their ends u and v: a perceptron
// with one hidden layer, as wide as x, over both rows and their product by columns,
// W·ReLU(A·x(u) + B·x(v) + C·(x(u)·x(v)) + b) + c.
func (s *Spec) head(b *program.Builder, x program.Value) program.Value {
	width := b.Cols(x)
	first, second := b.Lists().ToEnd(false), b.Lists().ToEnd(true)
	own, other := b.Pull(x, first, program.Sum), b.Pull(x, second, program.Sum)
	// A list has one entry here, so its weights multiply one row by another.
	both := b.PullWeighted(x, own, second, width, false)
	param := func(name string, in, out int) program.Value {
		return b.Param("head "+name, in, out, program.Glorot)
	}
	y := b.Add(b.MatMul(own, param("first", width, width)),
		b.MatMul(other, param("second", width, width)))
	y = b.Add(y, b.MatMul(both, param("both", width, width)))
	y = b.ReLU(b.Bias(y, b.Param("head bias", 1, width, program.Zero)))
	y = b.MatMul(b.Dropout(y, s.Dropout), param("outputs", width, s.EdgeOutputs))
	return b.Bias(y, b.Param("head outputs bias", 1, s.EdgeOutputs, program.Zero))
}
