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
	y, a, b, heads := o.Out, o.In[0], o.In[1], max(1, o.Heads)
	shape := kernel.Shape{M: a.Rows, K: a.Cols / heads, N: b.Cols / heads, Heads: heads, Add: o.Acc}
	switch {
	case !a.Half:
		return false
	case !b.Half:
		bf16.GEMMWidened(c.pool, c.values(y), c.numbers(a), c.values(b), shape)
	case heads > 1 && y.Half:
		bf16.GEMMHeads(c.pool, c.numbers(y), c.numbers(a), c.numbers(b), shape)
	case heads > 1:
		bf16.GEMMHeads(c.pool, c.values(y), c.numbers(a), c.numbers(b), shape)
	case y.Half:
		bf16.GEMM(c.pool, c.numbers(y), c.numbers(a), c.numbers(b), shape)
	default:
		bf16.GEMM(c.pool, c.values(y), c.numbers(a), c.numbers(b), shape)
	}
	return true
}

// halfProductTA is halfProduct of a transposed first factor.
func (c *cpu) halfProductTA(o *Operands) bool {
	y, a, b, heads := o.Out, o.In[0], o.In[1], max(1, o.Heads)
	shape := kernel.Shape{M: a.Rows, K: a.Cols / heads, N: b.Cols / heads, Heads: heads, Add: o.Acc}
	switch {
	case !a.Half:
		return false
	case !b.Half:
		bf16.GEMMTAWidened(c.pool, c.values(y), c.numbers(a), c.values(b), shape)
	case heads > 1:
		bf16.GEMMHeadsTA(c.pool, c.values(y), c.numbers(a), c.numbers(b), shape)
	default:
		bf16.GEMMTA(c.pool, c.values(y), c.numbers(a), c.numbers(b), shape)
	}
	return true
}

// halfProductTB is halfProduct of a transposed second factor, which is of bfloat16 too.
func (c *cpu) halfProductTB(o *Operands) bool {
	y, a, b, heads := o.Out, o.In[0], o.In[1], max(1, o.Heads)
	shape := kernel.Shape{M: a.Rows, N: a.Cols / heads, K: b.Rows, Heads: heads, Add: o.Acc}
	switch {
	case !a.Half:
		return false
	case heads > 1 && y.Half:
		bf16.GEMMHeadsTB(c.pool, c.numbers(y), c.numbers(a), c.numbers(b), shape)
	case heads > 1:
		bf16.GEMMHeadsTB(c.pool, c.values(y), c.numbers(a), c.numbers(b), shape)
	case y.Half:
		bf16.GEMMTB(c.pool, c.numbers(y), c.numbers(a), c.numbers(b), shape)
	default:
		bf16.GEMMTB(c.pool, c.values(y), c.numbers(a), c.numbers(b), shape)
	}
	return true
}
