package result

import "gdb/shell/words"

// Column is what is known of a column when all rows were seen.
type Column struct {
	Name  string
	Kind  words.Kind
	empty bool // whether some cell is empty
	runes int  // the length of the longest string, in runes
}

// Take widens the kind so that a value fits: a string column takes all values, and a float column
// whole numbers and empty cells.
func (c *Column) Take(v words.Cell) {
	if v.Kind == words.Empty {
		c.empty = true
	}
	c.Kind = max(c.Kind, v.Kind)
}

// final returns the kind to which all values of the column are converted.
func (c *Column) final() words.Kind {
	switch {
	case c.Kind == words.Empty:
		return words.String
	case c.Kind == words.Int && c.empty:
		return words.Float
	}
	return c.Kind
}
