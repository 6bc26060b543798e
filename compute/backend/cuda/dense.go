//go:build cuda && cgo && linux

package cuda

import "gdb/compute/backend"

// matrix is a matrix by rows, or its transpose: row i begins stride values behind row i-1, and the
// same of the next head step values behind this one's.
type matrix struct {
	at           uint64
	stride, step int
	transposed   bool
	half         bool // of bfloat16
}

// product is c (m,n) = a (m,k) · b (k,n) for each of some heads.
func (g *gpu) product(op string, c, a, b matrix, m, k, n, heads int, acc bool) {
	if m == 0 || n == 0 || heads == 0 || g.err != nil {
		return
	}
	g.queue.ops = append(g.queue.ops, operation{name: op, kind: productOperation,
		product: product{c, a, b, m, k, n, heads, acc}})
}

// of is a whole matrix.
func (g *gpu) of(t backend.Tensor, transposed bool) matrix {
	return matrix{at: g.at(t), stride: max(1, t.Cols), transposed: transposed, half: t.Half}
}

// ofHeads is the first head of a matrix of several.
func (g *gpu) ofHeads(t backend.Tensor, heads int, transposed bool) matrix {
	m := g.of(t, transposed)
	m.step = t.Cols / max(1, heads)
	return m
}

// empty says whether a product is of nothing, in which case the result is zeros, or stays.
func (g *gpu) empty(c backend.Tensor, k int, acc bool) bool {
	if k > 0 {
		return false
	}
	if !acc {
		g.Zero(c)
	}
	return true
}

// factors are those of a product as they are computed with: a of bfloat16 beside b of float32 is
// widened.
func (g *gpu) factors(a, b backend.Tensor) (x, y backend.Tensor) {
	if a.Half && !b.Half {
		wide := g.Scratch(a.Rows, a.Cols)
		g.Widen(wide, a)
		return wide, b
	}
	return a, b
}

// MatMul is c = a·b.
func (g *gpu) MatMul(c, a, b backend.Tensor, acc bool) {
	if g.ready(a.Cols == b.Rows && c.Rows == a.Rows && c.Cols == b.Cols, "MatMul", c, a, b) &&
		!g.empty(c, a.Cols, acc) {
		a, b = g.factors(a, b)
		g.product("MatMul", g.of(c, false), g.of(a, false), g.of(b, false), a.Rows, a.Cols, b.Cols,
			1, acc)
	}
}

// MatMulTA is c = aᵀ·b.
func (g *gpu) MatMulTA(c, a, b backend.Tensor, acc bool) {
	if g.ready(a.Rows == b.Rows && c.Rows == a.Cols && c.Cols == b.Cols, "MatMulTA", c, a, b) &&
		!g.empty(c, a.Rows, acc) {
		a, b = g.factors(a, b)
		g.product("MatMulTA", g.of(c, false), g.of(a, true), g.of(b, false), a.Cols, a.Rows, b.Cols,
			1, acc)
	}
}

// MatMulTB is c = a·bᵀ.
func (g *gpu) MatMulTB(c, a, b backend.Tensor, acc bool) {
	if g.ready(a.Cols == b.Cols && c.Rows == a.Rows && c.Cols == b.Rows, "MatMulTB", c, a, b) &&
		!g.empty(c, a.Cols, acc) {
		a, b = g.factors(a, b)
		g.product("MatMulTB", g.of(c, false), g.of(a, false), g.of(b, true), a.Rows, a.Cols, b.Rows,
			1, acc)
	}
}

// HeadMul is c = a·b for each head.
func (g *gpu) HeadMul(c, a, b backend.Tensor, heads int, acc bool) {
	if g.ready(a.Cols == heads*b.Rows && c.Rows == a.Rows && c.Cols == b.Cols, "HeadMul", c, a,
		b) && !g.empty(c, b.Rows, acc) {
		a, b = g.factors(a, b)
		g.product("HeadMul", g.ofHeads(c, heads, false), g.ofHeads(a, heads, false),
			g.ofHeads(b, heads, false), a.Rows, b.Rows, b.Cols/heads, heads, acc)
	}
}

// HeadMulTA is c = aᵀ·b for each head.
func (g *gpu) HeadMulTA(c, a, b backend.Tensor, heads int, acc bool) {
	if g.ready(a.Rows == b.Rows && a.Cols == heads*c.Rows && c.Cols == b.Cols, "HeadMulTA", c, a,
		b) && !g.empty(c, a.Rows, acc) {
		a, b = g.factors(a, b)
		g.product("HeadMulTA", g.ofHeads(c, heads, false), g.ofHeads(a, heads, true),
			g.ofHeads(b, heads, false), c.Rows, a.Rows, b.Cols/heads, heads, acc)
	}
}

// HeadMulTB is c = a·bᵀ for each head.
func (g *gpu) HeadMulTB(c, a, b backend.Tensor, heads int, acc bool) {
	if g.ready(a.Cols == b.Cols && c.Rows == a.Rows && c.Cols == heads*b.Rows, "HeadMulTB", c, a,
		b) && !g.empty(c, a.Cols, acc) {
		a, b = g.factors(a, b)
		g.product("HeadMulTB", g.ofHeads(c, heads, false), g.ofHeads(a, heads, false),
			g.ofHeads(b, heads, true), a.Rows, a.Cols/heads, b.Rows, heads, acc)
	}
}

// Add is dst += src.
func (g *gpu) Add(dst, src backend.Tensor) {
	if g.ready(dst.Len() == src.Len(), "Add", dst, src) {
		g.launch("add", dst.Len(), dst, src, dst.Len(), g.fours(4, dst, src))
	}
}

// Copy copies values.
func (g *gpu) Copy(dst, src backend.Tensor) {
	if g.ready(dst.Len() == src.Len() && dst.Half == src.Half, "Copy", dst, src) && dst.Len() > 0 {
		to, from := g.at(dst), g.at(src)
		if g.err == nil {
			g.queue.ops = append(g.queue.ops, operation{name: "Copy", kind: copyOperation, to: to,
				from: from, bytes: dst.Len() * width(dst)})
		}
	}
}

// Zero clears x.
func (g *gpu) Zero(x backend.Tensor) {
	if !g.there(x) || x.Len() == 0 {
		return
	}
	if to := g.at(x); g.err == nil {
		g.queue.ops = append(g.queue.ops, operation{name: "Zero", kind: zeroOperation, to: to,
			bytes: x.Len() * width(x)})
	}
}
