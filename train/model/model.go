// Package model has the architectures of graph neural networks. An architecture is a file with
// a function that builds a layer as a program of graph operations (package program).
// Everything else is derived from it: the backward pass, the memory that a step takes, and
// evaluation over whole lists.
package model

import (
	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/compute/program"
	"gdb/internal/dense"
	"gdb/internal/mem"
	"gdb/sample"
)

// Model is a network with its parameters. It may be used by one goroutine.
type Model struct {
	spec    *Spec
	be      backend.Backend
	params  program.Params
	machine *program.Machine

	programs programs
	padding  *Padding // of batches in training; nil for none
	exact    []*program.ExactLayer
}

// Seed, Epoch and Batch determine which values dropout drops, together with layer and position.
type Step struct {
	// Seed, Epoch and Batch are what dropout is a function of, beside layer and position.
	Seed, Epoch, Batch uint64
	// Train applies dropout and keeps what Backward needs.
	Train bool
	// Table holds features of which the first layer reads Rows in place, one for each neighbor. x
	// then has only the rows of the nodes that the layer computes. Table is empty if nothing is
	// read in place. See sample.Batch.
	Table backend.Tensor
	Rows  []uint32
	// Cut says where Table has the rows of nodes, if these are in pieces: instead of Rows.
	Cut kernel.Cut
	// Nodes are the batch's nodes, for a model that has matrices for types of nodes.
	Nodes []sample.NodeID
	// Input assembles the features of all nodes on the device, instead of x; nil where x has them.
	// See program.Input.
	Input backend.Assemble
	// Hidden leaves out the last layer: what Forward returns are states of the one before it.
	Hidden bool
	// Halo is what is known of nodes outside memory, where Spec.Halo says that there are some.
	Halo *program.Halo
	// Mask has a number for each entry of the batch's lists, where Spec.Explain is set.
	Mask []float32
	// Prepared is what Prepare made of the batch, with the same step; nil where nobody has.
	Prepared *program.Prepared
}

// ReadTable has the step read rows where a batch says that they are kept, if it does.
func (s *Step) ReadTable(be backend.Backend, b *sample.Batch) {
	dim := b.Dim
	switch {
	case b.Table == nil:
		return
	case b.TablePieces != nil:
		dim = b.TableDim
		s.Cut = kernel.Cut{Off: b.TablePieces, At: b.TableRows, Dim: dim}
	default:
		s.Rows = b.TableRows
	}
	s.Table = be.Table(b.Table, len(b.Table)/dim, dim)
}

// New returns a model whose parameters are in the memory of a backend, for training or only for
// inference. What it takes besides is counted in budget, which may be nil.
func New(be backend.Backend, s *Spec, training bool, budget *mem.Budget) (*Model, error) {
	m := &Model{spec: s, be: be, programs: programs{spec: s}}
	m.programs.params = &m.params
	program.Make(&m.params, s.build, s.options(false, false)) // adds the parameters
	m.machine = program.NewMachine(be, &m.params, budget)
	m.exact = s.exactLayersOf(&m.params)
	return m, m.params.Allocate(be, training)
}

// Spec returns the specification that the model was made from.
func (m *Model) Spec() *Spec { return m.spec }

// Dims returns the widths of the input and of each layer's output.
func (m *Model) Dims() []int { return m.spec.Dims }

// Params returns the parameters and, in training, their gradients.
func (m *Model) Params() *program.Params { return &m.params }

// Forward computes the logits (seeds, classes) of a batch from the features x of its nodes. The
// logits, and all that Backward needs, are valid until the backend's next Begin. Forward overwrites
// x with results. The error is about the host's memory; for the device see backend.Backend.Err.
func (m *Model) Forward(d *dense.Lists, x []float32, s Step) (backend.Tensor, error) {
	in := program.Input{Dense: d, X: x, Features: s.Input, Table: s.Table, Rows: s.Rows,
		Cut: s.Cut, Mask: s.Mask,
		Nodes: mem.View[uint32](mem.BytesOf(s.Nodes)), Types: m.spec.NodeTypes,
		Halo: s.Halo, Degrees: d.Degrees, Seed: s.Seed, Epoch: s.Epoch, Batch: s.Batch}
	batch := s.Prepared
	if batch == nil {
		var err error
		if batch, err = m.machine.Prepare(m.programFor(&in, s), &in); err != nil {
			return backend.Tensor{}, err
		}
	}
	return m.machine.Forward(batch, in)
}

// Room is room in a batch that is prepared: for Places numbers for each row of features, and for
// words of Labels. See program.Prepared.
type Room struct{ Places, Labels int }

// Prepare prepares a batch for a Forward on a device that trains, or does not, beside steps: it may
// be called from any goroutine. room says for what else there is room beside lists.
func (m *Model) Prepare(to *program.Prepared, d *dense.Lists, train bool, room Room) error {
	in := program.Input{Dense: d, Degrees: d.Degrees, Places: room.Places, Labels: room.Labels}
	return to.Prepare(m.programFor(&in, Step{Train: train}), &in, m.be.Device())
}

// Pad has batches be padded from now on, in training, where the model allows it; nil pads none.
func (m *Model) Pad(p *Padding) { m.padding = p }

// programFor returns the program for a batch, and writes its sizes and those that it is padded to.
func (m *Model) programFor(in *program.Input, s Step) *program.Program {
	in.Sizes = program.SizesOf(in.Dense)
	p := m.programs.choose(programKey{train: s.Train, hidden: s.Hidden,
		inPlace: in.Table.Rows > 0}, &in.Sizes)
	if s.Train && m.padding != nil && p.Pads() {
		in.Padded = m.padding.Fit(&in.Sizes)
	}
	return p
}

// Places returns the number of places where aggregation and product may exchange their order.
func (m *Model) Places() int { return m.programs.get(programKey{train: true}).Places() }

// GradLogits returns the tensor into which the gradient of the last Forward's logits is written
// before Backward.
func (m *Model) GradLogits() backend.Tensor { return m.machine.GradLogits() }

// GradInput returns the gradient of the input after Backward, where vectors of nodes are learned.
func (m *Model) GradInput() backend.Tensor { return m.machine.GradInput() }

// Backward computes the gradients of all parameters from the gradient of the logits.
func (m *Model) Backward() { m.machine.Backward() }

// Machine returns the machine that computes the layers which ExactLayer returns.
func (m *Model) Machine() *program.Machine { return m.machine }

// ExactLayer returns layer l, from 0, in the form that is computed over whole neighbor lists.
func (m *Model) ExactLayer(l int) *program.ExactLayer { return m.exact[l] }

// SampledOnly reports whether the model is computed from batches alone, and has no ExactLayers: it
// reads columns of edges.
func (s *Spec) SampledOnly() bool { return len(s.EdgeFeatures) > 0 }

// ExactLayers returns all layers in the form that is computed over whole neighbor lists, without
// parameters, to find out what they take.
func (s *Spec) ExactLayers() []*program.ExactLayer { return s.exactLayersOf(&program.Params{}) }

// exactLayersOf returns all layers in that form, with parameters in params.
func (s *Spec) exactLayersOf(params *program.Params) (all []*program.ExactLayer) {
	if s.SampledOnly() {
		return nil
	}
	for l := range s.Layers() {
		words := 0
		if l == 0 {
			words = s.SparseWords
		}
		layer := func(b *program.Builder, x program.Value) program.Value {
			if !s.readsLists(l) {
				x = b.Own(x)
			}
			return s.Layer(b, s, l, x)
		}
		all = append(all, program.MakeExactLayer(params, layer, s.Dims[l], s.Half, words))
	}
	return all
}
