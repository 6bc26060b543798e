package result

import "gdb/shell/words"

// Column is what is known of a column once all rows were seen.
type Column struct {
	Name  string
	Kind  words.Kind
	empty bool // some cell is empty
	runes int  // of the longest string
}

// Take widens the kind so that a value fits: strings take all, floats whole numbers and nothing.
func (c *Column) Take(v words.Cell) {
	if v.Kind == words.Empty {
		c.empty = true
	}
	c.Kind = max(c.Kind, v.Kind)
}

// final is the kind that all values of the column convert to.
func (c *Column) final() words.Kind {
	switch {
	case c.Kind == words.Empty:
		return words.String
	case c.Kind == words.Int && c.empty:
		return words.Float
	}
	return c.Kind
}
