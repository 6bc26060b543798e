package result

import (
	"math"
	"strconv"
)

// Kind is the type of a column, or of one value of it.
type Kind uint8

// The kinds, each wider than those before it.
const (
	Empty Kind = iota
	Int
	Float
	String
)

// Cell is a value of one of the kinds.
type Cell struct {
	Kind  Kind
	Int   int64
	Float float64
	Text  string
}

// CellOf converts what statements hand to a renderer.
func CellOf(v any) Cell {
	switch v := v.(type) {
	case nil, absent:
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

// As converts a value to the kind of its column: empty cells are NaN or "".
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

// Column is what is known of a column once all rows were seen.
type Column struct {
	Name  string
	Kind  Kind
	empty bool // some cell is empty
	runes int  // of the longest string
}

// Take widens the kind so that a value fits: strings take all, floats whole numbers and nothing.
func (c *Column) Take(v Cell) {
	if v.Kind == Empty {
		c.empty = true
	}
	c.Kind = max(c.Kind, v.Kind)
}

// final is the kind that all values of the column convert to.
func (c *Column) final() Kind {
	switch {
	case c.Kind == Empty:
		return String
	case c.Kind == Int && c.empty:
		return Float
	}
	return c.Kind
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
