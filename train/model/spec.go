package model

import (
	"fmt"
	"slices"
	"strings"

	"gdb/compute/program"
	"gdb/train/setting"
)

// Spec says which model is made: an architecture, its widths and its options.
type Spec struct {
	// Architecture is one that Find knows.
	Architecture
	// Dims are the widths of the input and of each layer's output.
	Dims []int
	// Dropout is the share of values dropped before each layer, in training.
	Dropout float32
	// Order is the order of aggregation and product of all batches, a bit for each of
	// Model.Places: set where the product comes first. nil is, for each batch, what its sizes make
	// the cheaper one. Tune says that it will be measured, so that memory must do for any.
	Order *uint64
	Tune  bool
	// DrawnByWeight says that the neighbors of batches are drawn by the weights of their edges.
	DrawnByWeight bool
	// DrawnLatest says that batches have the latest neighbors of nodes, and not all.
	DrawnLatest bool
	// Precomputed is what was computed before, of which Dims[0] is the width.
	Precomputed Precomputed
	// Half computes products and sums over lists in bfloat16, and takes features so: see
	// program.Options.
	Half bool
	// LayerWise says that they are drawn for all nodes of a hop together, and that entries of lists
	// have a weight by which sums over what is drawn estimate those over whole lists.
	LayerWise bool
	setting.Options
}

// Architecture makes the layers of models.
type Architecture interface {
	// Name is what --model calls it.
	Name() string
	// Layer appends layer l, from 0, which reads x: the rows of Builder.Lists. What it returns are
	// those of the nodes that have lists.
	Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value
}

// architectures are those of this version.
var architectures = []Architecture{sage{}, gcn{}, gat{}, gatv2{}, gin{}, sgc{}, mlp{}, rgcn{}}

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

// Widths are the widths of the input and of each layer's output, for hidden layers of such widths.
func Widths(a Architecture, in, classes int, hidden []int) []int {
	if w, ok := a.(interface {
		Widths(in, classes int, hidden []int) []int
	}); ok {
		return w.Widths(in, classes, hidden)
	}
	return append(append([]int{in}, hidden...), classes)
}

// Layers is the number of layers.
func (s *Spec) Layers() int { return len(s.Dims) - 1 }

// build appends all layers.
func (s *Spec) build(b *program.Builder, x program.Value) program.Value {
	for l := range s.Layers() {
		x = s.Layer(b, s, l, x)
		if s.readsLists(l) {
			b.Next()
		}
	}
	return x
}

// last says whether a layer is the last.
func (s *Spec) last(l int) bool { return l == s.Layers()-1 }

// HalfFeatures says whether the input is of bfloat16: one with learned vectors is not.
func (s *Spec) HalfFeatures() bool { return s.Half && s.NodeEmbedding == 0 }

// options are those of a program of the whole model.
func (s *Spec) options(train, inPlace bool) program.Options {
	return program.Options{Layers: s.Hops(), Features: s.Dims[0], Train: train, InPlace: inPlace,
		InputGrad: s.NodeEmbedding > 0, Half: s.Half, HalfFeatures: s.HalfFeatures()}
}
