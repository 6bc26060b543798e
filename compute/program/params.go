package program

import (
	"math"

	"gdb/compute/backend"
	"gdb/internal/rng"
)

// paramAlign keeps each parameter at a cache line: a multiple of 16 floats.
const paramAlign = 16

// initDomain keeps the keys of initial weights apart from other draws.
const initDomain = 0x696e6974 // "init"

// Init is how a parameter begins.
type Init uint8

// The ways to begin.
const (
	// Glorot is uniform in ±sqrt(6/(rows+cols)) (Glorot and Bengio, "Understanding the difficulty
	// of training deep feedforward neural networks").
	Glorot Init = iota
	Zero
	One
	// Statistics are not learned: they are of the columns of batches, their means, which begin as
	// 0, and then their variances, which begin as 1.
	Statistics
)

// paramShape is one parameter of a model: a matrix in the vector of all parameters.
type paramShape struct {
	name       string
	rows, cols int
	off        int
	init       Init
	parts      []int // heights of the matrices that it is a stack of; nil for one
}

// Params are the parameters of a model and their gradients, each in one vector, so that the
// optimizer and the checkpoint see two arrays whatever the model is. Statistics come last, after
// all that is learned. The gaps of alignment hold zeros, in the gradients too.
type Params struct {
	// W and G are the values and their gradients, vectors of Total values; G is for training only.
	W, G       backend.Tensor
	Total      int
	statistics int // values of Total
	shapes     []paramShape
}

// add appends a parameter, or finds it by its name, and returns its number: a program that is built
// again names the same ones.
func (p *Params) add(name string, rows, cols int, init Init, parts ...int) int {
	for i, s := range p.shapes {
		if s.name == name && s.rows == rows && s.cols == cols {
			return i
		}
	}
	p.shapes = append(p.shapes, paramShape{name: name, rows: rows, cols: cols, init: init,
		parts: parts})
	p.Total = 0
	p.place(func(i Init) bool { return i != Statistics })
	learned := p.Total
	p.place(func(i Init) bool { return i == Statistics })
	p.statistics = p.Total - learned
	return len(p.shapes) - 1
}

// place gives parameters that begin in some ways their places, after those that have one.
func (p *Params) place(which func(Init) bool) {
	for i := range p.shapes {
		if s := &p.shapes[i]; which(s.init) {
			s.off = p.Total
			p.Total += (s.rows*s.cols + paramAlign - 1) / paramAlign * paramAlign
		}
	}
}

// Learned returns the part of a vector of Total values that is learned.
func (p *Params) Learned(x backend.Tensor) backend.Tensor {
	return x.View(0, 1, p.Total-p.statistics)
}

// Count returns the number of values, statistics among them.
func (p *Params) Count() (n int) {
	for _, s := range p.shapes {
		n += s.rows * s.cols
	}
	return n
}

// Allocate makes the memory once all parameters are added; without grads it is for inference.
func (p *Params) Allocate(be backend.Backend, grads bool) (err error) {
	if p.W, err = be.Params("weights", p.Total); err != nil || !grads {
		return err
	}
	p.G, err = be.Params("gradients", p.Total)
	return err
}

// Names returns the names of all parameters.
func (p *Params) Names() (names []string) {
	for _, s := range p.shapes {
		names = append(names, s.name)
	}
	return names
}

// Each calls fn with the name of each parameter, its shape and its place in a vector of Total
// values.
func (p *Params) Each(fn func(name string, rows, cols, off int)) {
	for _, s := range p.shapes {
		fn(s.name, s.rows, s.cols, s.off)
	}
}

// Weight and Grad are the views of parameter i.
func (p *Params) Weight(i int) backend.Tensor {
	s := p.shapes[i]
	return p.W.View(s.off, s.rows, s.cols)
}

// Grad returns the gradient of parameter i.
func (p *Params) Grad(i int) backend.Tensor {
	s := p.shapes[i]
	return p.G.View(s.off, s.rows, s.cols)
}

// Init draws the weights. Each value is a function of the seed, its parameter and its place.
func (p *Params) Init(be backend.Backend, seed uint64) {
	w := make([]float32, p.Total)
	for i, s := range p.shapes {
		values := w[s.off : s.off+s.rows*s.cols]
		switch s.init {
		case One:
			fill(values, 1)
		case Statistics:
			fill(values[len(values)/2:], 1)
		case Glorot:
			draw := rng.NewStream(rng.Key(initDomain, seed, uint64(i)))
			if s.parts == nil {
				s.parts = []int{s.rows}
			}
			for _, rows := range s.parts {
				limit := math.Sqrt(6 / float64(rows+s.cols))
				for k := range rows * s.cols {
					values[k] = float32((2*draw.Float64() - 1) * limit)
				}
				values = values[rows*s.cols:]
			}
		}
	}
	be.Write(p.W, w)
}

func fill(values []float32, v float32) {
	for i := range values {
		values[i] = v
	}
}
