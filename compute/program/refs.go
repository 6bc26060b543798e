package program

import (
	"math"

	"gdb/compute/backend"
)

// References and shapes of operations that several share.

// sameLen says that the result has as many values as the first operand.
func sameLen(o *backend.Operands) bool { return o.Out.Len() == o.In[0].Len() }

// likeSecond says that the result has as many values as the second operand.
func likeSecond(o *backend.Operands) bool { return o.Out.Len() == o.In[1].Len() }

// biased says that the second operand is a row for those of the result.
func biased(o *backend.Operands) bool { return sameLen(o) && o.In[1].Len() == o.Out.Cols }

// each computes each value by itself, from that of the first operand, that of the second, or of a
// row for all, and the scalar. Then it drops values out, if the operands say so.
func each(f func(x, y, s float32) float32) func(h *backend.Plain) {
	return func(h *backend.Plain) {
		second := h.From[1].V
		for i, x := range h.From[0].V {
			y := float32(0)
			if len(second) > 0 {
				y = second[i%len(second)]
			}
			h.To.V[i] = f(x, y, h.Scalar)
		}
		h.Drops()
	}
}

func copyRef(h *backend.Plain) { copy(h.To.V, h.From[0].V) }

// addTo adds a row times a factor to another.
func addTo(to, x []float32, f float32) {
	for i, v := range x {
		to[i] += f * v
	}
}

func dot(x, y []float32) (sum float32) {
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// leaky multiplies what is below zero by slope, and leakySlope is what it multiplied by, given what
// came of it.
func leaky(x, slope float32) float32 {
	if x > 0 {
		return x
	}
	return slope * x
}

func leakySlope(y, slope float32) float32 {
	if y > 0 {
		return 1
	}
	return slope
}

func elu(x float32) float32 {
	if x > 0 {
		return x
	}
	return float32(math.Expm1(float64(x)))
}

// entryHead is an entry of a list, its row, and a head. Shared says that heads read whole rows.
type entryHead struct {
	list, entry, row, head, heads int
	shared                        bool
}

// part returns the head's part of row i of a matrix.
func (e entryHead) part(m backend.Matrix, i int) []float32 {
	d := m.Cols / e.heads
	return m.Row(i)[e.head*d:][:d]
}

// read returns what the head reads of the entry's row in a matrix.
func (e entryHead) read(m backend.Matrix) []float32 {
	if e.shared {
		return m.Row(e.row)
	}
	return e.part(m, e.row)
}

// weighed calls f for each entry and head.
func weighed(f func(h *backend.Plain, e entryHead)) func(h *backend.Plain) {
	return func(h *backend.Plain) {
		h.Begin()
		h.Entries(func(list, entry, row int) {
			for head := range h.Heads {
				f(h, entryHead{list, entry, row, head, h.Heads, h.Shared})
			}
		})
	}
}
