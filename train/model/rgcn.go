package model

import (
	"fmt"
	"slices"

	"gdb/compute/program"
)

// rgcn is the relational graph convolution of Schlichtkrull and others ("Modeling Relational Data
// with Graph Convolutional Networks"): h'(v) = W_self·h(v) + sum over relations r of W_r·mean(h(u):
// u in N_r(v)) + b, then ReLU but after the last layer. Relations are the types of edges, and their
// matrices are sums of a few bases: W_r = sum(a(r,b)·V_b). With types of nodes b is one for each
// type, and so are W_self and V_b in the first layer, where they read as many features as a type
// has.
//
// Bases are computed like heads: the sum over relations is one weighted sum over a list, in which
// an entry of relation r has the weight a(r,b), divided by the number of entries of r in the list.
type rgcn struct{}

// basesDefault is the number of bases where the option is 0 and there are at least as
// many relations.
const basesDefault = 8

// Name returns "rgcn".
func (rgcn) Name() string { return "rgcn" }

func (rgcn) notByLayers() string {
	return "takes means over the edges of each type, and how many a whole list has of a type is " +
		"not known of what is drawn"
}

func (rgcn) typed() {}

func (rgcn) typedOnHost() {}

// Check returns an error for options that rgcn does not have.
func (rgcn) Check(s *Spec) error {
	switch {
	case s.Aggregate != "" && s.Aggregate != "auto" && s.Aggregate != "mean":
		return fmt.Errorf("aggregate %s: rgcn takes the mean over each relation: leave it out",
			s.Aggregate)
	case s.Bases < 0:
		return fmt.Errorf("bases %d: give at least 1", s.Bases)
	case s.Relations > 0 && s.Bases > s.Relations:
		return fmt.Errorf("bases %d: edges have %d types, and more bases than these learn nothing "+
			"more", s.Bases, s.Relations)
	}
	return nil
}

// bases returns the number of bases.
func (s *Spec) bases() int {
	if s.Bases == 0 {
		return min(basesDefault, s.relations())
	}
	return s.Bases
}

// relations returns the number of types of edges; 1 until the store is known.
func (s *Spec) relations() int { return max(1, s.Relations) }

// Layer appends a layer of R-GCN.
func (rgcn) Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value {
	out, n := s.Dims[l+1], s.bases()
	x = s.drop(b, l, x)
	self := s.firstByType(b, l, "self", b.Own(x), true, out)
	if b.Exact && s.relationsOfSource() < n {
		return s.finish(b, l, b.Own(x), b.Add(self, s.composed(b, l, x, n)), "relu")
	}
	messages := s.firstByType(b, l, "bases", x, false, n*out)
	coefficients := b.Param(layerName(l)+"coefficients", s.relations(), n, program.Glorot)
	weights := b.RowScale(b.TypeRows(coefficients), b.TypeShares())
	y := b.Scale(b.HeadMean(b.PullWeighted(messages, weights, b.Lists(), n, false), n), float32(n))
	return s.finish(b, l, b.Own(x), b.Add(self, y), "relu")
}

// composed appends what whole lists give to a layer: the sum over relations of the mean over each,
// times the relation's matrix, which is composed of the bases. It is for graphs where nodes of a
// type are sources of fewer relations than there are bases.
func (s *Spec) composed(b *program.Builder, l int, x program.Value, n int) program.Value {
	parts, firsts := slices.Repeat([]int{b.Cols(x)}, s.relations()), make([]int, s.relations())
	name, out := layerName(l)+"bases", s.Dims[l+1]
	var bases program.Value
	if l > 0 || len(s.NodeTypes) < 2 {
		bases = b.Param(name, b.Cols(x), n*out, program.Glorot)
	} else {
		heights := s.typeParts(l)
		bases, parts = b.Stack(name, heights, n*out), s.relationParts(l)
		for r, source := range s.Sources() {
			for _, rows := range heights[:source] {
				firsts[r] += rows
			}
		}
	}
	coefficients := b.Param(layerName(l)+"coefficients", s.relations(), n, program.Glorot)
	w := b.Compose(coefficients, bases, parts, firsts)
	return b.PullWeighted(b.RelationMatMul(x, w, parts), b.TypeShares(), b.Lists(), 1, false)
}
