package program

import (
	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
)

// Products of matrices, and those for each head: columns of x by head, and of y.

var (
	opMatMulTA  = productKind("matmul-ta", transposesA, nil)
	opMatMulTB  = productKind("matmul-tb", transposesB, nil)
	opMatMul    = productKind("matmul", plainProduct, productRule(opMatMulTA, opMatMulTB))
	opHeadMulTA = productKind("headmul-ta", transposesA, nil)
	opHeadMulTB = productKind("headmul-tb", transposesB, nil)
	opHeadMul   = productKind("headmul", plainProduct, productRule(opHeadMulTA, opHeadMulTB))
)

func productKind(name string, form product, grad rule) *Kind {
	k := Kind{product: form, accumulates: true, grad: grad, takes: productTakes,
		flops: productFlops, taken: takenByProduct, takenHalf: takenByHalfProduct}
	if k.overRows = form == transposesA; !k.overRows {
		k.writesHalf = productWritesHalf
	}
	return define(name, form.fits, form.ref, k)
}

// MatMul returns x·w.
func (b *Builder) MatMul(x, w Value) Value {
	vx, vw := b.p.of(x), b.p.of(w)
	b.check(vx.cols == vw.rows.n && vw.rows.kind == fixedRows, "MatMul", x, w)
	return b.p.add(simple(opMatMul, x, w), vx.rows, vw.cols)
}

// HeadMul returns x·w for each head: x has heads·k columns, w (k, heads·n), and the result heads·n.
func (b *Builder) HeadMul(x, w Value, heads int) Value {
	vx, vw := b.p.of(x), b.p.of(w)
	b.check(vx.cols == heads*vw.rows.n && vw.cols%heads == 0, "HeadMul", x, w)
	o := simple(opHeadMul, x, w)
	o.heads = heads
	return b.p.add(o, vx.rows, vw.cols)
}

// productRule appends the gradient of the second factor, and then that of the first.
func productRule(ofW, ofX *Kind) rule {
	return func(t *tape, o *op, dy Value) {
		x, w := o.in[0], o.in[1]
		t.give(w, simple(ofW, x, dy).overEntries(o))
		t.give(x, simple(ofX, dy, w).overEntries(o))
	}
}

// fewColumns is up to how many columns a product has few: it is computed in float32, as scores are.
const fewColumns = 8

// productTakes returns what a product takes: both operands as bfloat16, or if one of the matrices
// has few columns for each head, only its first as it is.
func productTakes(p *Program, o *op, i int) operand {
	heads := max(1, o.heads)
	few := false
	for _, v := range []Value{o.in[0], o.in[1], o.out} {
		x := p.of(v)
		cols := x.cols
		if o.kind.product != transposesA || v != o.out {
			cols /= heads
		}
		few = few || cols <= fewColumns
	}
	switch {
	case !few:
		return takesHalf
	case i == 0 && o.kind.product != transposesB:
		return takesEither
	}
	return takesFloats
}

func productWritesHalf(p *Program, o *op) bool { return o.acc == 0 && p.takes(o, 1) == takesHalf }

func productFlops(z sized) float64 {
	n := z.cols(1)
	if z.o.kind.product == transposesB {
		n = z.outCols()
	}
	return 2 * float64(z.rows(0)) * float64(z.cols(0)) * float64(n) / float64(z.heads())
}

func takenByProduct(z sized, _ int) (t backend.Taken) {
	if z.o.kind.product == transposesA {
		t.Once, t.Product = kernel.ReductionWords(z.rows(0), z.cols(0)/z.heads(),
			z.cols(1)/z.heads(), z.cols(0))
		return t
	}
	k, n := z.rows(1), z.cols(1)/z.heads()
	if z.o.kind.product == transposesB {
		k, n = n, k
	}
	return backend.Taken{Once: kernel.PanelWords(k, n)}
}

// takenByHalfProduct returns the scratch memory of a product whose first factor or result is
// bfloat16.
func takenByHalfProduct(z sized, _ int) (t backend.Taken) {
	heads := z.heads()
	rows, cols, n := z.rows(0), z.cols(0)/heads, z.outCols()/heads
	switch {
	case !z.p.of(z.o.in[1]).half:
		t.Once, t.Product = bf16.WidenedWords(rows, cols, z.cols(1)/heads, heads)
	case z.o.kind.product == transposesA:
		if t.Once, t.Product = bf16.GEMMTAWords(rows, cols, n); heads > 1 {
			t.Once += cols * n
		}
	default:
		t.Once, t.List = bf16.GEMMWords(cols, n, heads, z.p.of(z.o.out).half)
	}
	return t
}

// fits says that the parts of matrices that heads have can be multiplied.
func (k product) fits(o *backend.Operands) bool {
	a, b, c := o.In[0], o.In[1], o.Out
	heads := max(1, o.Heads)
	switch k {
	case transposesA:
		return a.Rows == b.Rows && a.Cols == heads*c.Rows && c.Cols == b.Cols
	case transposesB:
		return a.Cols == b.Cols && c.Rows == a.Rows && c.Cols == heads*b.Rows
	}
	return a.Cols == heads*b.Rows && c.Rows == a.Rows && c.Cols == b.Cols
}

// ref multiplies matrices, for each head.
func (k product) ref(h *backend.Plain) {
	h.Begin()
	heads := max(1, h.Heads)
	at := func(m backend.Matrix, head, i, j int) *float32 {
		return &m.V[i*m.Cols+head*(m.Cols/heads)+j]
	}
	a, b := h.From[0], h.From[1]
	for head := range heads {
		for i := range a.Rows {
			for j := range a.Cols / heads {
				x := *at(a, head, i, j)
				switch k {
				case transposesA: // c's row j is a's column
					for n := range b.Cols / heads {
						*at(h.To, head, j, n) += x * *at(b, head, i, n)
					}
				case transposesB:
					for n := range b.Rows {
						*at(h.To, head, i, n) += x * *at(b, head, n, j)
					}
				default:
					for n := range b.Cols / heads {
						*at(h.To, head, i, n) += x * *at(b, head, j, n)
					}
				}
			}
		}
	}
}
