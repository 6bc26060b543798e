package model

import (
	"fmt"
	"slices"
	"strings"

	"gdb/compute/program"
	"gdb/train/setting"
)

// Spec says what model to make: an architecture, its widths and its options.
type Spec struct {
	// Architecture is one of those that Find returns.
	Architecture
	// Dims holds the widths of the input and of each layer's output.
	Dims []int
	// Dropout is the share of values dropped before each layer in training.
	Dropout float32
	// Order is the order of aggregation and product for all batches, one bit for each of
	// Model.Places: set where the product comes first. nil takes for each batch the order that
	// costs less. Tune says that the order will be measured, so memory must be enough for any.
	Order *uint64
	Tune  bool
	// DrawnByWeight says that neighbors are drawn by the weights of their edges.
	DrawnByWeight bool
	// DrawnLatest says that batches have the latest neighbors of nodes, and not all.
	DrawnLatest bool
	// Precomputed is what was computed before the training. Dims[0] is the width of an
	// input with it.
	Precomputed Precomputed
	// Half computes products and sums over lists in bfloat16, and expects features in it: see
	// program.Options.
	Half bool
	// FuseAttention computes attention in one operation: see program.Options.
	FuseAttention bool
	// LayerWise says that neighbors are drawn for all nodes of a hop together. Entries of lists
	// then have weights with which sums over what is drawn estimate sums over whole lists.
	LayerWise bool
	// EdgeOutputs is the number of values that are computed for each edge, where seeds are edges:
	// the last of Dims then is the width of their ends, which a head reads. 0 is for nodes.
	EdgeOutputs int
	// Explain has the model multiply messages with Step.Mask: see Explaining.
	Explain bool
	// Halo says that batches have nodes outside memory, whose hidden states are known from earlier
	// steps: see program.Halo.
	Halo bool
	// KeepFeatures has steps leave the features of a batch as they are, for others who read it.
	KeepFeatures bool
	setting.Options
}

// Architecture makes the layers of models.
type Architecture interface {
	// Name returns the name that --model gives the architecture.
	Name() string
	// Layer appends layer l, from 0. It reads x, the rows of Builder.Lists, and returns a row for
	// each node that has a list.
	Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value
}

// architectures lists all that there are. A new one is added here.
var architectures = []Architecture{sage{}, gcn{}, gat{}, gatv2{}, gin{}, sgc{}, mlp{}, rgcn{},
	hsage{}, hgt{}, rgat{}}

// Names returns the names of all architectures.
func Names() (names []string) {
	for _, a := range architectures {
		names = append(names, a.Name())
	}
	return names
}

// Find returns the architecture of a name.
func Find(name string) (Architecture, error) {
	i := slices.IndexFunc(architectures, func(a Architecture) bool { return a.Name() == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown model %q; known: %s", name, strings.Join(Names(), ", "))
	}
	return architectures[i], nil
}

// Widths returns the widths of the input and of each layer's output, given those of the
// hidden layers.
func Widths(a Architecture, in, classes int, hidden []int) []int {
	if w, ok := a.(interface {
		Widths(in, classes int, hidden []int) []int
	}); ok {
		return w.Widths(in, classes, hidden)
	}
	return append(append([]int{in}, hidden...), classes)
}

// Layers returns the number of layers.
func (s *Spec) Layers() int { return len(s.Dims) - 1 }

// build appends all layers.
func (s *Spec) build(b *program.Builder, x program.Value) program.Value {
	x = s.buildTo(b, x, s.Layers())
	if s.EdgeOutputs > 0 {
		x = s.head(b, x)
	}
	return x
}

// buildHidden appends all layers but the last.
func (s *Spec) buildHidden(b *program.Builder, x program.Value) program.Value {
	return s.buildTo(b, x, s.Layers()-1)
}

// buildTo appends the first layers.
func (s *Spec) buildTo(b *program.Builder, x program.Value, layers int) program.Value {
	for l := range layers {
		x = s.Layer(b, s, l, x)
		if s.readsLists(l) {
			b.Next()
		}
		if s.Halo && l < layers-1 {
			x = b.Known(x, l)
		}
	}
	return x
}

// last reports whether layer l is the last.
func (s *Spec) last(l int) bool { return l == s.Layers()-1 }

// HalfFeatures reports whether the input is bfloat16. An input with learned vectors is not.
func (s *Spec) HalfFeatures() bool { return s.Half && s.NodeEmbedding == 0 }

// options returns the options of a program of the whole model.
func (s *Spec) options(train, inPlace bool) program.Options {
	return program.Options{Layers: s.Hops(), Features: s.Dims[0], Train: train, InPlace: inPlace,
		InputGrad: s.NodeEmbedding > 0, Half: s.Half, HalfFeatures: s.HalfFeatures(),
		FuseAttention: s.FuseAttention, Sparse: s.SparseWords, Cut: len(s.TypeWidths) > 0,
		Explain: s.Explain && !train, KeepFeatures: s.KeepFeatures}
}
