package model

import "gdb/compute/program"

// gat is the graph attention network of Veličković and others ("Graph Attention Networks"): for
// each head, h'(v) = sum(a(u,v)·W·h(u): u in N(v) and v) + b, where a(u,v) is the softmax over u of
// LeakyReLU(a_src·W·h(u) + a_dst·W·h(v)). Heads stand beside each other, and are averaged in the
// last layer; ELU but after that.
type gat struct{}

// leak is the slope of LeakyReLU below zero.
const leak = 0.2

// Name returns "gat".
func (gat) Name() string { return "gat" }

func (gat) notByLayers() string { return softmaxOfSome }

// Check returns an error for hidden widths that are no multiple of the number of heads.
func (gat) Check(s *Spec) error { return s.checkHeads() }

// Layer appends a layer of GAT.
func (gat) Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value {
	at, heads := layerName(l), s.heads()
	width := s.headWidth(l)
	w := b.Param(at+"weights", s.Dims[l], heads*width, program.Glorot)
	source := b.Param(at+"attention of sources", width, heads, program.Glorot)
	target := b.Param(at+"attention of targets", width, heads, program.Glorot)
	x = s.drop(b, l, x)
	z, lists := b.MatMul(x, w), b.Lists().WithLoops()
	scores := b.Scores(b.HeadMul(z, source, heads), b.HeadMul(b.Own(z), target, heads), lists, leak)
	weights := b.Dropout(b.Softmax(scores, lists), s.Dropout)
	y := b.PullWeighted(z, weights, lists, heads, false)
	if s.last(l) {
		y = b.HeadMean(y, heads)
	}
	return s.finish(b, l, b.Own(x), y, "elu")
}

// headWidth returns how many values a head of layer l has.
func (s *Spec) headWidth(l int) int {
	if s.last(l) {
		return s.Dims[l+1]
	}
	return s.Dims[l+1] / s.heads()
}
