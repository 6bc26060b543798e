package result

import "gdb/shell/value"

// Column is what is known of a column once all rows were seen.
type Column struct {
	Name  string
	Kind  value.Kind
	empty bool // some cell is empty
	runes int  // of the longest string
}

// Take widens the kind so that a value fits: strings take all, floats whole numbers and nothing.
func (c *Column) Take(v value.Cell) {
	if v.Kind == value.Empty {
		c.empty = true
	}
	c.Kind = max(c.Kind, v.Kind)
}

// final is the kind that all values of the column convert to.
func (c *Column) final() value.Kind {
	switch {
	case c.Kind == value.Empty:
		return value.String
	case c.Kind == value.Int && c.empty:
		return value.Float
	}
	return c.Kind
}
