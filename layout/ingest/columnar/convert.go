package columnar

import (
	"fmt"

	"gdb/layout/ingest/input"

	"github.com/parquet-go/parquet-go"
)

// convert makes a batch of the rows that were taken, or of the first of them: a text of a
// dictionary may be in memory once and stand in every row.
func (r *Reader) convert(b *input.Batch) {
	b.Reset(len(r.spec.Columns))
	b.Buffer = b.Buffer[:0]
	b.File, b.First, b.Unit = r.file.name, r.row, "row"
	for ; r.at < r.taken && len(b.Buffer) < batchBytes; r.at++ {
		bad := input.Bad{Line: r.row}
		if r.columns(b, r.at, &bad) && r.vector(b, r.at, &bad) {
			b.Place(r.row)
		} else {
			b.Truncate(r.dim)
			b.Bad = append(b.Bad, bad)
		}
		r.row++
	}
}

// columns appends row i to the columns, or says what is wrong with it.
func (r *Reader) columns(b *input.Batch, i int, bad *input.Bad) bool {
	for k, want := range r.spec.Columns {
		c, v := r.where[want.Field], &b.Columns[k]
		if c.list {
			v.Texts = append(v.Texts, r.listText(b, c, c.row(i)))
			continue
		}
		value := c.values[i]
		if !value.IsNull() && appendFast(v, want.Kind, c, value) {
			continue
		}
		at := len(b.Buffer)
		b.Buffer = c.appendText(b.Buffer, value)
		if !r.spec.Append(v, want, b.Buffer[at:len(b.Buffer):len(b.Buffer)], bad) {
			return false
		}
	}
	return true
}

// ListSep is between the elements of a list that is read as text.
const ListSep = "\x1f"

// listText is a list as text: its elements, or at the head of a file their number in [].
func (r *Reader) listText(b *input.Batch, c *cursor, values []parquet.Value) []byte {
	at := len(b.Buffer)
	if r.head {
		b.Buffer = fmt.Appendf(b.Buffer, "[%d]", len(values))
		return b.Buffer[at:len(b.Buffer):len(b.Buffer)]
	}
	for i, v := range values {
		if i > 0 {
			b.Buffer = append(b.Buffer, ListSep...)
		}
		b.Buffer = c.appendText(b.Buffer, v)
	}
	return b.Buffer[at:len(b.Buffer):len(b.Buffer)]
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
func (r *Reader) vector(b *input.Batch, i int, bad *input.Bad) bool {
	for k, field := range r.spec.Vector {
		c := r.where[field]
		values := c.row(i)
		if len(values) != r.dims[k] {
			bad.What = fmt.Sprintf("column %q has a list of %d values, where others have %d",
				c.name, len(values), r.dims[k])
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

func (r *Reader) number(b *input.Batch, field int, c *cursor, value parquet.Value, bad *input.Bad) (
	x float32, ok bool) {
	if !value.IsNull() && c.isNumbers() {
		if x := float32(c.double(value)); x-x == 0 {
			return x, true
		}
	}
	at := len(b.Buffer)
	b.Buffer = c.appendText(b.Buffer, value)
	return r.spec.Number(field, b.Buffer[at:], bad)
}
