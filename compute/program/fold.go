package program

import (
	"math"

	"gdb/compute/backend"
	"gdb/compute/kernel"
)

// Vectors that are multiplied with what the matrix of their type makes of rows: a·(W·h) is (a·W)·h,
// and a·W is the same for all rows of a type. So a score costs a product of two vectors for each
// entry, and not a product with a matrix.

var (
	// opFold is x·wᵀ for each row of x, which has one for each type, w being the type's matrix.
	// opFoldVectors and opFoldMatrices are its gradients in both.
	opFold         = foldKind("fold", transposesB, foldRule)
	opFoldVectors  = foldKind("fold-vectors", plainProduct, nil)
	opFoldMatrices = foldKind("fold-matrices", transposesA, nil)
)

func foldRule(t *tape, o *op, dy Value) {
	x, w := o.in[0], o.in[1]
	ofW, ofX := simple(opFoldMatrices, dy, x), simple(opFoldVectors, dy, w)
	for _, g := range []*op{&ofW, &ofX} {
		g.parts, g.heads = o.parts, o.heads
	}
	t.give(w, ofW)
	t.give(x, ofX)
}

// foldKind is a product of rows of which each is alone of its type.
func foldKind(name string, form product, grad rule) *Kind {
	return define(name, func(o *backend.Operands) bool {
		vectors, matrices, folded := o.In[0], o.In[1], o.Out
		switch form {
		case plainProduct:
			vectors, folded = folded, vectors
		case transposesA:
			vectors, matrices, folded = matrices, folded, vectors
		}
		types, rows, heads := len(o.Parts), sumOf(o.Parts), max(1, o.Heads)
		return vectors.Rows == types && matrices.Rows == rows && vectors.Cols == matrices.Cols &&
			folded.Len() == rows*heads && folded.Rows%types == 0
	}, form.foldRef, Kind{accumulates: true, grad: grad, taken: takenByFold})
}

func takenByFold(z sized, _ int) (t backend.Taken) {
	parts := z.o.parts
	t.Once, t.Product = kernel.ByTypeWords(len(parts), kernel.ByType{Parts: parts,
		Width: max(1, z.o.heads) * parts[0], Heads: z.o.heads, N: z.cols(1)})
	t.Once += len(parts)
	return t
}

// foldRef multiplies type by type.
func (k product) foldRef(h *backend.Plain) {
	h.Begin()
	n := len(h.Parts)
	types, first := make([]float32, n), make([]int, n+1)
	for i, rows := range h.Parts {
		types[i], first[i+1] = math.Float32frombits(uint32(i)), first[i]+rows
	}
	h.From[2] = backend.Matrix{Rows: n, Cols: 1, V: types}
	h.From[0].Rows, h.From[0].Cols = n, len(h.From[0].V)/n
	if k != transposesA {
		h.To.Rows, h.To.Cols = n, len(h.To.V)/n
	}
	for i := range n {
		k.typeRef(h, first, i, i)
	}
}

// Fold returns for each type a·wᵀ by head, w being the type's matrix in a Stack of equal parts. a
// has a row for each type, and so has the result, in which heads stand side by side. A head of it
// times a row h is a times h·w.
func (b *Builder) Fold(a, w Value, parts []int, heads int) Value {
	return b.fold(a, w, parts, heads, len(parts))
}

// FoldRows returns the same with a row for each type and head.
func (b *Builder) FoldRows(a, w Value, parts []int, heads int) Value {
	return b.fold(a, w, parts, heads, len(parts)*heads)
}

func (b *Builder) fold(a, w Value, parts []int, heads, rows int) Value {
	va, vw := *b.p.of(a), *b.p.of(w)
	b.check(va.rows == Fixed(len(parts)) && va.cols == vw.cols &&
		vw.rows == Fixed(len(parts)*parts[0]), "Fold", a, w)
	o := simple(opFold, a, w)
	o.parts, o.heads = parts, heads
	return b.p.add(o, Fixed(rows), sumOf(parts)*heads/rows)
}
