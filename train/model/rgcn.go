package model

import (
	"fmt"

	"gdb/compute/program"
)

// rgcn is the relational graph convolution of Schlichtkrull and others ("Modeling Relational Data
// with Graph Convolutional Networks"): h'(v) = W_self·h(v) + sum over relations r of W_r·mean(h(u):
// u in N_r(v)) + b, then ReLU but after the last layer. Relations are the types of edges, and
// their matrices are sums of a few bases: W_r = sum(a(r,b)·V_b).
//
// With heads for bases, the sum over relations is one weighted sum over a list, in which an entry
// of relation r counts a(r,b) for each of the list's entries of r.
type rgcn struct{}

// basesDefault is the number of bases, if there are so many relations.
const basesDefault = 8

// Name is rgcn.
func (rgcn) Name() string { return "rgcn" }

func (rgcn) notByLayers() string {
	return "takes means over the edges of each type, and how many a whole list has of a type is " +
		"not known of what is drawn"
}

// Check refuses what has no meaning.
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

// bases is the number of bases.
func (s *Spec) bases() int {
	if s.Bases == 0 {
		return min(basesDefault, s.relations())
	}
	return s.Bases
}

// relations is the number of types of edges; before the store is known, any.
func (s *Spec) relations() int { return max(1, s.Relations) }

// Layer is a layer of R-GCN.
func (rgcn) Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value {
	in, out, at, n := s.Dims[l], s.Dims[l+1], layerName(l), s.bases()
	self := b.Param(at+"self", in, out, program.Glorot)
	bases := b.Param(at+"bases", in, n*out, program.Glorot)
	coefficients := b.Param(at+"coefficients", s.relations(), n, program.Glorot)
	x = s.drop(b, l, x)
	weights := b.RowScale(b.TypeRows(coefficients), b.TypeShares())
	y := b.PullWeighted(b.MatMul(x, bases), weights, b.Lists(), n, false)
	y = b.Scale(b.HeadMean(y, n), float32(n))
	return s.finish(b, l, b.Own(x), b.Add(b.MatMul(b.Own(x), self), y), "relu")
}
