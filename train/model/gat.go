package model

import "gdb/compute/program"

// gat is the graph attention network of Veličković and others ("Graph Attention Networks"): for
// each head, h'(v) = sum(a(u,v)·W·h(u): u in N(v) and v) + b, where a(u,v) is the softmax over u of
// LeakyReLU(a_src·W·h(u) + a_dst·W·h(v)). Heads stand beside each other, and are averaged in the
// last layer; ELU but after that. Columns e of an edge add a_e·e to what LeakyReLU takes, and
// a(u,v)·W_e·e to the sum; they are zeros for v itself.
type gat struct{}

// leak is the slope of LeakyReLU below zero.
const leak = 0.2

// Name returns "gat".
func (gat) Name() string { return "gat" }

func (gat) readsEdges() {}

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
	columns, slope, n := program.Value(0), float32(leak), len(s.EdgeFeatures)
	if n > 0 {
		columns, slope = b.EdgeColumns(n, lists), 1
	}
	scores := b.Scores(b.HeadMul(z, source, heads), b.HeadMul(b.Own(z), target, heads), lists,
		slope)
	if n > 0 {
		edges := b.Param(at+"attention of edges", n, heads, program.Glorot)
		scores = b.LeakyReLU(b.Add(scores, b.MatMul(columns, edges)), leak)
	}
	weights := b.Dropout(b.Softmax(scores, lists), s.Dropout)
	y := b.PullWeighted(z, weights, lists, heads, false)
	if n > 0 {
		edges := b.PullWeighted(columns, weights, lists.OfEntries(), heads, true)
		w := b.Param(at+"edges", n, heads*width, program.Glorot)
		y = b.Add(y, b.HeadMul(edges, w, heads))
	}
	return s.attended(b, l, x, y)
}

// attended appends the end of a layer of attention, of which y is what heads computed.
func (s *Spec) attended(b *program.Builder, l int, x, y program.Value) program.Value {
	if s.last(l) {
		y = b.HeadMean(y, s.heads())
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
