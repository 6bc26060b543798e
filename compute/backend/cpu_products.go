package backend

import (
	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
)

// cpuProducts take factors of bfloat16, or only the first such. The first factor has heads·k
// columns, and n are those of a head of the result.
var cpuProducts = map[string]cpuKernel{
	"matmul": func(c *cpu, o *Operands) {
		a, b := o.In[0], o.In[1]
		if !c.halfProduct(o) {
			kernel.GEMM(c.pool, c.values(o.Out), c.values(a), c.values(b), kernel.Shape{M: a.Rows,
				K: a.Cols, N: b.Cols, Add: o.Acc})
		}
	},
	"matmul-ta": func(c *cpu, o *Operands) {
		a, b := o.In[0], o.In[1]
		if !c.halfProductTA(o) {
			kernel.GEMMTA(c.pool, c.values(o.Out), c.values(a), c.values(b),
				kernel.Shape{M: a.Rows, K: a.Cols, N: b.Cols, Add: o.Acc})
		}
	},
	"matmul-tb": func(c *cpu, o *Operands) {
		a, b := o.In[0], o.In[1]
		if !c.halfProductTB(o) {
			kernel.GEMMTB(c.pool, c.values(o.Out), c.values(a), c.values(b),
				kernel.Shape{M: a.Rows, N: a.Cols, K: b.Rows, Add: o.Acc})
		}
	},
	"headmul": func(c *cpu, o *Operands) {
		a, b := o.In[0], o.In[1]
		if !c.halfProduct(o) {
			kernel.GEMMHeads(c.pool, c.values(o.Out), c.values(a), c.values(b),
				kernel.Shape{M: a.Rows, K: b.Rows, N: b.Cols / o.Heads, Heads: o.Heads, Add: o.Acc})
		}
	},
	"headmul-ta": func(c *cpu, o *Operands) {
		a, b := o.In[0], o.In[1]
		if !c.halfProductTA(o) {
			kernel.GEMMHeadsTA(c.pool, c.values(o.Out), c.values(a), c.values(b),
				kernel.Shape{M: a.Rows, K: o.Out.Rows, N: b.Cols / o.Heads, Heads: o.Heads,
					Add: o.Acc})
		}
	},
	"headmul-tb": func(c *cpu, o *Operands) {
		a, b := o.In[0], o.In[1]
		if !c.halfProductTB(o) {
			kernel.GEMMHeadsTB(c.pool, c.values(o.Out), c.values(a), c.values(b),
				kernel.Shape{M: a.Rows, N: a.Cols / o.Heads, K: b.Rows, Heads: o.Heads, Add: o.Acc})
		}
	},
}

// halfProduct is a product whose first factor is of bfloat16. It says whether it is such.
func (c *cpu) halfProduct(o *Operands) bool {
	a, b := o.In[0], o.In[1]
	s := shapeOf(o, b.Cols)
	switch {
	case !a.Half:
		return false
	case !b.Half:
		bf16.GEMMWidened(c.pool, c.values(o.Out), c.numbers(a), c.values(b), s)
	case o.Out.Half:
		multiplyHalf(c, c.numbers(o.Out), o, s)
	default:
		multiplyHalf(c, c.values(o.Out), o, s)
	}
	return true
}

// shapeOf is that of a product whose first factor has K columns for each head, and N are those of
// n.
func shapeOf(o *Operands, n int) kernel.Shape {
	heads := max(1, o.Heads)
	return kernel.Shape{M: o.In[0].Rows, K: o.HeadCols(o.In[0]), N: n / heads, Heads: heads,
		Add: o.Acc}
}

// multiplyHalf multiplies two factors of bfloat16.
func multiplyHalf[T bf16.Value](c *cpu, y []T, o *Operands, s kernel.Shape) {
	if s.Heads > 1 {
		bf16.GEMMHeads(c.pool, y, c.numbers(o.In[0]), c.numbers(o.In[1]), s)
		return
	}
	bf16.GEMM(c.pool, y, c.numbers(o.In[0]), c.numbers(o.In[1]), s)
}

// halfProductTA is halfProduct of a transposed first factor.
func (c *cpu) halfProductTA(o *Operands) bool {
	a, b := o.In[0], o.In[1]
	s := shapeOf(o, b.Cols)
	switch {
	case !a.Half:
		return false
	case !b.Half:
		bf16.GEMMTAWidened(c.pool, c.values(o.Out), c.numbers(a), c.values(b), s)
	case s.Heads > 1:
		bf16.GEMMHeadsTA(c.pool, c.values(o.Out), c.numbers(a), c.numbers(b), s)
	default:
		bf16.GEMMTA(c.pool, c.values(o.Out), c.numbers(a), c.numbers(b), s)
	}
	return true
}

// halfProductTB is halfProduct of a transposed second factor, which is of bfloat16 too.
func (c *cpu) halfProductTB(o *Operands) bool {
	switch {
	case !o.In[0].Half:
		return false
	case o.Out.Half:
		multiplyHalfTB(c, c.numbers(o.Out), o)
	default:
		multiplyHalfTB(c, c.values(o.Out), o)
	}
	return true
}

// multiplyHalfTB multiplies two factors of bfloat16, the second of which is transposed: N are the
// columns of both, and K the rows of the second.
func multiplyHalfTB[T bf16.Value](c *cpu, y []T, o *Operands) {
	a, b := c.numbers(o.In[0]), c.numbers(o.In[1])
	s := kernel.Shape{M: o.In[0].Rows, N: o.HeadCols(o.In[0]), K: o.In[1].Rows,
		Heads: max(1, o.Heads), Add: o.Acc}
	if s.Heads > 1 {
		bf16.GEMMHeadsTB(c.pool, y, a, b, s)
		return
	}
	bf16.GEMMTB(c.pool, y, a, b, s)
}
