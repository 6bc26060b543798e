//go:build cuda && cgo && linux

package cuda

import "gdb/compute/backend"

// halfBytes is the size of a value of bfloat16.
const halfBytes = 2

var _ backend.Halves = (*gpu)(nil)

// launchHalf is launchSums of a kernel that has one beside it whose rows are of bfloat16, which is
// asked for with half, and told whether another operand is too.
func (g *gpu) launchHalf(name string, s summed, half, other bool, args ...any) {
	if half {
		name, args = name+"_half", append(args, other)
	} else if other {
		panic("BUG: " + name + " makes bfloat16 of float32")
	}
	g.launchSums(name, s, args...)
}

// Narrow rounds x.
func (g *gpu) Narrow(out, x backend.Tensor) {
	if g.ready(out.Len() == x.Len() && out.Half && !x.Half, "Narrow", out, x) {
		g.launch("narrow", x.Len(), out, x, x.Len(), g.fours(4, out, x))
	}
}

// Widen makes values float32.
func (g *gpu) Widen(out, x backend.Tensor) {
	if g.ready(out.Len() == x.Len() && !out.Half && x.Half, "Widen", out, x) {
		g.launch("widen", x.Len(), out, x, x.Len(), g.fours(4, out, x))
	}
}

// Activate computes an activation.
func (g *gpu) Activate(out, x backend.Tensor, a backend.Activation) {
	if !g.ready(out.Len() == x.Len() && out.Half && (a.Bias.Len() == 0 || a.Bias.Len() == x.Cols),
		"Activate", out, x, a.Bias) || x.Len() == 0 {
		return
	}
	var bias uint64
	if a.Bias.Len() > 0 {
		bias = g.at(a.Bias)
	}
	act := 0
	if a.ReLU {
		act = 1
	} else if a.ELU {
		act = 2
	}
	g.launch("activate", x.Len(), out, x, bias, x.Len(), x.Cols, act,
		g.number(a.Key, uint64(a.First)), dropThreshold(a.Rate), 1/(1-a.Rate), !x.Half)
}

// ReLUGradTo masks and scales dx by y.
func (g *gpu) ReLUGradTo(out, dx, y backend.Tensor, rate float32) {
	if g.ready(out.Len() == dx.Len() && y.Len() == dx.Len() && out.Half && !dx.Half, "ReLUGradTo",
		out, dx, y) {
		g.launch("relu_grad_to", dx.Len(), out, dx, y, dx.Len(), 1/(1-rate), g.fours(4, out, dx, y),
			!y.Half)
	}
}

// ELUGradTo scales dx by the slopes at y, and masks it.
func (g *gpu) ELUGradTo(out, dx, y backend.Tensor, a backend.Activation) {
	if g.ready(out.Len() == dx.Len() && y.Len() == dx.Len() && y.Half && !dx.Half, "ELUGradTo", out,
		dx, y) && dx.Len() > 0 {
		g.launch("elu_grad_to", dx.Len(), out, dx, y, dx.Len(), g.number(a.Key, uint64(a.First)),
			dropThreshold(a.Rate), 1/(1-a.Rate), 1-a.Rate, !out.Half)
	}
}
