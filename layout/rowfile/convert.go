package rowfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"gdb/internal/mem"
)

// Types of row elements, as in kv.RowsMeta.
const (
	F32  = "f32"
	F16  = "f16"  // IEEE 754 half: 11 bits of precision, up to 65504
	BF16 = "bf16" // the upper half of f32: 8 bits of precision, the range of f32
	I32  = "i32"
	U8   = "u8"
	// Sparse rows are the words that package sparse describes, as many in each row.
	Sparse = "sparse"
)

// elementBytes returns the size of an element in bytes, 0 for an unknown type.
func elementBytes(dtype string) int {
	switch dtype {
	case F32, I32:
		return 4
	case F16, BF16:
		return 2
	case U8:
		return 1
	}
	return 0
}

// Decoder returns the function that writes encoded elements to out as float32, nil for a type
// that is not a float.
func Decoder(dtype string) func(out []float32, row []byte) {
	switch dtype {
	case F32:
		return func(out []float32, row []byte) { copy(mem.BytesOf(out), row) }
	case F16:
		return decodeF16
	case BF16:
		return decodeBF16
	}
	return nil
}

// Round returns the value that rows of a type store for x: the nearest that the type has. Types
// that are not floats leave x as it is.
func Round(dtype string, x float64) float64 {
	f := float32(x)
	switch dtype {
	case F32:
		return float64(f)
	case F16:
		return float64(roundedBy(encodeF16, decodeF16, f))
	case BF16:
		return float64(roundedBy(encodeBF16, decodeBF16, f))
	}
	return x
}

func roundedBy(encode func(float32) uint16, decode func([]float32, []byte), f float32) float32 {
	var out [1]float32
	decode(out[:], binary.LittleEndian.AppendUint16(nil, encode(f)))
	return out[0]
}

// decodeF16 converts halves exactly. The bits of a half, moved to where a single has them, stand
// for 2^-112 of its value, subnormals included, so one multiplication corrects it. A result of 2^16
// or above had the exponent of infinity and NaN, and gets that exponent of a single.
func decodeF16(out []float32, row []byte) {
	const scale = 0x1p112
	row = row[:2*len(out)]
	for i := range out {
		h := uint32(binary.LittleEndian.Uint16(row[2*i:]))
		u := math.Float32bits(math.Float32frombits(h&0x7fff<<13) * scale)
		if u >= (127+16)<<23 {
			u |= 0xff << 23
		}
		out[i] = math.Float32frombits(u | h&0x8000<<16)
	}
}

func decodeBF16(out []float32, row []byte) {
	row = row[:2*len(out)]
	for i := range out {
		out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(row[2*i:])) << 16)
	}
}

// encodeF16 rounds to the nearest half, ties to even. NaN stays NaN, and values beyond the largest
// half become infinity.
func encodeF16(f float32) uint16 {
	u := math.Float32bits(f)
	sign, abs := uint16(u>>16&0x8000), u&0x7fffffff
	switch {
	case abs > 0xff<<23: // NaN: keep the payload's upper bits, and keep it quiet
		return sign | 0x7e00 | uint16(abs>>13&0x3ff)
	case abs >= (127+16)<<23:
		return sign | 0x7c00
	case abs < (127-14)<<23: // subnormal or zero: the sum's last bit is 2^-24, and it rounds
		const bias = 0x1p-1 // ulp of [0.5, 1) is 2^-24
		v := math.Float32frombits(abs) + bias
		return sign | uint16(math.Float32bits(v)-math.Float32bits(bias))
	}
	abs += 0xfff + abs>>13&1 // half of the last bit kept, ties to even; may carry to infinity
	return sign | uint16((abs-(127-15)<<23)>>13)
}

// encodeBF16 rounds to the nearest, ties to even.
func encodeBF16(f float32) uint16 {
	u := math.Float32bits(f)
	if u&0x7fffffff > 0xff<<23 {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// RangeError says that a value is too large for its type.
type RangeError struct {
	Value  float32
	Column int
	DType  string
}

// Error says which value is too large, and which type would hold it.
func (e *RangeError) Error() string {
	if e.DType == F16 {
		return fmt.Sprintf("value %g of column %d is beyond f16, which ends at 65504; "+
			"use bf16 or f32", e.Value, e.Column)
	}
	return fmt.Sprintf("value %g of column %d is beyond %s; use f32", e.Value, e.Column, e.DType)
}

// encodeRow appends values, converted to dtype, to b; words of sparse rows as they are. A finite
// value that would become infinite is an error, since it would spoil every sum that it enters.
func encodeRow(b []byte, dtype string, row []float32) ([]byte, error) {
	le := binary.LittleEndian
	for i, v := range row {
		switch dtype {
		case F32, Sparse:
			b = le.AppendUint32(b, math.Float32bits(v))
			continue
		case F16:
			h := encodeF16(v)
			if h&0x7fff == 0x7c00 && !math.IsInf(float64(v), 0) {
				return b, &RangeError{v, i, dtype}
			}
			b = le.AppendUint16(b, h)
		case BF16:
			h := encodeBF16(v)
			if h&0x7fff == 0x7f80 && !math.IsInf(float64(v), 0) {
				return b, &RangeError{v, i, dtype}
			}
			b = le.AppendUint16(b, h)
		default:
			return b, fmt.Errorf("rows of %s do not hold floats", dtype)
		}
	}
	return b, nil
}

// NormalizeRows makes reads as float32 divide every row by its sum, as ingest does with --normalize
// row: counts, such as of words, become shares. A row that sums to 0 stays as it is. It must be
// called before the first read.
func (r *Reader) NormalizeRows() {
	decode, dim := r.decode, r.shape.Dim
	if decode == nil {
		panic("BUG: rowfile: rows that are no floats are normalized")
	}
	r.scaled, r.toOne = true, true
	r.decode = func(out []float32, rows []byte) {
		decode(out, rows)
		for ; len(out) >= dim; out = out[dim:] {
			normalizeRow(out[:dim])
		}
	}
}

// normalizeRow divides values by their sum. It keeps four sums, which need not wait for each other.
func normalizeRow(row []float32) {
	var s [4]float64
	n := len(row) &^ 3
	for i := 0; i < n; i += 4 {
		s[0] += float64(row[i])
		s[1] += float64(row[i+1])
		s[2] += float64(row[i+2])
		s[3] += float64(row[i+3])
	}
	for _, v := range row[n:] {
		s[0] += float64(v)
	}
	sum := s[0] + s[1] + s[2] + s[3]
	if sum == 0 {
		return
	}
	inverse := float32(1 / sum)
	for i := range row {
		row[i] *= inverse
	}
}

// Scale holds the mean of each column, and one over its deviation, 0 for a column that does not
// vary.
type Scale struct {
	Mean    []float32 `json:"mean"`
	Inverse []float32 `json:"inverse"`
}

// ScaleColumns makes reads as float32 scale every row: columns get mean 0 and deviation 1, as far
// as the scale is right. It must be called before the first read that counts.
func (r *Reader) ScaleColumns(s *Scale) {
	decode, dim := r.decode, r.shape.Dim
	if decode == nil || len(s.Mean) != dim || len(s.Inverse) != dim {
		panic("BUG: rowfile: rows are scaled by a scale of other columns")
	}
	r.scaled = true
	r.decode = func(out []float32, rows []byte) {
		decode(out, rows)
		for ; len(out) >= dim; out = out[dim:] {
			for k, v := range out[:dim] {
				out[k] = (v - s.Mean[k]) * s.Inverse[k]
			}
		}
	}
}

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
