package model

import (
	"fmt"
	"slices"

	"gdb/compute/program"
)

// rgat is relational graph attention (Busbridge and others, "Relational Graph Attention Networks"),
// with additive scores and a softmax across relations: for each head, h'(v) = sum(a(u,v)·W_r·h(u):
// u in N(v), by whatever relation r), where a(u,v) is the softmax over u of LeakyReLU(a_r·W_r·h(u)
// + b_r·W_r·h(v)). Relations are the types of edges. Heads stand side by side, and are averaged in
// the last layer; W_t·h(v) is added, t being the type of v, and ELU comes but after the last layer.
// The first layer begins with a product by type and ReLU to the width of the layers between, so
// that W_r reads rows of both ends.
//
// The rows of a segment, which are of one relation, are weighed and summed up before their product
// with W_r; and scores are products of rows with a_r·W_r, which are made once in a step.
type rgat struct{}

// Name returns "rgat".
func (rgat) Name() string { return "rgat" }

func (rgat) notByLayers() string { return softmaxOfSome }

func (rgat) onHost() {}

func (rgat) typed() {}

// Check returns an error for options that rgat does not have.
func (rgat) Check(s *Spec) error {
	if s.Aggregate != "" && s.Aggregate != "auto" {
		return fmt.Errorf("aggregate %s: rgat weighs neighbors by what it learns: leave it out",
			s.Aggregate)
	}
	return s.checkHeads()
}

// Layer appends a layer of rgat.
func (rgat) Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value {
	heads := s.heads()
	x = s.typedInput(b, l, s.drop(b, l, x))
	width, out := b.Cols(x), heads*s.headWidth(l)
	own, parts := b.Own(x), slices.Repeat([]int{b.Cols(x)}, s.relations())
	w := b.Stack(layerName(l)+"relations", parts, out)
	segments, lists := b.Lists().ToSegments(), b.Lists()
	weights := b.Dropout(b.Softmax(s.relationScores(b, l, x, w), lists), s.Dropout)
	y := b.PullWeighted(x, weights, segments, heads, true)
	y = b.Pull(b.TypeHeadMul(y, w, b.SegmentTypes(), parts, heads), lists.ToNodes(), program.Sum)
	if s.last(l) {
		y = b.HeadMean(y, heads)
	}
	y = b.Add(y, s.after(l, width).byType(b, l, "self", own, b.Own(b.NodeTypes()), b.Cols(y)))
	return s.finish(b, l, own, y, "elu")
}

// relationScores appends the scores of the entries of rgat, given the matrices of relations.
func (s *Spec) relationScores(b *program.Builder, l int, x, w program.Value) program.Value {
	heads, lists := s.heads(), b.Lists()
	parts := slices.Repeat([]int{b.Cols(x)}, s.relations())
	vectors := func(of string) program.Value {
		return b.Param(layerName(l)+"attention of "+of, s.relations(), b.Cols(w), program.Glorot)
	}
	sources := b.SegmentRows(b.Fold(vectors("sources"), w, parts, heads))
	targets := b.TypeMatMulT(b.Spread(b.Own(x), lists.ToNodes()),
		b.FoldRows(vectors("targets"), w, parts, heads), b.SegmentTypes(), heads)
	scores := b.Add(b.Dots(sources, x, lists.ToSegments(), heads, true),
		b.Spread(targets, lists.ToSegments().OfEntries()))
	return b.LeakyReLU(scores, leak)
}
