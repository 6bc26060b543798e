package tables

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gdb/internal/mem"
)

// DType is the type of an array's elements: Kind is 'b' (bool), 'i', 'u' or 'f', Size is in bytes.
type DType struct {
	Kind byte
	Size int
	Big  bool // big-endian
}

// parseDType reads a descr string such as "<f4".
func parseDType(s string) (DType, error) {
	if strings.Contains(s, "O") {
		return DType{}, fmt.Errorf("dtype %q holds pickled Python objects", s)
	}
	if len(s) < 3 {
		return DType{}, fmt.Errorf("dtype %q is not known", s)
	}
	d := DType{Kind: s[1], Big: s[0] == '>'}
	size, err := strconv.Atoi(s[2:])
	if err != nil {
		return DType{}, fmt.Errorf("dtype %q is not known", s)
	}
	d.Size = size
	ok := s[0] == '<' || s[0] == '>' || s[0] == '=' || s[0] == '|' && size == 1
	switch d.Kind {
	case 'b':
		ok = ok && size == 1
	case 'i', 'u':
		ok = ok && (size == 1 || size == 2 || size == 4 || size == 8)
	case 'f':
		ok = ok && (size == 2 || size == 4 || size == 8)
	default:
		ok = false
	}
	if !ok {
		return d, fmt.Errorf("dtype %q is neither bool, integer nor float", s)
	}
	if size == 1 {
		d.Big = false
	}
	return d, nil
}

// descr returns the descr string of d; it is the inverse of parseDType.
func (d DType) descr() string {
	order := "<"
	switch {
	case d.Size == 1:
		order = "|"
	case d.Big:
		order = ">"
	}
	return order + string(d.Kind) + strconv.Itoa(d.Size)
}

// String returns a short name: f32, i64, u8, bool.
func (d DType) String() string {
	if d.Kind == 'b' {
		return "bool"
	}
	return string(d.Kind) + strconv.Itoa(8*d.Size)
}

// Integer reports whether elements are signed or unsigned integers.
func (d DType) Integer() bool { return d.Kind == 'i' || d.Kind == 'u' }

// toLittle reverses the bytes of big-endian elements, in place.
func (d DType) toLittle(b []byte) {
	if !d.Big {
		return
	}
	for ; len(b) >= d.Size; b = b[d.Size:] {
		for i, j := 0, d.Size-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
}

// IDs converts the integer elements first, first+stride, … of b to ids, one for each of dst. It
// returns the index in dst of the first negative one, or -1.
func (d DType) IDs(dst []uint64, b []byte, first, stride int) int {
	var or uint64
	switch {
	case d.Kind == 'i' && d.Size == 8:
		or = widen(dst, mem.View[int64](b), first, stride)
	case d.Kind == 'i' && d.Size == 4:
		or = widen(dst, mem.View[int32](b), first, stride)
	case d.Kind == 'i' && d.Size == 2:
		or = widen(dst, mem.View[int16](b), first, stride)
	case d.Kind == 'i':
		or = widen(dst, mem.View[int8](b), first, stride)
	case d.Size == 8:
		widen(dst, mem.View[uint64](b), first, stride)
	case d.Size == 4:
		widen(dst, mem.View[uint32](b), first, stride)
	case d.Size == 2:
		widen(dst, mem.View[uint16](b), first, stride)
	default:
		widen(dst, b, first, stride)
	}
	if or>>63 == 0 {
		return -1
	}
	for i, v := range dst {
		if v>>63 != 0 {
			return i
		}
	}
	panic("BUG: npy: a negative id that is not there")
}

// widen writes elements, sign-extended, to dst. It returns the bitwise or of all, whose top bit
// says whether one was negative.
func widen[T integer](dst []uint64, src []T, first, stride int) (or uint64) {
	if len(dst) > 0 {
		_ = src[first+(len(dst)-1)*stride]
	}
	for i, j := 0, first; i < len(dst); i, j = i+1, j+stride {
		v := uint64(int64(src[j]))
		dst[i] = v
		or |= v
	}
	return or
}

// Floats converts elements of any type to float32, one for each of dst. A float64 beyond the range
// of float32 becomes an infinity.
func (d DType) Floats(dst []float32, b []byte) {
	switch {
	case d.Kind == 'f' && d.Size == 4:
		copy(dst, mem.View[float32](b))
	case d.Kind == 'f' && d.Size == 8:
		toFloat(dst, mem.View[float64](b))
	case d.Kind == 'f':
		for i, h := range mem.View[uint16](b)[:len(dst)] {
			dst[i] = float16(h)
		}
	case d.Kind == 'i' && d.Size == 8:
		toFloat(dst, mem.View[int64](b))
	case d.Kind == 'i' && d.Size == 4:
		toFloat(dst, mem.View[int32](b))
	case d.Kind == 'i' && d.Size == 2:
		toFloat(dst, mem.View[int16](b))
	case d.Kind == 'i':
		toFloat(dst, mem.View[int8](b))
	case d.Size == 8:
		toFloat(dst, mem.View[uint64](b))
	case d.Size == 4:
		toFloat(dst, mem.View[uint32](b))
	case d.Size == 2:
		toFloat(dst, mem.View[uint16](b))
	default:
		toFloat(dst, b)
	}
}

func toFloat[T mem.Scalar](dst []float32, src []T) {
	for i, v := range src[:len(dst)] {
		dst[i] = float32(v)
	}
}

// Doubles converts elements of any type to float64, one for each of dst.
func (d DType) Doubles(dst []float64, b []byte) {
	if d.Kind == 'f' && d.Size == 8 {
		copy(dst, mem.View[float64](b))
		return
	}
	if d.Kind != 'f' {
		var id [1]uint64
		for i := range dst {
			if d.IDs(id[:], b[i*d.Size:], 0, 1); d.Kind == 'i' {
				dst[i] = float64(int64(id[0]))
			} else {
				dst[i] = float64(id[0])
			}
		}
		return
	}
	var f [1]float32
	for i := range dst {
		d.Floats(f[:], b[i*d.Size:])
		dst[i] = float64(f[0])
	}
}

// AppendText appends element i of b as a number in text: an integer has no point.
func (d DType) AppendText(out, b []byte, i int) []byte {
	b = b[i*d.Size:]
	if d.Kind == 'f' {
		var x [1]float64
		d.Doubles(x[:], b)
		if x[0] == math.Trunc(x[0]) && math.Abs(x[0]) < 1<<53 {
			return strconv.AppendInt(out, int64(x[0]), 10)
		}
		return strconv.AppendFloat(out, x[0], 'g', -1, 64)
	}
	var id [1]uint64
	d.IDs(id[:], b, 0, 1)
	if d.Kind == 'i' {
		return strconv.AppendInt(out, int64(id[0]), 10)
	}
	return strconv.AppendUint(out, id[0], 10)
}

// float16 returns the value of an IEEE 754 binary16 number.
func float16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, frac := uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch {
	case exp == 0x1f: // infinity or NaN
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case exp == 0: // zero or subnormal: frac * 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*0x1p-24))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// alignedBytes allocates n bytes aligned to 8.
func alignedBytes(n int) []byte {
	return mem.BytesOf(make([]uint64, (n+7)/8+1))[:n]
}
