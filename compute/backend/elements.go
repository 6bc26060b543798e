package backend

import (
	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
)

// normEps is added to variances, so that rows of equal values are not divided by zero.
const normEps = 1e-5

// normShare is how much of a batch's statistics those of all batches take over, as other libraries
// have it.
const normShare = 0.1

// Elements are operations on single values and on rows. They work in place, but where an input
// stands beside an output.
type Elements interface {
	// LeakyReLU multiplies what is below zero by slope, which is 0 for ReLU. y is an output.
	LeakyReLU(x Tensor, slope float32)
	LeakyReLUGrad(dx, y Tensor, slope float32)
	// ELU is exp(x)-1 below zero. ELUGrad is given the output.
	ELU(x Tensor)
	ELUGrad(dx, y Tensor)
	// GELU is x times the share of the normal distribution below x. GELUGrad is given the input.
	GELU(y, x Tensor)
	GELUGrad(dx, x Tensor)
	// LayerNorm scales rows to mean 0 and variance 1, then by gamma and beta; stats (rows,2) keeps
	// what its gradient needs.
	LayerNorm(y, x, gamma, beta, stats Tensor)
	LayerNormGrad(dx, dgamma, dbeta, dy, x, gamma, stats Tensor)
	// BatchNorm does so with columns; stats (2,cols) gets their means and 1/√variances.
	// BatchNormGrad is its gradient, TrackNorm takes stats of so many rows into running statistics
	// (2,cols), means and variances, and NormApply scales by those instead.
	BatchNorm(y, x, gamma, beta, stats Tensor)
	BatchNormGrad(dx, dgamma, dbeta, dy, x, gamma, stats Tensor)
	TrackNorm(running, stats Tensor, rows int)
	NormApply(y, x, gamma, beta, running Tensor)
	// Scale multiplies all values, Shift adds to them, RowScale multiplies each row by a value of f
	// (rows,1).
	Scale(x Tensor, factor float32)
	Shift(x Tensor, number float32)
	RowScale(x, f Tensor)
	// HeadMean is the mean of the heads of x; HeadMeanGrad its gradient.
	HeadMean(out, x Tensor, heads int)
	HeadMeanGrad(dx, dout Tensor, heads int)
	// Columns writes the columns of x from first on to out; ColumnsGrad writes dout to the columns
	// of dx from first on, and zeros to the others.
	Columns(out, x Tensor, first int)
	ColumnsGrad(dx, dout Tensor, first int)
}

// HeadMul is c = a·b for each head.
func (c *cpu) HeadMul(y, a, b Tensor, heads int, acc bool) {
	if c.ready(a.Cols == heads*b.Rows && y.Rows == a.Rows && y.Cols == b.Cols, "HeadMul", y, a,
		b) && !c.matMulHalf(y, a, b, heads, acc) {
		kernel.GEMMHeads(c.pool, c.values(y), c.values(a), c.values(b), a.Rows, b.Rows,
			b.Cols/heads, heads, acc)
	}
}

// HeadMulTA is c = aᵀ·b for each head.
func (c *cpu) HeadMulTA(y, a, b Tensor, heads int, acc bool) {
	if c.ready(a.Rows == b.Rows && a.Cols == heads*y.Rows && y.Cols == b.Cols, "HeadMulTA", y, a,
		b) && !c.matMulTAHalf(y, a, b, heads, acc) {
		kernel.GEMMHeadsTA(c.pool, c.values(y), c.values(a), c.values(b), a.Rows, y.Rows,
			b.Cols/heads, heads, acc)
	}
}

// HeadMulTB is c = a·bᵀ for each head.
func (c *cpu) HeadMulTB(y, a, b Tensor, heads int, acc bool) {
	if c.ready(a.Cols == b.Cols && y.Rows == a.Rows && y.Cols == heads*b.Rows, "HeadMulTB", y, a,
		b) && !c.matMulTBHalf(y, a, b, heads, acc) {
		kernel.GEMMHeadsTB(c.pool, c.values(y), c.values(a), c.values(b), a.Rows, a.Cols/heads,
			b.Rows, heads, acc)
	}
}

// ReLUGrad masks and scales dx by y.
func (c *cpu) ReLUGrad(dx, y Tensor, rate float32) {
	if !c.ready(dx.Len() == y.Len(), "ReLUGrad", dx, y) {
		return
	}
	if y.Half {
		bf16.ReLUGrad(c.pool, c.values(dx), c.values(dx), c.numbers(y), rate)
		return
	}
	kernel.DropoutReLUGrad(c.pool, c.values(dx), c.values(y), rate)
}

// Dropout masks x.
func (c *cpu) Dropout(x Tensor, first int, rate float32, key uint64) {
	if c.ready(true, "Dropout", x) {
		kernel.Dropout(c.pool, c.values(x), first, rate, key)
	}
}

// LeakyReLU works in place.
func (c *cpu) LeakyReLU(x Tensor, slope float32) {
	if c.ready(true, "LeakyReLU", x) {
		kernel.LeakyReLU(c.pool, c.values(x), slope)
	}
}

// LeakyReLUGrad multiplies by the slope at an output.
func (c *cpu) LeakyReLUGrad(dx, y Tensor, slope float32) {
	if c.ready(dx.Len() == y.Len(), "LeakyReLUGrad", dx, y) {
		kernel.LeakyReLUGrad(c.pool, c.values(dx), c.values(y), slope)
	}
}

// ELU works in place.
func (c *cpu) ELU(x Tensor) {
	if c.ready(true, "ELU", x) {
		kernel.ELU(c.pool, c.values(x))
	}
}

// ELUGrad multiplies by the slope at an output.
func (c *cpu) ELUGrad(dx, y Tensor) {
	if c.ready(dx.Len() == y.Len(), "ELUGrad", dx, y) {
		kernel.ELUGrad(c.pool, c.values(dx), c.values(y))
	}
}

// GELU is computed from x.
func (c *cpu) GELU(y, x Tensor) {
	if c.ready(y.Len() == x.Len(), "GELU", y, x) {
		kernel.GELU(c.pool, c.values(y), c.values(x))
	}
}

// GELUGrad multiplies by the slope at an input.
func (c *cpu) GELUGrad(dx, x Tensor) {
	if c.ready(dx.Len() == x.Len(), "GELUGrad", dx, x) {
		kernel.GELUGrad(c.pool, c.values(dx), c.values(x))
	}
}

// LayerNorm normalizes rows.
func (c *cpu) LayerNorm(y, x, gamma, beta, stats Tensor) {
	if c.ready(y.Len() == x.Len() && stats.Len() == 2*x.Rows && gamma.Len() == x.Cols, "LayerNorm",
		y, x, gamma, beta) {
		kernel.LayerNorm(c.pool, c.values(y), c.values(x), c.values(gamma), c.values(beta),
			c.values(stats), x.Rows, x.Cols, normEps)
	}
}

// LayerNormGrad computes the gradients of x, gamma and beta.
func (c *cpu) LayerNormGrad(dx, dgamma, dbeta, dy, x, gamma, stats Tensor) {
	if c.ready(dx.Len() == x.Len() && dy.Len() == x.Len() && dgamma.Len() == x.Cols,
		"LayerNormGrad", dx, dy, x) {
		kernel.LayerNormGrad(c.pool, c.values(dx), c.values(dgamma), c.values(dbeta), c.values(dy),
			c.values(x), c.values(gamma), c.values(stats), x.Rows, x.Cols)
	}
}

// BatchNorm normalizes columns.
func (c *cpu) BatchNorm(y, x, gamma, beta, stats Tensor) {
	if c.ready(y.Len() == x.Len() && stats.Len() == 2*x.Cols && gamma.Len() == x.Cols, "BatchNorm",
		y, x, gamma, beta) {
		kernel.BatchNorm(c.pool, c.values(y), c.values(x), c.values(gamma), c.values(beta),
			c.values(stats), x.Rows, x.Cols, normEps)
	}
}

// BatchNormGrad computes the gradients of x, gamma and beta.
func (c *cpu) BatchNormGrad(dx, dgamma, dbeta, dy, x, gamma, stats Tensor) {
	if c.ready(dx.Len() == x.Len() && dy.Len() == x.Len() && dgamma.Len() == x.Cols,
		"BatchNormGrad", dx, dy, x) {
		kernel.BatchNormGrad(c.pool, c.values(dx), c.values(dgamma), c.values(dbeta), c.values(dy),
			c.values(x), c.values(gamma), c.values(stats), x.Rows, x.Cols)
	}
}

// TrackNorm moves running statistics towards those of a batch, whose variances are taken as
// estimates of all rows': of n rows, n/(n-1) of the batch's own. A batch of fewer than two rows has
// none.
func (c *cpu) TrackNorm(running, stats Tensor, rows int) {
	n := stats.Cols
	if !c.ready(running.Len() == 2*n && stats.Len() == 2*n, "TrackNorm", running, stats) ||
		rows < 2 {
		return
	}
	r, s := c.values(running), c.values(stats)
	for j := range n {
		variance := 1/(s[n+j]*s[n+j]) - normEps
		variance *= float32(rows) / float32(rows-1)
		r[j] += normShare * (s[j] - r[j])
		r[n+j] += normShare * (max(0, variance) - r[n+j])
	}
}

// NormApply normalizes columns by given statistics.
func (c *cpu) NormApply(y, x, gamma, beta, running Tensor) {
	n := x.Cols
	if c.ready(y.Len() == x.Len() && running.Len() == 2*n && gamma.Len() == n, "NormApply", y, x,
		gamma, beta) {
		r := c.values(running)
		kernel.NormApply(c.pool, c.values(y), c.values(x), c.values(gamma), c.values(beta), r[:n],
			r[n:], x.Rows, n, normEps)
	}
}

// Scale multiplies all values.
func (c *cpu) Scale(x Tensor, factor float32) {
	if c.ready(true, "Scale", x) {
		kernel.Scale(c.pool, c.values(x), factor)
	}
}

// Shift adds to all values.
func (c *cpu) Shift(x Tensor, number float32) {
	if c.ready(true, "Shift", x) {
		kernel.Shift(c.pool, c.values(x), number)
	}
}

// RowScale multiplies rows.
func (c *cpu) RowScale(x, f Tensor) {
	if c.ready(f.Len() == x.Rows, "RowScale", x, f) {
		v := c.values(x)
		kernel.RowScale(c.pool, v, v, c.values(f), x.Rows, x.Cols)
	}
}

// Columns copies columns.
func (c *cpu) Columns(out, x Tensor, first int) {
	if c.ready(out.Rows == x.Rows && first+out.Cols <= x.Cols, "Columns", out, x) {
		if x.Half {
			bf16.CopyColumns(c.pool, c.numbers(out), c.numbers(x), out.Rows, out.Cols, x.Cols,
				first)
			return
		}
		kernel.CopyColumns(c.pool, c.values(out), c.values(x), out.Rows, out.Cols, out.Cols, 0,
			x.Cols, first)
	}
}

// ColumnsGrad puts the gradient of columns in their place.
func (c *cpu) ColumnsGrad(dx, dout Tensor, first int) {
	if c.ready(dout.Rows == dx.Rows && first+dout.Cols <= dx.Cols, "ColumnsGrad", dx, dout) {
		clear(c.values(dx))
		kernel.CopyColumns(c.pool, c.values(dx), c.values(dout), dx.Rows, dout.Cols, dx.Cols,
			first, dout.Cols, 0)
	}
}

// HeadMean averages heads.
func (c *cpu) HeadMean(out, x Tensor, heads int) {
	if c.ready(out.Rows == x.Rows && x.Cols == heads*out.Cols, "HeadMean", out, x) {
		kernel.HeadMean(c.pool, c.values(out), c.values(x), out.Rows, heads, out.Cols)
	}
}

// HeadMeanGrad gives each head its share.
func (c *cpu) HeadMeanGrad(dx, dout Tensor, heads int) {
	if c.ready(dout.Rows == dx.Rows && dx.Cols == heads*dout.Cols, "HeadMeanGrad", dx, dout) {
		kernel.HeadMeanGrad(c.pool, c.values(dx), c.values(dout), dout.Rows, heads, dout.Cols)
	}
}
