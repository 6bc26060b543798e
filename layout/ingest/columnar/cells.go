package columnar

import (
	"math"
	"slices"

	"gdb/layout/ingest/input"
)

// cells are values of a column, whatever the format is: texts of columns whose form is texts or
// others, and bits of the others.
type cells struct {
	// bits are integers as they are, floats as those of float64, and 1 and 0 for true and false; 0
	// where there is none.
	bits  []int64
	nulls []bool   // of bits: whether there is none
	texts [][]byte // nil where there is none
	arena []byte   // of texts
}

// len returns the number of values: those of a column are in one of the two.
func (c *cells) len() int { return max(len(c.bits), len(c.texts)) }

// truncate keeps the first values.
func (c *cells) truncate(n int) {
	c.bits, c.nulls = c.bits[:min(n, len(c.bits))], c.nulls[:min(n, len(c.nulls))]
	c.texts = c.texts[:min(n, len(c.texts))]
}

// move copies values from one place to another before it, and returns how many.
func (c *cells) move(to, from, end int) int {
	if len(c.texts) > 0 {
		return copy(c.texts[to:], c.texts[from:end])
	}
	copy(c.nulls[to:], c.nulls[from:end])
	return copy(c.bits[to:], c.bits[from:end])
}

// addBits appends values none of which is null.
func (c *cells) addBits(bits ...int64) {
	c.bits = append(c.bits, bits...)
	c.nulls = append(c.nulls, make([]bool, len(bits))...)
}

// addText appends a text, of which it makes a copy.
func (c *cells) addText(text []byte) {
	at := len(c.arena)
	c.arena = append(c.arena, text...)
	c.texts = append(c.texts, c.arena[at:len(c.arena):len(c.arena)])
}

// addNulls appends values that are null.
func (c *cursor) addNulls(n int) {
	if c.isText() {
		c.texts = append(c.texts, make([][]byte, n)...)
		return
	}
	c.bits = append(c.bits, make([]int64, n)...)
	for range n {
		c.nulls = append(c.nulls, true)
	}
}

// setNull makes a value null.
func (c *cursor) setNull(i int) {
	if c.isText() {
		c.texts[i] = nil
	} else {
		c.bits[i], c.nulls[i] = 0, true
	}
}

// convertFast appends values that need not be text first as a column of a batch. It returns false,
// with some of them appended, if one is not of the kind or has to be looked at as text.
func (c *cursor) convertFast(v *input.Values, want *input.Column, from, to int) bool {
	bits, nulls := c.bits, c.nulls
	if c.isText() {
		return false
	}
	bits, nulls = bits[from:to], nulls[from:to]
	switch want.Kind {
	case input.Int64, input.Float64, input.Truth:
		if !c.holds(want.Kind, bits) {
			return false
		}
		v.Integers, v.Nulls = append(v.Integers, bits...), append(v.Nulls, nulls...)
		return true
	case input.Moment:
		for i, n := range bits {
			if nulls[i] {
				v.Integers = append(v.Integers, input.NoMoment)
			} else {
				v.Integers = append(v.Integers, c.micros(n))
			}
		}
		return true
	case input.ID, input.Reference:
		return c.convertIDs(v, want.Kind == input.Reference && want.Nulls, bits, nulls)
	case input.Time:
		return !slices.Contains(nulls, true) && c.convertTimes(v, bits)
	case input.Float, input.Optional:
		return c.convertFloats(v, want.Kind == input.Optional, bits, nulls)
	}
	return false
}

// holds reports whether values are stored as they are in a column of a kind.
func (c *column) holds(kind input.Kind, bits []int64) bool {
	switch kind {
	case input.Int64:
		return c.form == integers ||
			c.form == unsigned && (len(bits) == 0 || slices.Min(bits) >= 0)
	case input.Float64:
		return c.form == float32s || c.form == float64s
	}
	return c.form == truths
}

// convertIDs appends ids; where mayLack is set, some may be null.
func (c *cursor) convertIDs(v *input.Values, mayLack bool, bits []int64, nulls []bool) bool {
	if c.form == times {
		return false
	}
	for i, n := range bits {
		id, ok := c.integer(n)
		switch {
		case nulls[i] && mayLack:
			v.IDs = append(v.IDs, input.NoKey)
			continue
		case nulls[i] || !ok || id < 0:
			return false
		}
		v.IDs = append(v.IDs, uint64(id))
	}
	return true
}

// convertTimes appends times in seconds.
func (c *cursor) convertTimes(v *input.Values, bits []int64) bool {
	for _, n := range bits {
		n, ok := c.integer(n)
		if !ok {
			return false
		}
		if c.form == times {
			n = c.seconds(n)
		}
		v.Integers = append(v.Integers, n)
	}
	return true
}

// convertFloats appends numbers; optional ones may be null, and may be rounded.
func (c *cursor) convertFloats(v *input.Values, optional bool, bits []int64, nulls []bool) bool {
	if !c.isNumbers() {
		return false
	}
	for i, n := range bits {
		d := c.double(n)
		x := float32(d)
		switch {
		case optional && nulls[i]:
			x = float32(math.NaN())
		case nulls[i] || x-x != 0 || !optional && input.MayRound(d):
			return false
		}
		v.Floats = append(v.Floats, x)
	}
	return true
}
