package model

import "gdb/train/backend"

// wholeLayer is a layer of GraphSAGE over whole neighbor lists.
type wholeLayer struct {
	m     *sage
	index int
}

// Layer is layer i, from 0.
func (m *sage) Layer(i int) Layer { return wholeLayer{m, i} }

// Transform multiplies inputs with the neighbor weights.
func (l wholeLayer) Transform(x backend.Tensor) backend.Tensor {
	w := l.m.p.weight(l.m.layers[l.index].nbr)
	y := l.m.be.Scratch(x.Rows, w.Cols)
	l.m.be.MatMul(y, x, w, false)
	return y
}

// Output computes W_self·x + W_nbr·mean + b, and ReLU but after the last layer; mean went through
// Transform where the layer transforms first.
func (l wholeLayer) Output(x, mean backend.Tensor) backend.Tensor {
	m, layer := l.m, &l.m.layers[l.index]
	y := m.be.Scratch(x.Rows, m.dims[l.index+1])
	m.be.MatMul(y, x, m.p.weight(layer.self), false)
	if (SAGE{}).TransformsFirst(m.dims, l.index) {
		m.be.Add(y, mean)
	} else {
		m.be.MatMul(y, mean, m.p.weight(layer.nbr), true)
	}
	if l.index == len(m.layers)-1 {
		m.be.Bias(y, m.p.weight(layer.bias))
	} else {
		m.be.BiasReLU(y, m.p.weight(layer.bias))
	}
	return y
}
