package model

import (
	"fmt"
	"slices"

	"gdb/compute/program"
)

// hsage is GraphSAGE for typed graphs: a SAGE for each relation, summed up, as PyG's HeteroConv of
// SAGEConvs is (Schlichtkrull and others, "Modeling Relational Data with Graph Convolutional
// Networks", section 2.1, without bases): h'(v) = W_t·h(v) + sum over relations r of W_r·mean(h(u):
// u in N_r(v)) + b_t, t being the type of v, then ReLU but after the last layer. Relations are the
// types of edges. The first layer reads of the features of a type as many as it has. Without types
// of nodes W_t and b_t are the same for all.
//
// A list falls into segments, the neighbors by one relation, whose means are rows by themselves: a
// product multiplies each with the matrix of its relation, and adds to the row of its node. Whole
// lists have a mean by each relation side by side. Columns of edges stand beside those of the
// neighbor: means are taken of each.
type hsage struct{}

// Name returns "hsage".
func (hsage) Name() string { return "hsage" }

func (hsage) notByLayers() string { return rgcn{}.notByLayers() }

func (hsage) onHost() {}

func (hsage) readsEdges() {}

// Check returns an error for options that hsage does not have.
func (hsage) Check(s *Spec) error {
	if s.Aggregate != "" && s.Aggregate != "auto" && s.Aggregate != "mean" {
		return fmt.Errorf("aggregate %s: hsage takes the mean over each relation: leave it out",
			s.Aggregate)
	}
	return nil
}

func (hsage) typed() {}

// Layer appends a layer of hsage.
func (hsage) Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value {
	parts, out := s.relationParts(l), s.Dims[l+1]
	relations := b.Stack(layerName(l)+"relations", parts, out)
	x = s.drop(b, l, x)
	own := b.Own(x)
	y := s.byType(b, l, "self", own, b.Own(b.NodeTypes()), out)
	if slices.Max(parts) > 0 { // else no source of an edge has features
		y = b.Add(y, s.byRelation(b, x, relations, parts))
	}
	if n := len(s.EdgeFeatures); n > 0 {
		parts := slices.Repeat([]int{n}, s.relations())
		lists := b.Lists()
		means := b.Pull(b.EdgeColumns(n, lists), lists.ToSegments().OfEntries(), program.Mean)
		y = b.Add(y, b.SegmentMatMul(means, b.Stack(layerName(l)+"edges", parts, out), parts))
	}
	return s.finish(b, l, own, y, "relu")
}

// relationsMost is for how many relations of a type of nodes rows are kept at most.
const relationsMost = 8

// byRelation appends the sum over relations of the mean over each, times the relation's matrix. Of
// whole lists the products come first where that makes sums narrower: a row for each relation that
// a node is a source of.
func (s *Spec) byRelation(b *program.Builder, x, stack program.Value, parts []int) program.Value {
	lists := b.Lists()
	if !b.Exact {
		means := b.Pull(x, lists.ToSegments(), program.Mean)
		return b.SegmentMatMul(means, stack, parts)
	}
	n, in := len(parts), b.Cols(x)
	if most := s.relationsOfSource(); most <= relationsMost && most*b.Cols(stack) < n*in {
		rows := b.RelationMatMul(x, stack, parts)
		return b.PullWeighted(rows, b.TypeShares(), lists, 1, false)
	}
	means, y := b.PullWeighted(x, b.SharesByType(n), lists, n, true), program.Value(0)
	for r, rows := range parts {
		if rows == 0 { // sources without features
			continue
		}
		part := b.MatMul(b.Columns(means, r*in, rows), b.Part(stack, parts, r))
		if y == 0 {
			y = part
			continue
		}
		y = b.Add(y, part)
	}
	return y
}
