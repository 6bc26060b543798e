//go:build cuda && cgo && linux

package cuda

import (
	"math"

	"gdb/compute/backend"
)

// Bias adds bias to each row.
func (g *gpu) Bias(x, bias backend.Tensor) { g.bias("Bias", x, bias, false) }

// BiasReLU adds bias to each row and cuts at zero.
func (g *gpu) BiasReLU(x, bias backend.Tensor) { g.bias("BiasReLU", x, bias, true) }

func (g *gpu) bias(op string, x, bias backend.Tensor, relu bool) {
	if g.ready(bias.Len() == x.Cols, op, x, bias) {
		g.launch("bias", x.Len(), x, bias, x.Rows, x.Cols, relu, g.fours(x.Cols, x, bias))
	}
}

// ReLUGrad masks and scales dx by y.
func (g *gpu) ReLUGrad(dx, y backend.Tensor, rate float32) {
	if g.ready(dx.Len() == y.Len(), "ReLUGrad", dx, y) {
		name := "relu_grad"
		if y.Half {
			name = "relu_grad_half"
		}
		g.launch(name, dx.Len(), dx, y, dx.Len(), 1/(1-rate), g.fours(4, dx, y))
	}
}

// dropThreshold is the draw below which values are dropped, as the CPU has it.
func dropThreshold(rate float32) int {
	if !(rate >= 0 && rate < 1) {
		panic("BUG: a dropout rate must be at least 0 and below 1")
	}
	return int(math.Round(float64(rate) * (1 << 24)))
}

// Dropout masks x.
func (g *gpu) Dropout(x backend.Tensor, first int, rate float32, key uint64) {
	if threshold := dropThreshold(rate); g.ready(true, "Dropout", x) && rate > 0 {
		g.launch("dropout", x.Len(), x, x.Len(), g.number(key, uint64(first)), threshold,
			1/(1-rate))
	}
}

// LeakyReLU works in place.
func (g *gpu) LeakyReLU(x backend.Tensor, slope float32) {
	if g.ready(true, "LeakyReLU", x) {
		g.launch("leaky_relu", x.Len(), x, x.Len(), slope, g.fours(4, x))
	}
}

// LeakyReLUGrad multiplies by the slope at an output.
func (g *gpu) LeakyReLUGrad(dx, y backend.Tensor, slope float32) {
	if g.ready(dx.Len() == y.Len(), "LeakyReLUGrad", dx, y) {
		g.launch("leaky_relu_grad", dx.Len(), dx, y, dx.Len(), slope, g.fours(4, dx, y))
	}
}

// ELU works in place.
func (g *gpu) ELU(x backend.Tensor) {
	if g.ready(true, "ELU", x) {
		g.launch("elu", x.Len(), x, x.Len())
	}
}

// ELUGrad multiplies by the slope at an output.
func (g *gpu) ELUGrad(dx, y backend.Tensor) {
	if g.ready(dx.Len() == y.Len(), "ELUGrad", dx, y) {
		g.launch("elu_grad", dx.Len(), dx, y, dx.Len())
	}
}

// GELU is computed from x.
func (g *gpu) GELU(y, x backend.Tensor) {
	if g.ready(y.Len() == x.Len(), "GELU", y, x) {
		g.launch("gelu", y.Len(), y, x, y.Len())
	}
}

// GELUGrad multiplies by the slope at an input.
func (g *gpu) GELUGrad(dx, x backend.Tensor) {
	if g.ready(dx.Len() == x.Len(), "GELUGrad", dx, x) {
		g.launch("gelu_grad", dx.Len(), dx, x, dx.Len())
	}
}

// Scale multiplies all values.
func (g *gpu) Scale(x backend.Tensor, factor float32) {
	if g.ready(true, "Scale", x) {
		g.launch("scale", x.Len(), x, x.Len(), factor, g.fours(4, x))
	}
}

// Shift adds to all values.
func (g *gpu) Shift(x backend.Tensor, number float32) {
	if g.ready(true, "Shift", x) {
		g.launch("shift", x.Len(), x, x.Len(), number)
	}
}

// RowScale multiplies rows.
func (g *gpu) RowScale(x, f backend.Tensor) {
	if g.ready(f.Len() == x.Rows, "RowScale", x, f) {
		g.launch("row_scale", x.Len(), x, f, x.Rows, x.Cols)
	}
}

// Columns copies columns.
func (g *gpu) Columns(out, x backend.Tensor, first int) {
	if g.ready(out.Rows == x.Rows && first+out.Cols <= x.Cols, "Columns", out, x) {
		name := "copy_columns"
		if x.Half {
			name = "copy_columns_half"
		}
		g.launch(name, out.Len(), out, x, out.Rows, out.Cols, out.Cols, 0, x.Cols, first)
	}
}

// ColumnsGrad puts the gradient of columns in their place.
func (g *gpu) ColumnsGrad(dx, dout backend.Tensor, first int) {
	if g.ready(dout.Rows == dx.Rows && first+dout.Cols <= dx.Cols, "ColumnsGrad", dx, dout) {
		g.Zero(dx)
		g.launch("copy_columns", dout.Len(), dx, dout, dx.Rows, dout.Cols, dx.Cols, first,
			dout.Cols, 0)
	}
}

// HeadMean averages heads.
func (g *gpu) HeadMean(out, x backend.Tensor, heads int) {
	if g.ready(out.Rows == x.Rows && x.Cols == heads*out.Cols, "HeadMean", out, x) {
		g.launch("head_mean", out.Len(), out, x, out.Rows, heads, out.Cols)
	}
}

// HeadMeanGrad gives each head its share.
func (g *gpu) HeadMeanGrad(dx, dout backend.Tensor, heads int) {
	if g.ready(dout.Rows == dx.Rows && dx.Cols == heads*dout.Cols, "HeadMeanGrad", dx, dout) {
		g.launch("head_mean_grad", dx.Len(), dx, dout, dout.Rows, heads, dout.Cols)
	}
}
