package program

import (
	"math"
	"slices"

	"gdb/compute/backend"
	"gdb/compute/kernel"
)

// Products whose rows have a type each, and a matrix for each type: of nodes by their types, and of
// segments by the types of their entries. The matrices stand one below the other in one parameter.
// A type's may have fewer rows than others: then it reads the first columns of its rows.

var (
	// opTypeMatMul has rows, matrices and types; opTypeMatMulTA rows, the gradient of the result
	// and types; opTypeMatMulTB that gradient, matrices and types.
	opTypeMatMulTA = typeProduct("type-matmul-ta", transposesA, noLists, nil)
	opTypeMatMulTB = typeProduct("type-matmul-tb", transposesB, noLists, nil)
	opTypeMatMul   = typeProduct("type-matmul", plainProduct, noLists,
		typeRule(opTypeMatMulTA, opTypeMatMulTB))

	// The same for segments, whose products are summed up to a row for each node: the results, and
	// their gradients, have the rows of lists.
	opSegmentMatMulTA = typeProduct("segment-matmul-ta", transposesA, ownLists, nil)
	opSegmentMatMulTB = typeProduct("segment-matmul-tb", transposesB, ownLists, nil)
	opSegmentMatMul   = typeProduct("segment-matmul", plainProduct, ownLists,
		typeRule(opSegmentMatMulTA, opSegmentMatMulTB))

	// opTypeMatMulT multiplies rows with the transpose of the matrix of their type.
	opTypeMatMulT = typeProduct("type-matmul-t", transposesB, noLists,
		func(t *tape, o *op, dy Value) {
			x, w, types := o.in[0], o.in[1], o.in[2]
			ofW, ofX := simple(opTypeMatMulTA, dy, x, types), simple(opTypeMatMul, dy, w, types)
			ofW.parts, ofX.parts = o.parts, o.parts
			t.give(w, ofW)
			t.give(x, ofX)
		})
)

func typeRule(ta, tb *Kind) rule {
	return func(t *tape, o *op, dy Value) {
		x, w, types := o.in[0], o.in[1], o.in[2]
		ofW, ofX := simple(ta, x, dy, types), simple(tb, dy, w, types)
		for _, g := range []*op{&ofW, &ofX} {
			g.parts, g.heads, g.list = o.parts, o.heads, o.list
		}
		t.give(w, ofW)
		t.give(x, ofX)
	}
}

func typeProduct(name string, form product, lists listReads, grad rule) *Kind {
	return define(name, form.fitsTypes, form.typesRef, Kind{accumulates: true, counts: true,
		lists: lists, grad: grad, taken: func(z sized, _ int) (t backend.Taken) {
			width, n := z.cols(0), z.cols(1)
			if form == transposesB {
				width, n = z.outCols(), z.cols(0)
			}
			t.Once, t.Product = kernel.ByTypeWords(z.rows(2), kernel.ByType{Parts: z.o.parts,
				Width: width, Heads: z.o.heads, N: n})
			return t
		}})
}

// Stack returns a matrix that is learned for each type, as TypeMatMul takes them: parts has their
// numbers of rows.
func (b *Builder) Stack(name string, parts []int, cols int) Value {
	rows := sumOf(parts)
	return b.p.new(value{rows: Fixed(rows), cols: cols, role: roleParam, grad: !b.p.explains,
		name: name, index: b.p.params.add(name, rows, cols, Glorot, parts...)})
}

// Part returns the matrix of a type in a Stack of such parts, for layers that are not learned.
func (b *Builder) Part(stack Value, parts []int, kind int) Value {
	b.check(!b.Train, "Part, in training,", stack)
	v := *b.p.of(stack)
	v.rows, v.first = Fixed(parts[kind]), sumOf(parts[:kind])
	return b.p.new(v)
}

// TypeMatMul returns x·w for each row of x, w being the matrix of its type: types has one for each
// row, and parts the number of rows of each matrix, at most the columns of x.
func (b *Builder) TypeMatMul(x, w, types Value, parts []int) Value {
	return b.TypeHeadMul(x, w, types, parts, 1)
}

// TypeHeadMul returns x·w for each head, as HeadMul does with one matrix. With several heads each
// matrix has as many rows as a head of x has columns.
func (b *Builder) TypeHeadMul(x, w, types Value, parts []int, heads int) Value {
	vx, vw := *b.p.of(x), *b.p.of(w)
	b.check(vw.rows == Fixed(sumOf(parts)) && b.p.of(types).rows == vx.rows &&
		slices.Max(parts)*heads <= vx.cols, "TypeMatMul", x, w, types)
	o := simple(opTypeMatMul, x, w, types)
	o.parts, o.heads = parts, heads
	return b.p.add(o, vx.rows, vw.cols)
}

// SegmentMatMul returns for each node the sum over its segments, which have the rows of x, of x·w,
// w being the matrix of the segment's type: see TypeMatMul.
func (b *Builder) SegmentMatMul(x, w Value, parts []int) Value {
	l := b.Lists().ToNodes()
	vx, vw := *b.p.of(x), *b.p.of(w)
	b.check(vw.rows == Fixed(sumOf(parts)) && vx.rows == l.reads() &&
		slices.Max(parts) <= vx.cols, "SegmentMatMul", x, w)
	o := simple(opSegmentMatMul, x, w, b.SegmentTypes())
	o.parts, o.list = parts, l
	return b.p.add(o, l.has(), vw.cols)
}

// opCompose has for each relation the sum of bases, which are beside each other in the second
// operand, times its coefficients, the rows of the first. Parts has for each its rows and the first
// of them in bases.
var opCompose = define("compose", func(o *backend.Operands) bool {
	return o.In[1].Cols == o.In[0].Cols*o.Out.Cols && 2*o.In[0].Rows == len(o.Parts)
}, func(h *backend.Plain) {
	h.Begin()
	cols, to := h.To.Cols, 0
	for r := range h.From[0].Rows {
		for i := range h.Parts[2*r] {
			row := h.From[1].Row(h.Parts[2*r+1] + i)
			for b, a := range h.From[0].Row(r) {
				addTo(h.To.Row(to), row[b*cols:(b+1)*cols], a)
			}
			to++
		}
	}
}, Kind{})

// Compose returns the matrices of relations, which stand one below the other, of coefficients
// (relations, bases) of shared bases beside each other. Matrix r has parts[r] rows, of those that
// begin at firsts[r] in bases. It is for layers that are not learned.
func (b *Builder) Compose(coefficients, bases Value, parts, firsts []int) Value {
	n := b.Cols(coefficients)
	b.check(!b.Train && b.Cols(bases)%n == 0, "Compose", coefficients, bases)
	o := simple(opCompose, coefficients, bases)
	for r, rows := range parts {
		o.parts = append(o.parts, rows, firsts[r])
	}
	return b.p.add(o, Fixed(sumOf(parts)), b.Cols(bases)/n)
}

// RelationMatMul returns x·w for a relation that each row is a source of, w being its matrix, for
// layers over whole lists: see ExactLayer.ByRelation.
func (b *Builder) RelationMatMul(x, w Value, parts []int) Value {
	b.check(b.Exact, "RelationMatMul", x, w)
	return b.TypeMatMul(x, w, b.p.property(SourceRelation, Nodes(b.hop)), parts)
}

// TypeMatMulT returns x·wᵀ for each row of x, w being the matrix of its type, of n rows.
func (b *Builder) TypeMatMulT(x, w, types Value, n int) Value {
	vx, vw := *b.p.of(x), *b.p.of(w)
	b.check(b.p.of(types).rows == vx.rows && vw.rows.n%n == 0 && vw.cols == vx.cols,
		"TypeMatMulT", x, w, types)
	o := simple(opTypeMatMulT, x, w, types)
	o.parts = slices.Repeat([]int{n}, vw.rows.n/n)
	return b.p.add(o, vx.rows, n)
}

// opSpread has for each row that lists name the row x of the list it is in.
var opSpread = define("spread", func(o *backend.Operands) bool {
	return o.In[0].Rows == o.Lists.Lists && o.Out.Rows == o.Lists.Entries &&
		o.Out.Cols == o.In[0].Cols
}, func(h *backend.Plain) {
	h.Entries(func(list, _, row int) { copy(h.To.Row(row), h.From[0].Row(list)) })
}, Kind{lists: ownLists, grad: pullRule(opPullSum)})

// Spread returns for each row that lists name, each in one of them, the row of x of its list: for
// segments that of their node (List.ToNodes), for entries that of their segment (List.ToSegments
// and OfEntries).
func (b *Builder) Spread(x Value, l List) Value {
	b.check(b.p.of(x).rows == l.has() && (l.of == toNodes || l.Itself), "Spread", x)
	o := simple(opSpread, x)
	o.list = l
	return b.p.add(o, l.reads(), b.Cols(x))
}

// NodeTypes returns the numbers of the types of the nodes that the layer reads, as bits.
func (b *Builder) NodeTypes() Value { return b.p.property(NodeType, Nodes(b.hop)) }

// SegmentTypes returns the numbers of the types of the segments of the layer's lists, as bits.
func (b *Builder) SegmentTypes() Value { return b.p.property(SegmentType, Segments(b.hop)) }

func sumOf(parts []int) (sum int) {
	for _, n := range parts {
		sum += n
	}
	return sum
}

// fitsTypes says that the rows of a product have types, and these matrices. Of segments the result,
// and its gradient, have the rows of lists.
func (k product) fitsTypes(o *backend.Operands) bool {
	x, w, y := o.In[0], o.In[1], o.Out
	switch k {
	case transposesA:
		w, y = y, w
	case transposesB:
		x, y = y, x
	}
	rows := x.Rows
	if o.Lists.Lists > 0 {
		rows = o.Lists.Lists
	}
	return o.In[2].Len() == x.Rows && y.Rows == rows && w.Rows == sumOf(o.Parts) &&
		y.Cols == w.Cols && slices.Max(o.Parts)*max(1, o.Heads) <= x.Cols
}

// typesRef multiplies row by row.
func (k product) typesRef(h *backend.Plain) {
	h.Begin()
	first := make([]int, len(h.Parts)+1)
	for t, n := range h.Parts {
		first[t+1] = first[t] + n
	}
	if h.Operands.Lists.Lists > 0 {
		h.Entries(func(list, _, row int) { k.typeRef(h, first, row, list) })
		return
	}
	for i := range h.From[2].V {
		k.typeRef(h, first, i, i)
	}
}

// typeRef adds the product of row i, or what it gives to the gradient; the result's row is sum.
func (k product) typeRef(h *backend.Plain, first []int, i, sum int) {
	t := math.Float32bits(h.From[2].V[i])
	x, other, part, heads := h.From[0], h.From[1], h.Parts[t], max(1, h.Heads)
	for at := range part * heads {
		row, e := first[t]+at%part, entryHead{head: at / part, heads: heads}
		switch k {
		case transposesA:
			addTo(e.part(h.To, row), e.part(other, sum), x.Row(i)[at])
		case transposesB:
			h.To.Row(i)[at] += dot(e.part(x, sum), e.part(other, row))
		default:
			addTo(e.part(h.To, sum), e.part(other, row), x.Row(i)[at])
		}
	}
}
