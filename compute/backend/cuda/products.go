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
	if g.err == nil {
		g.queue.ops = append(g.queue.ops, operation{name: name, kind: productOperation, product: p})
	}
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
