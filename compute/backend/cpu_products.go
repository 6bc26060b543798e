package backend

import (
	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
)

// cpuProducts take factors of bfloat16, or only the first such.
var cpuProducts = map[string]cpuKernel{
	"matmul": matMulCPU, "matmul-ta": matMulTACPU, "matmul-tb": matMulTBCPU,
	"headmul": matMulCPU, "headmul-ta": matMulTACPU, "headmul-tb": matMulTBCPU,
	"sparse-matmul": func(c *cpu, o *Operands) {
		kernel.SparseGEMM(c.pool, c.values(o.Out), c.words(o.In[0]), c.values(o.In[1]),
			sparseOf(o, o.In[1].Rows))
	},
	"sparse-matmul-ta": func(c *cpu, o *Operands) {
		kernel.SparseGEMMTA(c.pool, c.values(o.Out), c.words(o.In[0]), c.values(o.In[1]),
			sparseOf(o, o.Out.Rows))
	},
	"sparse-dropout": func(c *cpu, o *Operands) {
		kernel.SparseDropout(c.pool, c.words(o.Out), sparseOf(o, o.First), o.Drop)
	},
	"type-matmul": typeMatMulCPU, "segment-matmul": typeMatMulCPU,
	"type-matmul-ta": typeMatMulTACPU, "segment-matmul-ta": typeMatMulTACPU,
	"type-matmul-tb": typeMatMulTBCPU, "segment-matmul-tb": typeMatMulTBCPU,
	"type-matmul-t": typeMatMulTBCPU,
	"fold":          func(c *cpu, o *Operands) { c.fold(o, kernel.GEMMTBByType) },
	"fold-vectors":  func(c *cpu, o *Operands) { c.fold(o, kernel.GEMMByType) },
	"fold-matrices": func(c *cpu, o *Operands) { c.fold(o, kernel.GEMMTAByType) },
}

// sparseOf returns the shape of sparse rows of dim columns, and of their product.
func sparseOf(o *Operands, dim int) kernel.SparseShape {
	return kernel.SparseShape{Rows: o.In[0].Rows, Words: o.In[0].Cols, Dim: dim, N: o.Out.Cols,
		Add: o.Acc}
}

func typeMatMulCPU(c *cpu, o *Operands) {
	kernel.GEMMByType(c.pool, c.values(o.Out), c.values(o.In[0]), c.values(o.In[1]),
		c.byType(o, o.In[0].Cols, o.Out.Cols))
}

func typeMatMulTACPU(c *cpu, o *Operands) {
	kernel.GEMMTAByType(c.pool, c.values(o.Out), c.values(o.In[0]), c.values(o.In[1]),
		c.byType(o, o.In[0].Cols, o.Out.Cols))
}

func typeMatMulTBCPU(c *cpu, o *Operands) {
	kernel.GEMMTBByType(c.pool, c.values(o.Out), c.values(o.In[0]), c.values(o.In[1]),
		c.byType(o, o.Out.Cols, o.In[0].Cols))
}

// fold does a product by type of rows of which each has a type of its own: row i has type i.
func (c *cpu) fold(o *Operands, do func(p *kernel.Pool, c, a, b []float32, t kernel.ByType)) {
	types := c.pool.TakeWords(len(o.Parts))
	defer c.pool.GiveWords(types)
	for i := range types {
		types[i] = uint32(i)
	}
	n := o.In[1].Cols // of the matrices, or of the rows that their gradient is of
	do(c.pool, c.values(o.Out), c.values(o.In[0]), c.values(o.In[1]), kernel.ByType{Types: types,
		Parts: o.Parts, Width: max(1, o.Heads) * o.Parts[0], Heads: o.Heads, N: n, Add: o.Acc})
}

// byType returns the types of the rows of a product, whose matrices have n columns, and the lists
// of those that are summed up.
func (c *cpu) byType(o *Operands, width, n int) kernel.ByType {
	t := kernel.ByType{Types: c.words(o.In[2]), Parts: o.Parts, Width: width, Heads: o.Heads,
		N: n, Add: o.Acc}
	if o.Lists.Lists > 0 {
		t.Off = c.lists[o.Lists.ID].Off
	}
	return t
}

// shapeOf returns the shape of a product: for each head, the first factor has k columns, and n is
// as many.
func shapeOf(o *Operands, n int) kernel.Shape {
	return kernel.Shape{M: o.In[0].Rows, K: o.HeadCols(o.In[0]), N: n, Heads: o.Heads, Add: o.Acc}
}

// matMulCPU is c = a·b.
func matMulCPU(c *cpu, o *Operands) {
	y, a, b := o.Out, o.In[0], o.In[1]
	s := shapeOf(o, o.HeadCols(b))
	switch {
	case !a.Half:
		kernel.GEMM(c.pool, c.values(y), c.values(a), c.values(b), s)
	case !b.Half:
		bf16.GEMMWidened(c.pool, c.values(y), c.numbers(a), c.values(b), s)
	case y.Half:
		bf16.GEMM(c.pool, c.numbers(y), c.numbers(a), c.numbers(b), s)
	default:
		bf16.GEMM(c.pool, c.values(y), c.numbers(a), c.numbers(b), s)
	}
}

// matMulTACPU is c = aᵀ·b.
func matMulTACPU(c *cpu, o *Operands) {
	y, a, b := o.Out, o.In[0], o.In[1]
	s := shapeOf(o, o.HeadCols(b))
	switch {
	case !a.Half:
		kernel.GEMMTA(c.pool, c.values(y), c.values(a), c.values(b), s)
	case !b.Half:
		bf16.GEMMTAWidened(c.pool, c.values(y), c.numbers(a), c.values(b), s)
	default:
		bf16.GEMMTA(c.pool, c.values(y), c.numbers(a), c.numbers(b), s)
	}
}

// matMulTBCPU is c = a·bᵀ, of which both factors have n columns for each head.
func matMulTBCPU(c *cpu, o *Operands) {
	y, a, b := o.Out, o.In[0], o.In[1]
	s := shapeOf(o, o.HeadCols(a))
	s.K = b.Rows
	switch {
	case !a.Half:
		kernel.GEMMTB(c.pool, c.values(y), c.values(a), c.values(b), s)
	case y.Half:
		bf16.GEMMTB(c.pool, c.numbers(y), c.numbers(a), c.numbers(b), s)
	default:
		bf16.GEMMTB(c.pool, c.values(y), c.numbers(a), c.numbers(b), s)
	}
}
