package model

import (
	"fmt"
	"strings"

	"gdb/compute/program"
	"gdb/train/setting"
)

// Precomputed says what is computed from the features before a training, with Options.Precompute.
// Sums over whole lists with no parameters before them are the same in each step (the preprocessing
// of PaGraph, section 5.2). A node's input then consists of its features and the sums, as far as
// the model reads them. The zero value says that nothing is precomputed.
type Precomputed struct {
	// Hops is the number of consecutive sums, and Sampled how many hops batches still have.
	Hops, Sampled int
	// First is the first part that an input has: part 0 is the features, part k the k-th sum, and
	// part Hops the last.
	First int
}

// Parts returns how many parts an input has.
func (a Precomputed) Parts() int { return a.Hops - a.First + 1 }

// summer is an architecture whose layers begin with a sum without parameters.
type summer interface {
	// sum appends the sum of a layer, over rows x.
	sum(b *program.Builder, s *Spec, x program.Value) program.Value
	// precomputed returns what is computed before a training that would otherwise sample
	// that many hops.
	precomputed(o *setting.Options, hops int) Precomputed
}

// PrecomputedOf returns what is computed before the training of an architecture that would
// otherwise sample that many hops.
func PrecomputedOf(a Architecture, o *setting.Options, hops int) Precomputed {
	if s, ok := a.(summer); ok && o.Precompute {
		return s.precomputed(o, hops)
	}
	return Precomputed{}
}

// firstSum returns what is computed before the training of an architecture with one sum in each
// layer: the first sum. own says that the layer reads the nodes' own features beside it.
func firstSum(own bool, hops int) Precomputed {
	a := Precomputed{Hops: 1, Sampled: hops - 1, First: 1}
	if own {
		a.First = 0
	}
	return a
}

// checkPrecompute returns an error if precomputing is asked for and the model does not allow it.
func (s *Spec) checkPrecompute() error {
	if !s.Precompute {
		return nil
	}
	if _, ok := s.Architecture.(summer); !ok {
		var names []string
		for _, a := range architectures {
			if _, ok := a.(summer); ok {
				names = append(names, a.Name())
			}
		}
		return fmt.Errorf("precompute: %s weighs neighbors by what it learns, so nothing is known "+
			"before: %s can", s.Name(), strings.Join(names, ", "))
	}
	if s.NodeEmbedding > 0 {
		return fmt.Errorf("precompute: node-embedding %d: vectors of nodes change with each step, "+
			"so their sums are not known before: leave one of the two out", s.NodeEmbedding)
	}
	return nil
}

// Hops returns how many hops batches have.
func (s *Spec) Hops() int {
	if s.Precomputed.Hops > 0 {
		return s.Precomputed.Sampled
	}
	return s.Layers()
}

// readsLists reports whether a layer reads lists of a batch.
func (s *Spec) readsLists(l int) bool {
	return s.Precomputed.Hops == 0 || l > 0 && s.Precomputed.Sampled > 0
}

// inputs returns what layer l computes from: the rows x of its nodes, and the sums
// over their lists.
func (s *Spec) inputs(b *program.Builder, l int, x program.Value) (own, sum program.Value) {
	if s.readsLists(l) {
		return b.Own(x), s.Architecture.(summer).sum(b, s, x)
	}
	n := s.in(l)
	return b.Columns(x, 0, n), b.Columns(x, b.Cols(x)-n, n)
}

// summed returns what inputs does, with the sums multiplied by w: of sparse rows the product comes
// first, which is the same.
func (s *Spec) summed(b *program.Builder, l int, x, w program.Value) (own, y program.Value) {
	if l == 0 && s.SparseWords > 0 && s.Aggregate != "max" {
		return b.Own(x), s.Architecture.(summer).sum(b, s, b.MatMul(x, w))
	}
	own, sum := s.inputs(b, l, x)
	return own, b.MatMul(sum, w)
}

// TakesSparse reports whether all that reads the features can read sparse rows.
func (s *Spec) TakesSparse() bool {
	takes := program.Make(&program.Params{}, s.build, s.options(true, false)).Sparse()
	for l, layer := range s.ExactLayers() {
		takes = takes && (l > 0 || layer.Sparse())
	}
	return takes
}

// in returns how many columns of the input of layer l are the node's own, and as many belong to
// each of its sums.
func (s *Spec) in(l int) int {
	if l == 0 {
		return s.Dims[0] / max(1, s.Precomputed.Parts())
	}
	return s.Dims[l]
}

// Sums returns a model that computes one of the sums that are precomputed for s. Its output has the
// same width as its input.
func (s *Spec) Sums() *Spec {
	of := *s
	of.Options.Precompute, of.Precomputed = false, Precomputed{}
	return &Spec{Architecture: sums{&of}, Dims: []int{s.in(0), s.in(0)}, Options: of.Options}
}

// sums is the architecture of a model without parameters, whose layers are the sums of
// another model.
type sums struct{ of *Spec }

// Name returns the name of that other model.
func (a sums) Name() string { return a.of.Name() }

// Layer appends a sum.
func (a sums) Layer(b *program.Builder, _ *Spec, _ int, x program.Value) program.Value {
	return a.of.Architecture.(summer).sum(b, a.of, x)
}
