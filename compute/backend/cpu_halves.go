package backend

import (
	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
	"gdb/internal/mem"
)

// The methods of this file are those of operations of which a tensor is of bfloat16. They say false
// where none is.

var _ Halves = (*cpu)(nil)

// numbers are the values of a tensor of bfloat16.
func (c *cpu) numbers(t Tensor) []bf16.Number {
	if !t.Half {
		panic("BUG: values of float32 are read as bfloat16")
	}
	end := t.Offset + t.Len()
	return mem.View[bf16.Number](mem.BytesOf(c.memory(t.Memory)))[t.Offset:end:end]
}

// Narrow rounds x.
func (c *cpu) Narrow(out, x Tensor) {
	if c.ready(out.Len() == x.Len(), "Narrow", out, x) {
		bf16.Narrow(c.pool, c.numbers(out), c.values(x))
	}
}

// Widen makes values float32.
func (c *cpu) Widen(out, x Tensor) {
	if c.ready(out.Len() == x.Len(), "Widen", out, x) {
		bf16.Widen(c.pool, c.values(out), c.numbers(x))
	}
}

// Activate computes an activation.
func (c *cpu) Activate(out, x Tensor, a Activation) {
	if !c.ready(out.Len() == x.Len() && (a.Bias.Len() == 0 || a.Bias.Len() == x.Cols), "Activate",
		out, x, a.Bias) {
		return
	}
	own := bf16.Activation{ReLU: a.ReLU, ELU: a.ELU, Rate: a.Rate, First: a.First, Key: a.Key}
	if a.Bias.Len() > 0 {
		own.Bias = c.values(a.Bias)
	}
	if x.Half {
		bf16.Activate(c.pool, c.numbers(out), c.numbers(x), x.Rows, x.Cols, &own)
		return
	}
	bf16.Activate(c.pool, c.numbers(out), c.values(x), x.Rows, x.Cols, &own)
}

// ReLUGradTo masks and scales dx by y.
func (c *cpu) ReLUGradTo(out, dx, y Tensor, rate float32) {
	switch {
	case !c.ready(out.Len() == dx.Len() && y.Len() == dx.Len(), "ReLUGradTo", out, dx, y):
	case y.Half:
		bf16.ReLUGrad(c.pool, c.numbers(out), c.values(dx), c.numbers(y), rate)
	default:
		mask := c.values(y)
		bf16.Elements(c.pool, c.numbers(out), c.values(dx), dx.Rows, dx.Cols,
			func(values []float32, row int) {
				kernel.DropoutReLUGrad(nil, values, mask[row*dx.Cols:][:len(values)], rate)
			})
	}
}

// ELUGradTo scales dx by the slopes at y, and masks it.
func (c *cpu) ELUGradTo(out, dx, y Tensor, a Activation) {
	switch {
	case !c.ready(out.Len() == dx.Len() && y.Len() == dx.Len(), "ELUGradTo", out, dx, y):
	case out.Half:
		bf16.ELUGrad(c.pool, c.numbers(out), c.values(dx), c.numbers(y), a.First, a.Rate, a.Key)
	default:
		bf16.ELUGrad(c.pool, c.values(out), c.values(dx), c.numbers(y), a.First, a.Rate, a.Key)
	}
}

// matMulHalf is MatMul and HeadMul.
func (c *cpu) matMulHalf(y, a, b Tensor, heads int, acc bool) bool {
	m, k, n := a.Rows, a.Cols/heads, b.Cols/heads
	switch {
	case !a.Half:
		return false
	case !b.Half:
		bf16.GEMMWidened(c.pool, c.values(y), c.numbers(a), c.values(b), m, k, n, heads, acc)
	case heads > 1 && y.Half:
		bf16.GEMMHeads(c.pool, c.numbers(y), c.numbers(a), c.numbers(b), m, k, n, heads, acc)
	case heads > 1:
		bf16.GEMMHeads(c.pool, c.values(y), c.numbers(a), c.numbers(b), m, k, n, heads, acc)
	case y.Half:
		bf16.GEMM(c.pool, c.numbers(y), c.numbers(a), c.numbers(b), m, k, n, acc)
	default:
		bf16.GEMM(c.pool, c.values(y), c.numbers(a), c.numbers(b), m, k, n, acc)
	}
	return true
}

// matMulTAHalf is MatMulTA and HeadMulTA.
func (c *cpu) matMulTAHalf(y, a, b Tensor, heads int, acc bool) bool {
	m, k, n := a.Rows, a.Cols/heads, b.Cols/heads
	switch {
	case !a.Half:
		return false
	case !b.Half:
		bf16.GEMMTAWidened(c.pool, c.values(y), c.numbers(a), c.values(b), m, k, n, heads, acc)
	case heads > 1:
		bf16.GEMMHeadsTA(c.pool, c.values(y), c.numbers(a), c.numbers(b), m, k, n, heads, acc)
	default:
		bf16.GEMMTA(c.pool, c.values(y), c.numbers(a), c.numbers(b), m, k, n, acc)
	}
	return true
}

// matMulTBHalf is MatMulTB and HeadMulTB.
func (c *cpu) matMulTBHalf(y, a, b Tensor, heads int, acc bool) bool {
	m, n, k := a.Rows, a.Cols/heads, b.Rows
	switch {
	case !a.Half:
		return false
	case heads > 1 && y.Half:
		bf16.GEMMHeadsTB(c.pool, c.numbers(y), c.numbers(a), c.numbers(b), m, n, k, heads, acc)
	case heads > 1:
		bf16.GEMMHeadsTB(c.pool, c.values(y), c.numbers(a), c.numbers(b), m, n, k, heads, acc)
	case y.Half:
		bf16.GEMMTB(c.pool, c.numbers(y), c.numbers(a), c.numbers(b), m, n, k, acc)
	default:
		bf16.GEMMTB(c.pool, c.values(y), c.numbers(a), c.numbers(b), m, n, k, acc)
	}
	return true
}

// reduceHalf has fn compute sums of rows of x, to out as it is.
func (c *cpu) reduceHalf(out, x Tensor, toFloats func(out []float32, x []bf16.Number),
	toNumbers func(out, x []bf16.Number)) bool {
	switch {
	case !x.Half:
		return false
	case out.Half:
		toNumbers(c.numbers(out), c.numbers(x))
	default:
		toFloats(c.values(out), c.numbers(x))
	}
	return true
}

// segmentHalf is SegmentMean, or SegmentSum.
func (c *cpu) segmentHalf(out, x Tensor, s Segments, mean bool) bool {
	l := &c.lists[s.ID]
	return c.reduceHalf(out, x, func(out []float32, x16 []bf16.Number) {
		bf16.SegmentReduce(c.pool, out, x16, l.Off, l.Idx, x.Cols, mean)
	}, func(out, x16 []bf16.Number) {
		bf16.SegmentReduce(c.pool, out, x16, l.Off, l.Idx, x.Cols, mean)
	})
}

// segmentDropoutHalf is SegmentMeanDropout.
func (c *cpu) segmentDropoutHalf(out, x Tensor, s Segments, rate float32, key uint64) bool {
	l := &c.lists[s.ID]
	return c.reduceHalf(out, x, func(out []float32, x16 []bf16.Number) {
		bf16.SegmentMeanDropout(c.pool, out, x16, l.Off, l.Idx, l.At, x.Cols, rate, key)
	}, func(out, x16 []bf16.Number) {
		bf16.SegmentMeanDropout(c.pool, out, x16, l.Off, l.Idx, l.At, x.Cols, rate, key)
	})
}

// segmentMaxHalf is SegmentMax.
func (c *cpu) segmentMaxHalf(out, x, arg Tensor, s Segments) bool {
	l, rows := &c.lists[s.ID], c.words(arg)
	return c.reduceHalf(out, x, func(out []float32, x16 []bf16.Number) {
		bf16.SegmentMax(c.pool, out, x16, rows, l.Off, l.Idx, x.Cols)
	}, func(out, x16 []bf16.Number) {
		bf16.SegmentMax(c.pool, out, x16, rows, l.Off, l.Idx, x.Cols)
	})
}

// weightedHalf is WeightedSum.
func (c *cpu) weightedHalf(out, x, w Tensor, s Segments, heads int, shared, acc bool) bool {
	l, d := &c.lists[s.ID], out.Cols/heads
	return c.reduceHalf(out, x, func(out []float32, x16 []bf16.Number) {
		bf16.WeightedHeads(c.pool, out, x16, c.values(w), l.Off, l.Idx, heads, d, shared, acc)
	}, func(out, x16 []bf16.Number) {
		bf16.WeightedHeads(c.pool, out, x16, c.values(w), l.Off, l.Idx, heads, d, shared, acc)
	})
}

// segmentGradHalf is SegmentMeanGrad, or SegmentSumGrad.
func (c *cpu) segmentGradHalf(dx, dout Tensor, s Segments, mean bool, fresh int) bool {
	if !dout.Half {
		return false
	}
	t := c.back(s, dx.Rows, dout.Rows)
	if mean {
		bf16.SegmentMeanGrad(c.pool, c.values(dx), c.numbers(dout), t, dx.Cols, fresh)
		return true
	}
	ones := c.pool.TakeFloats(dout.Rows)
	for i := range ones {
		ones[i] = 1
	}
	bf16.SegmentScaledGrad(c.pool, c.values(dx), c.numbers(dout), ones, t, dx.Cols, fresh)
	c.pool.GiveFloats(ones)
	return true
}
