// Package model has the architectures of graph neural networks. An architecture is a file: it
// counts what its models take before any memory is taken, makes them, and each model computes a
// mini-batch forward and backward, and one layer at a time over whole neighbor lists.
package model

import (
	"fmt"
	"slices"
	"strings"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/train/backend"
)

// Architecture makes models, and says what they take. dims are the widths of the input and of each
// layer's output. All methods are functions of their arguments.
type Architecture interface {
	// Name is what --model calls it.
	Name() string
	// New returns a model in the memory of a backend, for training or only for inference. What it
	// holds beside that is counted in budget, which may be nil.
	New(be backend.Backend, dims []int, training bool, budget *mem.Budget) (Model, error)
	// Params counts the values of all parameters.
	Params(dims []int) int
	// StepFloats counts the scratch of a training step on a mini-batch, and the entries of the
	// lists that it makes, if what layers compute were grown. inPlace says that the rows of the
	// first layer's neighbors are read where they are kept.
	StepFloats(dims []int, d *sample.Dense, inPlace bool,
		grown func(n int64) int64) (floats, lists int64)
	// ProductBytes is the scratch memory of the products of a step by so many threads.
	ProductBytes(dims []int, threads int) int64
	// DroppedBytes is that of reading rows in place with dropout, of at most fanout neighbors.
	DroppedBytes(dims []int, threads, fanout int) int64
	// InPlace says whether the first layer may average features where they are kept.
	InPlace(dims []int) bool
	// TransformsFirst says whether a layer, over whole neighbor lists, averages rows that were
	// transformed before, and not its inputs.
	TransformsFirst(dims []int, layer int) bool
}

// Model is a network with its parameters. It is for one goroutine.
type Model interface {
	// Architecture is what the model was made by, and Dims are its widths.
	Architecture() Architecture
	Dims() []int
	// Params are the parameters and, in training, their gradients.
	Params() *Params
	// Forward computes the logits (seeds, classes) of a mini-batch, from the features x of its
	// nodes. They, and all that Backward needs, are valid until the backend's next Begin. x is
	// changed: results are put there. The error is of the host's memory, not of the device: see
	// backend.Backend.Err.
	Forward(d *sample.Dense, x []float32, s Step) (backend.Tensor, error)
	// Logits are those of the last Forward, and GradLogits is where their gradient goes before
	// Backward.
	Logits() backend.Tensor
	GradLogits() backend.Tensor
	// Backward computes the gradients of all parameters from that of the logits.
	Backward(s Step)
	// Layer is a layer by its number, from 0, to be computed over whole neighbor lists.
	Layer(i int) Layer
}

// Step describes a forward pass over a mini-batch.
type Step struct {
	// Seed, Epoch and Batch are what dropout is a function of, beside layer and position.
	Seed, Epoch, Batch uint64
	// Dropout is the share of values dropped before each layer, in training.
	Dropout float32
	// Train keeps what Backward needs, and drops out.
	Train bool
	// Table is features of which layer 0 reads Rows, one for each neighbor, in place: x then has
	// its outputs' rows only. It is empty if there are none. See sample.Batch.
	Table backend.Tensor
	Rows  []uint32
}

// Layer computes one layer exactly, for some nodes at a time. Tensors are of the backend's current
// step.
type Layer interface {
	// Transform computes the rows that are averaged from inputs, where the layer transforms first.
	Transform(x backend.Tensor) backend.Tensor
	// Output computes the outputs of nodes from their own inputs x and the means over their
	// neighbors: of inputs, or of what Transform gave.
	Output(x, mean backend.Tensor) backend.Tensor
}

// architectures are those of this version.
var architectures = []Architecture{SAGE{}}

// Names are the names of all architectures.
func Names() (names []string) {
	for _, a := range architectures {
		names = append(names, a.Name())
	}
	return names
}

// Find returns an architecture by name.
func Find(name string) (Architecture, error) {
	i := slices.IndexFunc(architectures, func(a Architecture) bool { return a.Name() == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown model %q; known: %s", name, strings.Join(Names(), ", "))
	}
	return architectures[i], nil
}
