package backend

import (
	"maps"

	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
)

// cpuKernel does an operation on the CPU.
type cpuKernel func(c *cpu, o *Operands)

// cpuKernels are the kernels of the CPU, by the names of operations.
var cpuKernels = map[string]cpuKernel{}

func init() {
	for _, family := range []map[string]cpuKernel{cpuElements, cpuProducts, cpuColumns, cpuNorms,
		cpuPulls, cpuEntries, cpuLosses, cpuLinks} {
		maps.Copy(cpuKernels, family)
	}
}

// cpuElements work in place, but for results of bfloat16.
var cpuElements = map[string]cpuKernel{
	"bias": func(c *cpu, o *Operands) {
		if !c.activates(o, bf16.Activation{}) {
			kernel.Bias(c.pool, c.values(o.Out), c.values(o.In[1]), o.Out.Rows, o.Out.Cols)
			c.drop(o)
		}
	},
	"bias-relu": func(c *cpu, o *Operands) {
		if !c.activates(o, bf16.Activation{ReLU: true}) {
			kernel.BiasReLU(c.pool, c.values(o.Out), c.values(o.In[1]), o.Out.Rows, o.Out.Cols)
			c.drop(o)
		}
	},
	"relu": func(c *cpu, o *Operands) {
		if !c.activates(o, bf16.Activation{ReLU: true}) {
			kernel.LeakyReLU(c.pool, c.values(o.Out), 0)
			c.drop(o)
		}
	},
	"elu": func(c *cpu, o *Operands) {
		if !c.activates(o, bf16.Activation{ELU: true}) {
			kernel.ELU(c.pool, c.values(o.Out))
		}
	},
	"dropout": func(c *cpu, o *Operands) {
		if !c.activates(o, bf16.Activation{}) {
			c.drop(o)
		}
	},
	"relu-grad": reluGradCPU,
	"elu-grad":  eluGradCPU,
	"gelu": func(c *cpu, o *Operands) {
		kernel.GELU(c.pool, c.values(o.Out), c.values(o.In[0]))
	},
	"gelu-grad": func(c *cpu, o *Operands) {
		kernel.GELUGrad(c.pool, c.values(o.Out), c.values(o.In[1]))
	},
	"leaky-relu": func(c *cpu, o *Operands) {
		kernel.LeakyReLU(c.pool, c.values(o.Out), o.Scalar)
	},
	"leaky-relu-grad": func(c *cpu, o *Operands) {
		kernel.LeakyReLUGrad(c.pool, c.values(o.Out), c.values(o.In[1]), o.Scalar)
	},
	"add": func(c *cpu, o *Operands) {
		kernel.Add(c.pool, c.values(o.Out.Last(o.In[1].Rows)), c.values(o.In[1]))
	},
	"scale": func(c *cpu, o *Operands) { kernel.Scale(c.pool, c.values(o.Out), o.Scalar) },
	"shift": func(c *cpu, o *Operands) { kernel.Shift(c.pool, c.values(o.Out), o.Scalar) },
	"row-scale": func(c *cpu, o *Operands) {
		v := c.values(o.Out)
		kernel.RowScale(c.pool, v, v, c.values(o.In[1]), o.Out.Rows, o.Out.Cols)
	},
	"narrow": func(c *cpu, o *Operands) {
		bf16.Narrow(c.pool, c.numbers(o.Out), c.values(o.In[0]))
	},
	"widen": func(c *cpu, o *Operands) {
		bf16.Widen(c.pool, c.values(o.Out), c.numbers(o.In[0]))
	},
	"zero": func(c *cpu, o *Operands) { c.zero(o.Out) },
	"copy": func(c *cpu, o *Operands) { c.copy(o.Out, o.In[0]) },
}

// activates writes an activation to a result of bfloat16: with the row In[1], if there is one, and
// the dropout of the operands. It says whether the result is such.
func (c *cpu) activates(o *Operands, activation bf16.Activation) bool {
	if !o.Out.Half {
		return false
	}
	a := activation // on the heap, where kernels take it
	if o.In[1].Len() > 0 {
		a.Bias = c.values(o.In[1])
	}
	a.Rate, a.First, a.Key = o.Drop.Rate, o.Drop.First, o.Drop.Key
	out, x := c.numbers(o.Out), o.In[0]
	if x.Half {
		bf16.Activate(c.pool, out, c.numbers(x), x.Rows, x.Cols, &a)
	} else {
		bf16.Activate(c.pool, out, c.values(x), x.Rows, x.Cols, &a)
	}
	return true
}

// drop drops the result out, if the operands say so.
func (c *cpu) drop(o *Operands) {
	if d := o.Drop; d.Rate > 0 {
		kernel.Dropout(c.pool, c.values(o.Out), d.First, d.Rate, d.Key)
	}
}

// reluGradCPU masks and scales a gradient by the output In[1].
func reluGradCPU(c *cpu, o *Operands) {
	dx, y, rate := o.In[0], o.In[1], o.Scalar
	switch {
	case o.Out.Half && y.Half:
		bf16.ReLUGrad(c.pool, c.numbers(o.Out), c.values(dx), c.numbers(y), rate)
	case o.Out.Half:
		mask := c.values(y)
		bf16.Elements(c.pool, c.numbers(o.Out), c.values(dx), dx.Rows, dx.Cols,
			func(values []float32, row int) {
				kernel.DropoutReLUGrad(nil, values, mask[row*dx.Cols:][:len(values)], rate)
			})
	case y.Half:
		bf16.ReLUGrad(c.pool, c.values(o.Out), c.values(o.Out), c.numbers(y), rate)
	default:
		kernel.DropoutReLUGrad(c.pool, c.values(o.Out), c.values(y), rate)
	}
}

// eluGradCPU scales a gradient by the slopes at the output In[1], and masks it.
func eluGradCPU(c *cpu, o *Operands) {
	y, d := o.In[1], o.Drop
	switch {
	case o.Out.Half:
		bf16.ELUGrad(c.pool, c.numbers(o.Out), c.values(o.In[0]), c.numbers(y), d)
	case y.Half:
		dx := c.values(o.Out)
		bf16.ELUGrad(c.pool, dx, dx, c.numbers(y), d)
	default:
		kernel.ELUGrad(c.pool, c.values(o.Out), c.values(y))
	}
}

// copy copies values of either kind.
func (c *cpu) copy(dst, src Tensor) {
	if src.Half {
		copy(c.numbers(dst), c.numbers(src))
		return
	}
	copy(c.values(dst), c.values(src))
}

func (c *cpu) biasByType(o *Operands, relu bool) {
	kernel.TypeBias(c.pool, c.values(o.Out), c.values(o.In[1]), c.words(o.In[2]), o.Out.Cols, relu)
}

// zero clears x.
func (c *cpu) zero(x Tensor) { clear(c.values(x)) }

// cpuColumns move, join and sum up rows and columns.
var cpuColumns = map[string]cpuKernel{
	"column-sum": func(c *cpu, o *Operands) {
		x := o.In[0]
		if x.Half {
			bf16.ColumnSum(c.pool, c.values(o.Out), c.numbers(x), x.Rows, x.Cols)
			return
		}
		kernel.ColumnSum(c.pool, c.values(o.Out), c.values(x), x.Rows, x.Cols, false)
	},
	"head-mean": func(c *cpu, o *Operands) {
		kernel.HeadMean(c.pool, c.values(o.Out), c.values(o.In[0]), o.Out.Rows, o.Heads, o.Out.Cols)
	},
	"head-mean-grad": func(c *cpu, o *Operands) {
		x := o.In[0]
		kernel.HeadMeanGrad(c.pool, c.values(o.Out), c.values(x), x.Rows, o.Heads, x.Cols)
	},
	"columns": func(c *cpu, o *Operands) {
		out, x := o.Out, o.In[0]
		if x.Half {
			bf16.CopyColumns(c.pool, c.numbers(out), c.numbers(x), kernel.Columns{Rows: out.Rows,
				Count: out.Cols, FromWidth: x.Cols, From: o.First})
			return
		}
		kernel.CopyColumns(c.pool, c.values(out), c.values(x), kernel.Columns{Rows: out.Rows,
			Count: out.Cols, ToWidth: out.Cols, FromWidth: x.Cols, From: o.First})
	},
	"columns-grad": func(c *cpu, o *Operands) {
		dx, dout := o.Out, o.In[0]
		c.zero(dx)
		kernel.CopyColumns(c.pool, c.values(dx), c.values(dout), kernel.Columns{Rows: dx.Rows,
			Count: dout.Cols, ToWidth: dx.Cols, To: o.First, FromWidth: dout.Cols})
	},
	"embed": func(c *cpu, o *Operands) {
		x := o.In[0]
		c.zero(o.Out.Slice(0, o.Out.Rows-x.Rows))
		c.copy(o.Out.Last(x.Rows), x)
	},
	"type-rows": func(c *cpu, o *Operands) {
		kernel.TypeRows(c.pool, c.values(o.Out), c.values(o.In[0]), c.words(o.In[1]), o.Out.Cols)
	},
	"type-rows-grad": func(c *cpu, o *Operands) {
		x := o.In[0]
		kernel.TypeRowsGrad(c.pool, c.values(o.Out), c.values(x), c.words(o.In[1]), x.Cols)
	},
	"type-bias":      func(c *cpu, o *Operands) { c.biasByType(o, false) },
	"type-bias-relu": func(c *cpu, o *Operands) { c.biasByType(o, true) },
	"type-shares": func(c *cpu, o *Operands) {
		kernel.TypeShares(c.pool, c.values(o.Out), c.values(o.In[1]), c.words(o.In[0]), o.Out.Cols)
	},
	"pick-rows": func(c *cpu, o *Operands) {
		kernel.PickRows(c.pool, c.values(o.Out), c.values(o.In[0]), c.values(o.In[1]),
			c.words(o.In[2]), o.Out.Cols)
	},
	"put-rows": func(c *cpu, o *Operands) {
		kernel.PutRows(c.pool, c.values(o.Out), c.values(o.In[0]), c.words(o.In[1]), o.Out.Cols)
	},
}
