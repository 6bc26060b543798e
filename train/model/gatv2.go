package model

import "gdb/compute/program"

// gatv2 is the attention network of Brody, Alon and Yahav ("How Attentive are Graph Attention
// Networks?"). It is like gat, but a(u,v) is the softmax over u of a·LeakyReLU(W_src·h(u) +
// W_dst·h(v)), so that the neighbor which weighs most may differ from node to node.
type gatv2 struct{}

// Name returns "gatv2".
func (gatv2) Name() string { return "gatv2" }

func (gatv2) notByLayers() string { return softmaxOfSome }

// Check returns an error for hidden widths that are no multiple of the number of heads.
func (gatv2) Check(s *Spec) error { return s.checkHeads() }

// Layer appends a layer of GATv2.
func (gatv2) Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value {
	at, heads := layerName(l), s.heads()
	cols := heads * s.headWidth(l)
	source := b.Param(at+"weights of sources", s.Dims[l], cols, program.Glorot)
	target := b.Param(at+"weights of targets", s.Dims[l], cols, program.Glorot)
	attention := b.Param(at+"attention", 1, cols, program.Glorot)
	x = s.drop(b, l, x)
	z, lists := b.MatMul(x, source), b.Lists().WithLoops()
	scores := b.Scores2(z, b.MatMul(b.Own(x), target), attention, lists, heads, leak)
	weights := b.Dropout(b.Softmax(scores, lists), s.Dropout)
	return s.attended(b, l, x, b.PullWeighted(z, weights, lists, heads, false))
}
