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
	opTypeMatMulTA = typeProduct("type-matmul-ta", transposesA, nil)
	opTypeMatMulTB = typeProduct("type-matmul-tb", transposesB, nil)
	opTypeMatMul   = typeProduct("type-matmul", plainProduct, func(t *tape, o *op, dy Value) {
		x, w, types := o.in[0], o.in[1], o.in[2]
		ofW, ofX := simple(opTypeMatMulTA, x, dy, types), simple(opTypeMatMulTB, dy, w, types)
		ofW.parts, ofX.parts, ofW.heads, ofX.heads = o.parts, o.parts, o.heads, o.heads
		t.give(w, ofW)
		t.give(x, ofX)
	})
)

func typeProduct(name string, form product, grad rule) *Kind {
	return define(name, form.fitsTypes, form.typesRef, Kind{accumulates: true, counts: true,
		grad: grad, taken: func(z sized, _ int) (t backend.Taken) {
			width, n := z.cols(0), z.cols(1)
			if form == transposesB {
				width, n = z.outCols(), z.cols(0)
			}
			t.Once, t.Product = kernel.ByTypeWords(z.rows(0), kernel.ByType{Parts: z.o.parts,
				Width: width, Heads: z.o.heads, N: n})
			return t
		}})
}

// Stack returns a matrix that is learned for each type, as TypeMatMul takes them: parts has their
// numbers of rows.
func (b *Builder) Stack(name string, parts []int, cols int) Value {
	rows := sumOf(parts)
	return b.p.new(value{rows: Fixed(rows), cols: cols, role: roleParam, grad: true, name: name,
		index: b.p.params.add(name, rows, cols, Glorot, parts...)})
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

// opSpread has for each segment the row x of the node whose list it is in.
var opSpread = define("spread", pushFits, pushRef(false), Kind{lists: transposedLists,
	taken: opPullSumGrad.taken, grad: pullRule(opPullSum)})

// Spread returns for each segment of the layer's lists the row of x of its node.
func (b *Builder) Spread(x Value) Value {
	l := b.Lists().ToNodes()
	b.check(b.p.of(x).rows == l.has(), "Spread", x)
	o := simple(opSpread, x)
	o.list = l
	return b.p.add(o, l.reads(), b.Cols(x))
}

// NodeTypes returns the numbers of the types of the nodes that the layer reads, as bits.
func (b *Builder) NodeTypes() Value { return b.p.property(NodeType, Nodes(b.hop)) }

// SegmentTypes returns the numbers of the types of the segments of the layer's lists, as bits.
func (b *Builder) SegmentTypes() Value { return b.p.property(SegmentType, Segments(b.hop)) }

// RowsByType returns the rows of a table, which has one for each type, by types.
func (b *Builder) RowsByType(table, types Value) Value {
	return b.p.add(simple(opTypeRows, table, types), b.p.of(types).rows, b.Cols(table))
}

func sumOf(parts []int) (sum int) {
	for _, n := range parts {
		sum += n
	}
	return sum
}

// fitsTypes says that the rows of a product have types, and these matrices.
func (k product) fitsTypes(o *backend.Operands) bool {
	x, w, y := o.In[0], o.In[1], o.Out
	switch k {
	case transposesA:
		w, y = y, w
	case transposesB:
		x, y = y, x
	}
	return o.In[2].Len() == x.Rows && y.Rows == x.Rows && w.Rows == sumOf(o.Parts) &&
		y.Cols == w.Cols && slices.Max(o.Parts)*max(1, o.Heads) <= x.Cols
}

// typesRef multiplies row by row.
func (k product) typesRef(h *backend.Plain) {
	h.Begin()
	first := make([]int, len(h.Parts)+1)
	for t, n := range h.Parts {
		first[t+1] = first[t] + n
	}
	for i, bits := range h.From[2].V {
		t := math.Float32bits(bits)
		x, other, part := h.From[0].Row(i), h.From[1], h.Parts[t]
		for at := range part * max(1, h.Heads) {
			row, e := first[t]+at%part, entryHead{head: at / part, heads: max(1, h.Heads)}
			switch k {
			case transposesA:
				addTo(e.part(h.To, row), e.part(other, i), x[at])
			case transposesB:
				h.To.Row(i)[at] += dot(e.part(h.From[0], i), e.part(other, row))
			default:
				addTo(e.part(h.To, i), e.part(other, row), x[at])
			}
		}
	}
}
