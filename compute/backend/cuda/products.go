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

// products take factors of bfloat16, or only the first such.
var products = map[string]deviceKernel{
	"matmul":     func(g *gpu, o *backend.Operands) { g.multiply("matmul", o, false, false) },
	"matmul-ta":  func(g *gpu, o *backend.Operands) { g.multiply("matmul-ta", o, true, false) },
	"matmul-tb":  func(g *gpu, o *backend.Operands) { g.multiply("matmul-tb", o, false, true) },
	"headmul":    func(g *gpu, o *backend.Operands) { g.multiply("headmul", o, false, false) },
	"headmul-ta": func(g *gpu, o *backend.Operands) { g.multiply("headmul-ta", o, true, false) },
	"headmul-tb": func(g *gpu, o *backend.Operands) { g.multiply("headmul-tb", o, false, true) },
}

// multiply is c = a·b for each head, of a or b transposed. The result of nothing is zeros, or
// stays.
func (g *gpu) multiply(name string, o *backend.Operands, ta, tb bool) {
	c, heads := o.Out, max(1, o.Heads)
	a, b := o.In[0], o.In[1]
	m, k, n := a.Rows, a.Cols/heads, c.Cols/heads
	if ta {
		m, k = k, m
	}
	switch {
	case k == 0 && !o.Acc:
		g.zero(c)
		return
	case k == 0 || m == 0 || n == 0:
		return
	}
	a, b = g.factors(a, b)
	p := product{g.of(c, heads, false), g.of(a, heads, ta), g.of(b, heads, tb), m, k, n, heads,
		o.Acc}
	if rows := partRows(m, n, heads); ta && !o.Acc && !a.Half && rows > 0 && k >= 2*rows {
		g.reduce(name, c, p, rows)
		return
	}
	g.product(name, p)
}

// product queues a product.
func (g *gpu) product(name string, p product) {
	if g.err == nil {
		g.queue.ops = append(g.queue.ops, operation{name: name, kind: productOperation, product: p})
	}
}

const (
	// tileValues is about how many rows and columns of a result a block of cuBLAS computes, and
	// tilesEnough as many as keep a device busy.
	tileValues, tilesEnough = 64, 128
	// partRowsLeast is the least rows of a part of a product that reduces rows.
	partRowsLeast = 512
)

// partRows returns the rows of a part of a product with a transposed factor; 0 for one that is
// computed as it is. A result of few tiles would keep few blocks busy, each of which goes through
// all rows, as cuBLAS computes those of several heads. It depends on no number of rows, so that
// zeros before the first change no bit.
func partRows(m, n, heads int) int {
	up := func(n int) int { return (n + tileValues - 1) / tileValues }
	tiles := up(m) * up(n) * heads
	if tiles >= tilesEnough {
		return 0
	}
	return max(partRowsLeast, tiles*tileValues)
}

// reduce computes a product that sums up over rows in parts of a number of rows, counted from the
// last, and then the sums of the parts.
func (g *gpu) reduce(name string, c backend.Tensor, p product, rows int) {
	size, full, rest := c.Len(), p.k/rows, p.k%rows
	parts := full
	if rest > 0 {
		parts++
	}
	sums := g.takeFloats(parts * size)
	p.c.at = sums
	if rest > 0 {
		first := p
		first.k = rest
		g.product(name, first)
		p.c.at += uint64(size * floatBytes)
	}
	for h := range p.heads {
		of := p
		for _, x := range []*matrix{&of.a, &of.b, &of.c} {
			x.at += uint64(h * x.step * floatBytes)
			x.step = rows * x.stride
		}
		of.a.at += uint64(rest * of.a.stride * floatBytes)
		of.b.at += uint64(rest * of.b.stride * floatBytes)
		of.k, of.heads, of.c.step = rows, full, size
		g.product(name, of)
	}
	g.columnSum(g.at(c), sums, parts, size, 1)
}

// of returns a matrix, or the first head of one of several.
func (g *gpu) of(t backend.Tensor, heads int, transposed bool) matrix {
	m := matrix{at: g.at(t), stride: max(1, t.Cols), transposed: transposed, half: t.Half}
	if heads > 1 {
		m.step = t.Cols / heads
	}
	return m
}

// factors returns the factors that a product is computed with: where a is bfloat16 and b float32, a
// is widened first.
func (g *gpu) factors(a, b backend.Tensor) (x, y backend.Tensor) {
	if a.Half && !b.Half {
		wide := g.Scratch(a.Rows, a.Cols)
		g.widen(wide, a)
		return wide, b
	}
	return a, b
}
