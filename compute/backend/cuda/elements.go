//go:build cuda && cgo && linux

package cuda

import (
	"math"

	"gdb/compute/backend"
)

// halfBytes is the size of a value of bfloat16.
const halfBytes = 2

// The activations of the kernel activate.
const (
	noActivation = iota
	reluActivation
	eluActivation
)

// elements work in place, but for results of bfloat16.
var elements = map[string]deviceKernel{
	"bias":      func(g *gpu, o *backend.Operands) { g.bias(o, false) },
	"bias-relu": func(g *gpu, o *backend.Operands) { g.bias(o, true) },
	"relu": func(g *gpu, o *backend.Operands) {
		if !g.activates(o, reluActivation) {
			g.leaky(o.Out, 0)
			g.drop(o)
		}
	},
	"elu": func(g *gpu, o *backend.Operands) {
		if !g.activates(o, eluActivation) {
			g.launch("elu", o.Out.Len(), o.Out, o.Out.Len())
		}
	},
	"dropout": func(g *gpu, o *backend.Operands) {
		if !g.activates(o, noActivation) {
			g.drop(o)
		}
	},
	"relu-grad": func(g *gpu, o *backend.Operands) {
		dx, y, n, scale := o.Out, o.In[1], o.Out.Len(), 1/(1-o.Scalar)
		switch {
		case dx.Half:
			g.launch("relu_grad_to", n, dx, o.In[0], y, n, scale, g.fours(4, dx, o.In[0], y),
				!y.Half)
		case y.Half:
			g.launch("relu_grad_half", n, dx, y, n, scale, g.fours(4, dx, y))
		default:
			g.launch("relu_grad", n, dx, y, n, scale, g.fours(4, dx, y))
		}
	},
	"elu-grad": func(g *gpu, o *backend.Operands) {
		dx, y, d, n := o.In[0], o.In[1], o.Drop, o.Out.Len()
		switch {
		case !y.Half:
			g.launch("elu_grad", n, o.Out, y, n)
			return
		case !o.Out.Half:
			dx = o.Out
		}
		if n > 0 {
			g.launch("elu_grad_to", n, o.Out, dx, y, n, g.number(d.Key, uint64(d.First)),
				dropThreshold(d.Rate), 1/(1-d.Rate), 1-d.Rate, !o.Out.Half)
		}
	},
	"gelu": func(g *gpu, o *backend.Operands) {
		g.launch("gelu", o.Out.Len(), o.Out, o.In[0], o.Out.Len())
	},
	"gelu-grad": func(g *gpu, o *backend.Operands) {
		g.launch("gelu_grad", o.Out.Len(), o.Out, o.In[1], o.Out.Len())
	},
	"leaky-relu":      func(g *gpu, o *backend.Operands) { g.leaky(o.Out, o.Scalar) },
	"leaky-relu-grad": leakyGrad,
	"add": func(g *gpu, o *backend.Operands) {
		y := o.In[1]
		x := o.Out.Last(y.Rows)
		g.launch("add", x.Len(), x, y, x.Len(), g.fours(4, x, y))
	},
	"scale": func(g *gpu, o *backend.Operands) {
		g.launch("scale", o.Out.Len(), o.Out, o.Out.Len(), o.Scalar, g.fours(4, o.Out))
	},
	"shift": func(g *gpu, o *backend.Operands) {
		g.launch("shift", o.Out.Len(), o.Out, o.Out.Len(), o.Scalar)
	},
	"row-scale": func(g *gpu, o *backend.Operands) {
		g.launch("row_scale", o.Out.Len(), o.Out, o.In[1], o.Out.Rows, o.Out.Cols)
	},
	"narrow": func(g *gpu, o *backend.Operands) {
		x := o.In[0]
		g.launch("narrow", x.Len(), o.Out, x, x.Len(), g.fours(4, o.Out, x))
	},
	"widen": func(g *gpu, o *backend.Operands) { g.widen(o.Out, o.In[0]) },
	"zero":  func(g *gpu, o *backend.Operands) { g.zero(o.Out) },
	"copy":  func(g *gpu, o *backend.Operands) { g.copy(o.Out, o.In[0]) },
}

// bias adds a row to each, and cuts at zero with relu.
func (g *gpu) bias(o *backend.Operands, relu bool) {
	act := noActivation
	if relu {
		act = reluActivation
	}
	if g.activates(o, act) {
		return
	}
	x, row := o.Out, o.In[1]
	g.launch("bias", x.Len(), x, row, x.Rows, x.Cols, relu, g.fours(x.Cols, x, row))
	g.drop(o)
}

// activates writes an activation to a result of bfloat16: with the row In[1], if there is one, and
// the dropout of the operands. It says whether the result is such.
func (g *gpu) activates(o *backend.Operands, act int) bool {
	out, x, d := o.Out, o.In[0], o.Drop
	if !out.Half || x.Len() == 0 {
		return out.Half
	}
	var bias uint64
	if o.In[1].Len() > 0 {
		bias = g.at(o.In[1])
	}
	g.launch("activate", x.Len(), out, x, bias, x.Len(), x.Cols, act,
		g.number(d.Key, uint64(d.First)), dropThreshold(d.Rate), 1/(1-d.Rate), !x.Half)
	return true
}

// dropThreshold returns the draw below which values are dropped, as the CPU has it.
func dropThreshold(rate float32) int {
	if !(rate >= 0 && rate < 1) {
		panic("BUG: a dropout rate must be at least 0 and below 1")
	}
	return int(math.Round(float64(rate) * (1 << 24)))
}

// drop drops the result out, if the operands say so.
func (g *gpu) drop(o *backend.Operands) {
	x, d := o.Out, o.Drop
	if threshold := dropThreshold(d.Rate); d.Rate > 0 {
		g.launch("dropout", x.Len(), x, x.Len(), g.number(d.Key, uint64(d.First)), threshold,
			1/(1-d.Rate))
	}
}

// leaky multiplies what is below zero by slope.
func (g *gpu) leaky(x backend.Tensor, slope float32) {
	g.launch("leaky_relu", x.Len(), x, x.Len(), slope, g.fours(4, x))
}

// leakyGrad multiplies by the slope at an output.
func leakyGrad(g *gpu, o *backend.Operands) {
	dx, y := o.Out, o.In[1]
	g.launch("leaky_relu_grad", dx.Len(), dx, y, dx.Len(), o.Scalar, g.fours(4, dx, y))
}

// widen makes values float32.
func (g *gpu) widen(out, x backend.Tensor) {
	g.launch("widen", x.Len(), out, x, x.Len(), g.fours(4, out, x))
}

// copy copies values.
func (g *gpu) copy(dst, src backend.Tensor) {
	if dst.Len() == 0 {
		return
	}
	if to, from := g.at(dst), g.at(src); g.err == nil {
		g.queue.ops = append(g.queue.ops, operation{name: "copy", kind: copyOperation, to: to,
			from: from, bytes: dst.Len() * width(dst)})
	}
}

// zero clears x.
func (g *gpu) zero(x backend.Tensor) {
	if x.Len() == 0 || g.err != nil {
		return
	}
	if to := g.at(x); g.err == nil {
		g.queue.ops = append(g.queue.ops, operation{name: "zero", kind: zeroOperation, to: to,
			bytes: x.Len() * width(x)})
	}
}

// columns move, join and sum up rows and columns.
var columns = map[string]deviceKernel{
	"column-sum": func(g *gpu, o *backend.Operands) { g.columnSumOf(g.at(o.Out), o.In[0]) },
	"head-mean": func(g *gpu, o *backend.Operands) {
		g.launch("head_mean", o.Out.Len(), o.Out, o.In[0], o.Out.Rows, o.Heads, o.Out.Cols)
	},
	"head-mean-grad": func(g *gpu, o *backend.Operands) {
		x := o.In[0]
		g.launch("head_mean_grad", o.Out.Len(), o.Out, x, x.Rows, o.Heads, x.Cols)
	},
	"columns": func(g *gpu, o *backend.Operands) {
		out, x, name := o.Out, o.In[0], "copy_columns"
		if x.Half {
			name = "copy_columns_half"
		}
		g.launch(name, out.Len(), out, x, out.Rows, out.Cols, out.Cols, 0, x.Cols, o.First)
	},
	"columns-grad": func(g *gpu, o *backend.Operands) {
		dx, dout := o.Out, o.In[0]
		g.zero(dx)
		g.launch("copy_columns", dout.Len(), dx, dout, dx.Rows, dout.Cols, dx.Cols, o.First,
			dout.Cols, 0)
	},
	"embed": func(g *gpu, o *backend.Operands) {
		x := o.In[0]
		g.zero(o.Out.Slice(0, o.Out.Rows-x.Rows))
		g.copy(o.Out.Last(x.Rows), x)
	},
	"type-rows": func(g *gpu, o *backend.Operands) {
		g.launch("type_rows", o.Out.Len(), o.Out, o.In[0], o.In[1], o.Out.Rows, o.Out.Cols)
	},
	"type-rows-grad": typeRowsGrad,
	"pick-rows":      pickRows,
	"put-rows":       putRows,
}

const (
	// typesPart is how many entries make a part of the sums of types at least, and typesFloats and
	// typesParts bound the partial sums and their number.
	typesPart, typesFloats, typesParts = 1 << 10, 1 << 20, 256
)

// typeRowsGrad sums rows.
func typeRowsGrad(g *gpu, o *backend.Operands) {
	dtable, dout := o.Out, o.In[0]
	if dtable.Len() == 0 {
		return
	}
	values := dtable.Len()
	most := min(typesParts, max(1, typesFloats/values))
	size := max(typesPart, (dout.Rows+most-1)/most)
	parts := (dout.Rows + size - 1) / size
	sums := g.takeFloats(parts * values)
	g.launch("type_rows_grad", parts*dout.Cols, sums, dout, o.In[1], dout.Rows, dout.Cols, values,
		size, parts)
	g.columnSum(g.at(dtable), sums, parts, values, 1)
}
