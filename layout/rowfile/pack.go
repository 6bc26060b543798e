package rowfile

import (
	"math"
	"sync"

	"gdb/internal/mem"
)

// PackedDim returns how many words of 4 bytes a row of dim values takes as bf16. After an odd
// number of values comes a zero.
func PackedDim(dim int) int { return (dim + 1) / 2 }

// Pack makes reads as float32 round every row to bf16 and pack it, two values in the place of one;
// Meta().Dim counts these places. Rows are scaled before they are rounded, and rows of bf16 that
// are not scaled come as they are stored. It must be called before the first read that counts.
func (r *Reader) Pack() {
	if r.decode == nil {
		panic("BUG: rowfile: rows that are no floats are packed")
	}
	if r.packed {
		return
	}
	dim, words, bytes := r.shape.Dim, PackedDim(r.shape.Dim), r.shape.RowBytes
	r.packed = true
	if r.shape.DType == BF16 && !r.scaled {
		r.decode = func(out []float32, rows []byte) {
			for ; len(rows) >= bytes; out, rows = out[words:], rows[bytes:] {
				out[words-1] = 0
				copy(mem.BytesOf(out[:words]), rows[:bytes])
			}
		}
		return
	}
	decode := r.decode
	buffers := sync.Pool{New: func() any { b := make([]float32, dim); return &b }}
	r.decode = func(out []float32, rows []byte) {
		buffer := buffers.Get().(*[]float32)
		for ; len(rows) >= bytes; out, rows = out[words:], rows[bytes:] {
			decode(*buffer, rows[:bytes])
			packRow(mem.View[uint16](mem.BytesOf(out[:words])), *buffer)
		}
		buffers.Put(buffer)
	}
}

// packRow rounds values to bf16. Denormal ones become zero, as products take them for zero.
func packRow(out []uint16, row []float32) {
	out[len(out)-1] = 0
	for i, v := range row {
		u := math.Float32bits(v)
		if u&(0xff<<23) == 0 {
			u &= 1 << 31
		}
		out[i] = encodeBF16(math.Float32frombits(u))
	}
}

// Unpack writes the values of packed rows, of dim values each, to out.
func Unpack(out, packed []float32, dim int) {
	words := PackedDim(dim)
	for ; len(out) >= dim && dim > 0; out, packed = out[dim:], packed[words:] {
		for i, h := range mem.View[uint16](mem.BytesOf(packed[:words]))[:dim] {
			out[i] = math.Float32frombits(uint32(h) << 16)
		}
	}
}
