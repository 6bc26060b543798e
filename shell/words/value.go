package words

import (
	"fmt"
	"math"
	"strconv"
)

// Kind is the type of a column, or of one value of it.
type Kind uint8

// The kinds. Each is wider than the kinds before it.
const (
	Empty Kind = iota
	Int
	Float
	String
)

// Cell holds a value of one of the kinds.
type Cell struct {
	Kind  Kind
	Int   int64
	Float float64
	Text  string
}

// Of converts a value that a statement hands to a renderer.
func Of(v any) Cell {
	switch v := v.(type) {
	case nil, Absent:
		return Cell{}
	case float32:
		return Cell{Kind: Float, Float: float64(v)}
	case float64:
		return Cell{Kind: Float, Float: v}
	case Ratio:
		return Cell{Kind: Float, Float: float64(v)}
	case int:
		return Cell{Kind: Int, Int: int64(v)}
	case int64:
		return Cell{Kind: Int, Int: v}
	case uint32:
		return Cell{Kind: Int, Int: int64(v)}
	case uint64:
		return Cell{Kind: Int, Int: int64(v)}
	case Count:
		return Cell{Kind: Int, Int: int64(v)}
	case Size:
		return Cell{Kind: Int, Int: int64(v)}
	}
	return Cell{Kind: String, Text: Raw(v)}
}

// As converts a value to the kind of its column. Empty cells become NaN or "".
func (c Cell) As(kind Kind) Cell {
	switch {
	case c.Kind == kind:
		return c
	case kind == String && c.Kind == Int:
		return Cell{Kind: kind, Text: Raw(c.Int)}
	case kind == String && c.Kind == Float:
		return Cell{Kind: kind, Text: Raw(c.Float)}
	case kind == String:
		return Cell{Kind: kind}
	case c.Kind == Int:
		return Cell{Kind: kind, Float: float64(c.Int)}
	}
	return Cell{Kind: kind, Float: math.NaN()}
}

// ParseNumber reads an integer or a decimal number.
func ParseNumber(s string) (Cell, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return Cell{Kind: Int, Int: n}, true
	}
	if len(s) > 0 && (s[0] >= '0' && s[0] <= '9' || s[0] == '-') {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return Cell{Kind: Float, Float: f}, true
		}
	}
	return Cell{}, false
}

// Count, Size and Ratio are numbers that the box shows with units. All other modes write them
// without.
type (
	Count uint64  // 1,204
	Size  int64   // bytes: 4.0 GiB
	Ratio float64 // 31.0 %
)

// Absent stands for a score that was not measured. The box shows a dash, every other mode nothing.
type Absent struct{}

// MarshalJSON writes null.
func (Absent) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Score returns the value of a cell for a score; nil means that it was not measured.
func Score(v *float64) any {
	if v == nil {
		return Absent{}
	}
	return *v
}

// Raw returns a value as text for scripts: without units and separators.
func Raw(v any) string {
	switch v := v.(type) {
	case nil, Absent:
		return ""
	case string:
		return v
	case float32:
		return strconv.FormatFloat(float64(v), 'g', -1, 32)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case Ratio:
		return strconv.FormatFloat(float64(v), 'g', -1, 64)
	}
	return fmt.Sprint(v)
}
