package model

import (
	"fmt"
	"math"
	"slices"

	"gdb/compute/program"
)

// hgt is the heterogeneous graph transformer of Hu and others ("Heterogeneous Graph Transformer",
// section 3). A node has a key, a query and a value by matrices of its type. The score of a
// neighbor u of v by relation r is, for each head, K(u)·A_r·Q(v)/√d, and a softmax over all
// neighbors of v, by whatever relation, makes weights of scores: h'(v) = W_t·gelu(sum of the
// weights times V(u)·M_r) + h(v), t being the type of v. What the paper has as μ is part of A_r.
// The first layer begins with a product by type and ReLU, to the width of the layers between. The
// input is added where it is as wide as the result. Times are no input.
type hgt struct{}

// Name returns "hgt".
func (hgt) Name() string { return "hgt" }

func (hgt) notByLayers() string { return softmaxOfSome }

func (hgt) onHost() {}

func (hgt) typed() {}

// Check returns an error for options that hgt does not have.
func (hgt) Check(s *Spec) error {
	if s.Aggregate != "" && s.Aggregate != "auto" {
		return fmt.Errorf("aggregate %s: hgt weighs neighbors by what it learns: leave it out",
			s.Aggregate)
	}
	return s.checkHeads()
}

// Layer appends a layer of hgt.
func (hgt) Layer(b *program.Builder, s *Spec, l int, x program.Value) program.Value {
	heads, lists := s.heads(), b.Lists()
	x = s.typedInput(b, l, s.drop(b, l, x))
	width := b.Cols(x)
	wide, own := s.after(l, width), b.Own(x)
	keys := wide.byType(b, l, "keys", x, b.NodeTypes(), width)
	values := wide.byType(b, l, "values", x, b.NodeTypes(), width)
	queries := wide.byType(b, l, "queries", own, b.Own(b.NodeTypes()), width)
	queries = b.Scale(queries, float32(1/math.Sqrt(float64(width/heads))))
	asked := s.headsByRelation(b, l, "attention", b.Spread(queries, lists.ToNodes()))
	weights := b.Softmax(b.Dots(asked, keys, lists.ToSegments(), heads, false), lists)
	y := b.PullWeighted(values, b.Dropout(weights, s.Dropout), lists.ToSegments(), heads, false)
	y = b.GELU(b.Pull(s.headsByRelation(b, l, "messages", y), lists.ToNodes(), program.Sum))
	y = wide.byType(b, l, "result", y, b.Own(b.NodeTypes()), s.Dims[l+1])
	if b.Cols(own) == b.Cols(y) && !s.Residual {
		y = b.Add(y, own)
	}
	return s.finish(b, l, own, y, "none")
}

// headsByRelation appends a product of segments with a matrix for each relation and head.
func (s *Spec) headsByRelation(b *program.Builder, l int, name string,
	x program.Value) program.Value {
	width, heads := b.Cols(x), s.heads()
	parts := slices.Repeat([]int{width / heads}, s.relations())
	w := b.Stack(layerName(l)+name, parts, width)
	return b.TypeHeadMul(x, w, b.SegmentTypes(), parts, heads)
}

// typedInput appends what the first layer begins with: a product by type and ReLU, to the width of
// the layers between.
func (s *Spec) typedInput(b *program.Builder, l int, x program.Value) program.Value {
	if l > 0 {
		return x
	}
	width := s.Dims[1]
	if s.last(l) {
		width *= s.heads()
	}
	return b.ReLU(s.byType(b, l, "input", x, b.NodeTypes(), width))
}

// after returns the specification for rows of a layer that all have the same width.
func (s *Spec) after(l, width int) *Spec {
	t := *s
	t.TypeWidths, t.Dims = nil, slices.Clone(s.Dims)
	t.Dims[l] = width
	return &t
}
