// Package model has the architectures of graph neural networks. An architecture is a file with a
// function that builds a layer as a program of graph operations (package program): all else, the
// backward pass, memory, and evaluation over whole lists, is derived from it.
package model

import (
	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/internal/dense"
	"gdb/internal/mem"
)

// Model is a network with its parameters. It is for one goroutine.
type Model struct {
	spec    *Spec
	be      backend.Backend
	params  program.Params
	machine *program.Machine

	programs programs
	bounds   program.Bounds // of batches, for a device that groups
	exact    []*program.ExactLayer
}

// Step describes a forward pass over a mini-batch.
type Step struct {
	// Seed, Epoch and Batch are what dropout is a function of, beside layer and position.
	Seed, Epoch, Batch uint64
	// Train keeps what Backward needs, and drops out.
	Train bool
	// Table is features of which layer 0 reads Rows, one for each neighbor, in place: x then has
	// its outputs' rows only. It is empty if there are none. See sample.Batch.
	Table backend.Tensor
	Rows  []uint32
	// Input puts the features of all nodes together on the device, in the place of x; nil where x
	// has them. See program.Input.
	Input func(rows int) backend.Tensor
}

// New returns a model in the memory of a backend, for training or only for inference. What it holds
// beside that is counted in budget, which may be nil.
func New(be backend.Backend, s *Spec, training bool, budget *mem.Budget) (*Model, error) {
	m := &Model{spec: s, be: be, programs: programs{spec: s}}
	m.programs.params = &m.params
	program.Make(&m.params, s.build, s.options(false, false)) // adds the parameters
	m.machine = program.NewMachine(be, &m.params, budget)
	m.exact = s.exactLayersOf(&m.params)
	return m, m.params.Allocate(be, training)
}

// Spec is what the model was made by, and Dims are its widths.
func (m *Model) Spec() *Spec { return m.spec }

// Dims are the widths of the input and of each layer's output.
func (m *Model) Dims() []int { return m.spec.Dims }

// Params are the parameters and, in training, their gradients.
func (m *Model) Params() *program.Params { return &m.params }

// Forward computes the logits (seeds, classes) of a mini-batch, from the features x of its nodes.
// They, and all that Backward needs, are valid until the backend's next Begin. x is changed:
// results are put there. The error is of the host's memory, not of the device: see
// backend.Backend.Err.
func (m *Model) Forward(d *dense.Lists, x []float32, s Step) (backend.Tensor, error) {
	sizes := program.SizesOf(d)
	p := m.programs.choose(s.Train, s.Table.Rows > 0, &sizes)
	in := program.Input{Dense: d, X: x, Features: s.Input, Table: s.Table, Rows: s.Rows,
		Degrees: d.Degrees, Seed: s.Seed, Epoch: s.Epoch, Batch: s.Batch}
	if s.Train && m.be.About().Groups && p.Pads() {
		in.Padded = m.bounds.Fit(&sizes)
	}
	return m.machine.Forward(p, in)
}

// Places is how many places there are at which aggregation and product may change their order.
func (m *Model) Places() int { return m.programs.get(programKey{train: true}).Places() }

// GradLogits is where the gradient of the last Forward's logits goes before Backward.
func (m *Model) GradLogits() backend.Tensor { return m.machine.GradLogits() }

// GradInput is the gradient of the input after Backward, where vectors of nodes are learned.
func (m *Model) GradInput() backend.Tensor { return m.machine.GradInput() }

// Backward computes the gradients of all parameters from that of the logits.
func (m *Model) Backward() { m.machine.Backward() }

// Machine computes the layers that ExactLayer returns.
func (m *Model) Machine() *program.Machine { return m.machine }

// ExactLayer is a layer by its number, from 0, to be computed over whole neighbor lists.
func (m *Model) ExactLayer(l int) *program.ExactLayer { return m.exact[l] }

// ExactLayers cuts all layers for whole neighbor lists, to see what they take.
func (s *Spec) ExactLayers() []*program.ExactLayer { return s.exactLayersOf(&program.Params{}) }

// exactLayersOf cuts all layers.
func (s *Spec) exactLayersOf(params *program.Params) (all []*program.ExactLayer) {
	for l := range s.Layers() {
		layer := func(b *program.Builder, x program.Value) program.Value {
			if !s.readsLists(l) {
				x = b.Own(x)
			}
			return s.Layer(b, s, l, x)
		}
		all = append(all, program.MakeExactLayer(params, layer, s.Dims[l], s.Half))
	}
	return all
}
