package input

import (
	"math"
	"strconv"
	"unsafe"
)

// ParseID reads an unsigned integer in canonical form.
func ParseID(b []byte) (v uint64, ok bool) {
	if len(b) == 0 || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	if len(b) > 19 {
		v, err := strconv.ParseUint(str(b), 10, 64)
		return v, err == nil && b[0] != '+'
	}
	for _, c := range b {
		d := c - '0'
		if d > 9 {
			return 0, false
		}
		v = v*10 + uint64(d)
	}
	return v, true
}

// ParseInteger reads a signed integer.
func ParseInteger(b []byte) (int64, bool) {
	v, err := strconv.ParseInt(str(b), 10, 64)
	return v, err == nil
}

// powersOfTen are exact in a float64.
var powersOfTen = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
	1e13, 1e14, 1e15}

// ParseFloat reads a number: rounded to float64, then to float32, as NumPy does.
func ParseFloat(b []byte) (float32, bool) {
	v, ok := parseDouble(b)
	return float32(v), ok
}

// parseDouble reads a number.
func parseDouble(b []byte) (float64, bool) {
	// Up to 15 digits and one point: the digits and the power of ten are exact in a float64, so
	// their quotient is rounded once, as strconv rounds it. Everything else goes there.
	var mantissa int64
	rest, point := b, -1
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		rest = b[1:]
	}
	if len(rest) == 0 || len(rest) > 16 {
		return parseAny(b)
	}
	for i, c := range rest {
		switch d := c - '0'; {
		case d <= 9:
			mantissa = mantissa*10 + int64(d)
		case c == '.' && point < 0 && len(rest) > 1:
			point = i
		default:
			return parseAny(b)
		}
	}
	if point < 0 && len(rest) == 16 {
		return parseAny(b)
	}
	v := float64(mantissa)
	if point >= 0 {
		v /= powersOfTen[len(rest)-1-point]
	}
	if negative {
		v = -v
	}
	return v, true
}

func parseAny(b []byte) (float64, bool) {
	v, err := strconv.ParseFloat(str(b), 64)
	return v, err == nil
}

// finite tells numbers from NaN and the infinities.
func finite(v float32) bool { return v-v == 0 }

var nan = float32(math.NaN())

// str sees bytes as a string, for calls that do not keep it.
func str(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
