package columnar

import (
	"fmt"
	"strconv"

	"gdb/layout/ingest/input"

	"github.com/parquet-go/parquet-go"
)

// convert makes a batch of the rows that were taken, or of the first of them: a text of a
// dictionary may be in memory once and stand in every row.
func (r *Reader) convert(b *batch) {
	b.reset(len(r.spec.Columns))
	b.File, b.First, b.Unit = r.file.name, r.row, "row"
	for ; r.at < r.taken && len(b.arena) < batchBytes; r.at++ {
		bad := input.Bad{Line: r.row}
		if r.columns(b, r.at, &bad) && r.vector(b, r.at, &bad) {
			b.place(r.row)
		} else {
			b.truncate(&r.spec, r.dims)
			b.Bad = append(b.Bad, bad)
		}
		r.row++
	}
}

func (b *batch) reset(columns int) {
	if b.Columns == nil {
		b.Columns = make([]input.Values, columns)
	}
	b.Rows, b.Lines, b.Bad, b.Vector, b.arena = 0, nil, b.Bad[:0], b.Vector[:0], b.arena[:0]
	for i := range b.Columns {
		b.Columns[i].Truncate(0)
	}
}

// place counts a row and notes its number.
func (b *batch) place(row int64) {
	if b.Rows == 0 {
		b.First = row
	}
	if b.Lines == nil && row != b.First+int64(b.Rows) {
		b.Lines = b.lines[:0]
		for i := range b.Rows {
			b.Lines = append(b.Lines, b.First+int64(i))
		}
	}
	if b.Lines != nil {
		b.Lines = append(b.Lines, row)
		b.lines = b.Lines
	}
	b.Rows++
}

// truncate takes back what was appended of a row that is bad.
func (b *batch) truncate(spec *input.Spec, dims []int) {
	for i := range b.Columns {
		b.Columns[i].Truncate(b.Rows)
	}
	dim := 0
	for i := range spec.Vector {
		dim += dims[i]
	}
	b.Vector = b.Vector[:min(b.Rows*dim, len(b.Vector))]
}

// columns appends row i to the columns, or says what is wrong with it.
func (r *Reader) columns(b *batch, i int, bad *input.Bad) bool {
	for k, want := range r.spec.Columns {
		c, v := r.cursor(want.Field), &b.Columns[k]
		if c.list {
			v.Texts = append(v.Texts, r.listText(b, c, c.row(i)))
			continue
		}
		value := c.values[i]
		if !value.IsNull() && appendFast(v, want.Kind, c, value) {
			continue
		}
		at := len(b.arena)
		b.arena = c.appendText(b.arena, value)
		if !r.spec.Append(v, want, b.arena[at:len(b.arena):len(b.arena)], bad) {
			return false
		}
	}
	return true
}

// ListSep is between the elements of a list that is read as text.
const ListSep = "\x1f"

// listText is a list as text: its elements, or at the head of a file their number in [].
func (r *Reader) listText(b *batch, c *cursor, values []parquet.Value) []byte {
	at := len(b.arena)
	if r.head {
		b.arena = fmt.Appendf(b.arena, "[%d]", len(values))
		return b.arena[at:len(b.arena):len(b.arena)]
	}
	for i, v := range values {
		if i > 0 {
			b.arena = append(b.arena, ListSep...)
		}
		b.arena = c.appendText(b.arena, v)
	}
	return b.arena[at:len(b.arena):len(b.arena)]
}

// appendFast appends values that need not be text first.
func appendFast(v *input.Values, kind input.Kind, c *cursor, value parquet.Value) bool {
	switch kind {
	case input.ID:
		if n, ok := c.integer(value); ok && n >= 0 && c.form != times {
			v.IDs = append(v.IDs, uint64(n))
			return true
		}
	case input.Integer, input.Time:
		n, ok := c.integer(value)
		if c.form == times {
			n = c.seconds(n)
		}
		if ok {
			v.Integers = append(v.Integers, n)
		}
		return ok
	case input.Float, input.Optional:
		d := c.double(value)
		if x := float32(d); c.isNumbers() && x-x == 0 &&
			!(kind == input.Float && input.MayRound(d)) {
			v.Floats = append(v.Floats, x)
			return true
		}
	}
	return false
}

// row is the value of row i, or of a column of lists its values.
func (c *cursor) row(i int) []parquet.Value {
	switch {
	case !c.list:
		return c.values[i : i+1]
	case i == 0:
		return c.values[:c.ends[0]]
	}
	return c.values[c.ends[i-1]:c.ends[i]]
}

// vector appends row i to the vector, or says what is wrong with it.
func (r *Reader) vector(b *batch, i int, bad *input.Bad) bool {
	for k, field := range r.spec.Vector {
		c := r.cursor(field)
		values := c.row(i)
		if len(values) != r.dims[k] {
			bad.What = fmt.Sprintf("column %q has a list of %s values, where others have %d",
				c.name, strconv.Itoa(len(values)), r.dims[k])
			return false
		}
		for _, value := range values {
			x, ok := r.number(b, field, c, value, bad)
			if !ok {
				return false
			}
			b.Vector = append(b.Vector, x)
		}
	}
	return true
}

func (r *Reader) number(b *batch, field int, c *cursor, value parquet.Value, bad *input.Bad) (
	x float32, ok bool) {
	if !value.IsNull() && c.isNumbers() {
		if x := float32(c.double(value)); x-x == 0 {
			return x, true
		}
	}
	at := len(b.arena)
	b.arena = c.appendText(b.arena, value)
	return r.spec.Number(field, b.arena[at:], bad)
}
