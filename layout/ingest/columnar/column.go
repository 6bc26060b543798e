package columnar

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gdb/layout/ingest/input"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// form is what the values of a column are.
type form uint8

const (
	integers form = iota
	unsigned
	float32s
	float64s
	truths
	texts
	times // integers, in a unit
	others
)

// column is a column of a table: a leaf of the schema outside of lists, or a list of leaves.
type column struct {
	name string
	leaf int
	form form
	unit time.Duration // of times
	half bool          // the file has float32s in 16 bits
	list bool
	// present is the least definition level of an element of a list, and full that of a value that
	// is not null.
	present, full int
	what          string // of others: the type
}

// columnsOf lists the columns below a node of the schema. What is inside of a list goes by the name
// of the list: the names inside are not the user's.
func columnsOf(root *parquet.Column) (columns []column) {
	var walk func(c *parquet.Column, path []string, level, repeated, present int)
	walk = func(c *parquet.Column, path []string, level, repeated, present int) {
		if c.Optional() {
			level++
		}
		if c.Repeated() {
			level++
			repeated++
			present = level
		}
		if repeated == 0 || len(path) == 0 {
			path = append(path[:len(path):len(path)], c.Name())
		}
		if c.Leaf() {
			columns = append(columns, leafColumn(c, strings.Join(path, "."), repeated, present,
				level))
		}
		for _, child := range c.Columns() {
			walk(child, path, level, repeated, present)
		}
	}
	for _, c := range root.Columns() {
		walk(c, nil, 0, 0, 0)
	}
	return columns
}

func leafColumn(c *parquet.Column, name string, repeated, present, full int) column {
	col := column{name: name, leaf: c.Index(), list: repeated == 1, present: present, full: full}
	col.setForm(c.Type())
	if repeated > 1 {
		col.form, col.what = others, "lists of lists"
	}
	return col
}

// setForm finds what values of a type are.
func (c *column) setForm(t parquet.Type) {
	if logical := t.LogicalType(); logical != nil {
		switch l := logical.Value.(type) {
		case *format.DecimalType, *format.JsonType, *format.BsonType, *format.UUIDType:
			c.form, c.what = others, logical.String()
			return
		case *format.DateType:
			c.form, c.unit = times, 24*time.Hour
			return
		case *format.TimestampType:
			c.form, c.unit = times, l.Unit.Value.Duration()
			return
		case *format.IntType:
			if !l.IsSigned {
				c.form = unsigned
				return
			}
		}
	}
	switch t.Kind() {
	case parquet.Boolean:
		c.form = truths
	case parquet.Int32, parquet.Int64:
		c.form = integers
	case parquet.Float:
		c.form = float32s
	case parquet.Double:
		c.form = float64s
	case parquet.ByteArray:
		c.form = texts
	default:
		c.form, c.what = others, t.String()
	}
}

// integer returns a value of a column of integers, or of numbers that are integers.
func (c *column) integer(bits int64) (n int64, ok bool) {
	switch c.form {
	case integers, times:
		return bits, true
	case unsigned:
		return bits, bits >= 0
	case float32s, float64s:
		x := c.double(bits)
		return int64(x), x == math.Trunc(x) && math.Abs(x) < 1<<53
	}
	return 0, false
}

// micros returns a time of the column as microseconds since 1970.
func (c *column) micros(n int64) int64 {
	if per := int64(c.unit / time.Microsecond); per > 0 {
		return n * per
	}
	return n / int64(time.Microsecond/c.unit)
}

// seconds returns a time of the column as seconds since 1970.
func (c *column) seconds(n int64) int64 {
	per := int64(c.unit / time.Second)
	if per > 0 {
		return n * per
	}
	per = int64(time.Second / c.unit)
	s := n / per
	if n%per < 0 {
		s--
	}
	return s
}

// double returns a value of a column of numbers.
func (c *column) double(bits int64) float64 {
	switch c.form {
	case float32s, float64s:
		return math.Float64frombits(uint64(bits))
	case unsigned:
		return float64(uint64(bits))
	}
	return float64(bits)
}

// appendText writes value i as it would stand in a text file; nothing for one that is null.
func (c *cursor) appendText(b []byte, i int) []byte {
	if c.isText() {
		return append(b, c.texts[i]...)
	}
	n := c.bits[i]
	switch {
	case c.nulls[i]:
		return b
	case c.form == truths:
		return strconv.AppendBool(b, n != 0)
	case c.form == times:
		return strconv.AppendInt(b, c.seconds(n), 10)
	case c.form == unsigned:
		return strconv.AppendUint(b, uint64(n), 10)
	case c.form == integers:
		return strconv.AppendInt(b, n, 10)
	}
	if n, ok := c.integer(n); ok { // as 7 and not 7.0: pandas makes ids with gaps numbers
		return strconv.AppendInt(b, n, 10)
	}
	return strconv.AppendFloat(b, c.double(n), 'g', -1, 64)
}

// isText reports whether the values are texts, or shown as one.
func (c *column) isText() bool { return c.form == texts || c.form == others }

// isNumbers reports whether the values are numbers.
func (c *column) isNumbers() bool { return c.form <= truths }

// check returns an error if a column cannot be read as kind, whatever its values are.
func (c *column) check(file string, kind input.Kind) error {
	switch {
	case c.form == others:
		return input.Wrong(file, "write it as numbers or text",
			"column %q is of type %s, which is not read", c.name, c.what)
	case c.list && kind != input.Text:
		return input.Wrong(file, "give a column with one value a row", "column %q has lists",
			c.name)
	}
	return nil
}

// convert makes a batch of the rows that were taken, or of the first of them: a text of a
// dictionary may be in memory once and stand in every row. Rows are converted a column at a time;
// if one is bad, one by one.
func (r *Reader) convert(b *input.Batch) {
	b.Reset(len(r.spec.Columns))
	b.Buffer = b.Buffer[:0]
	b.File, b.First, b.Unit = r.file.name, r.row, "row"
	end, bad := r.textEnd(), input.Bad{}
	if r.rowsOf(b, r.at, end, &bad) {
		b.Rows = end - r.at
		r.row += int64(end - r.at)
		r.at = end
		return
	}
	b.Truncate(r.dim)
	for b.Buffer = b.Buffer[:0]; r.at < end; r.at++ {
		bad = input.Bad{Line: r.row}
		if r.rowsOf(b, r.at, r.at+1, &bad) {
			b.Place(r.row)
		} else {
			b.Truncate(r.dim)
			b.Bad = append(b.Bad, bad)
		}
		r.row++
	}
}

// textEnd returns up to which row texts are converted together.
func (r *Reader) textEnd() (end int) {
	var withText []*cursor
	for _, want := range r.spec.Columns {
		if c := r.where[want.Field]; c.isText() {
			withText = append(withText, c)
		}
	}
	if len(withText) == 0 {
		return r.taken
	}
	bytes := 0
	for end = r.at; end < r.taken && bytes < batchBytes; end++ {
		for _, c := range withText {
			from, to := c.row(end)
			for _, text := range c.texts[from:to] {
				bytes += len(text)
			}
		}
	}
	return end
}

// rowsOf appends rows to a batch, or says what is wrong with one, with some of them appended.
func (r *Reader) rowsOf(b *input.Batch, from, to int, bad *input.Bad) bool {
	for k := range r.spec.Columns {
		if !r.columnOf(b, k, from, to, bad) {
			return false
		}
	}
	return r.vectorOf(b, from, to, bad)
}

// columnOf appends rows to column k, or says what is wrong with one.
func (r *Reader) columnOf(b *input.Batch, k, from, to int, bad *input.Bad) bool {
	want, v := r.spec.Columns[k], &b.Columns[k]
	c := r.where[want.Field]
	if c.list {
		for i := from; i < to; i++ {
			v.Texts = append(v.Texts, r.listText(b, c, i))
		}
		return true
	}
	if c.convertFast(v, &want, from, to) {
		return true
	}
	v.Truncate(b.Rows)
	for i := from; i < to; i++ {
		at := len(b.Buffer)
		b.Buffer = c.appendText(b.Buffer, i)
		if !r.spec.Append(v, want, b.Buffer[at:len(b.Buffer):len(b.Buffer)], bad) {
			return false
		}
	}
	return true
}

// ListSep is between the elements of a list that is read as text.
const ListSep = "\x1f"

// listText returns a list as text: its elements, or at the head of a file their number in [].
func (r *Reader) listText(b *input.Batch, c *cursor, row int) []byte {
	at := len(b.Buffer)
	from, to := c.row(row)
	if r.head {
		b.Buffer = fmt.Appendf(b.Buffer, "[%d]", to-from)
		return b.Buffer[at:len(b.Buffer):len(b.Buffer)]
	}
	for i := from; i < to; i++ {
		if i > from {
			b.Buffer = append(b.Buffer, ListSep...)
		}
		b.Buffer = c.appendText(b.Buffer, i)
	}
	return b.Buffer[at:len(b.Buffer):len(b.Buffer)]
}

// row returns where the values of row i are.
func (c *cursor) row(i int) (from, to int) {
	switch {
	case !c.list:
		return i, i + 1
	case i == 0:
		return 0, c.ends[0]
	}
	return c.ends[i-1], c.ends[i]
}

// vectorOf appends rows to the vector, or says what is wrong with one.
func (r *Reader) vectorOf(b *input.Batch, from, to int, bad *input.Bad) bool {
	for row := from; row < to && len(r.spec.Vector) > 0; row++ {
		for k, field := range r.spec.Vector {
			c := r.where[field]
			first, end := c.row(row)
			if end-first != r.dims[k] {
				bad.What = fmt.Sprintf("column %q has a list of %d values, where others have %d",
					c.name, end-first, r.dims[k])
				return false
			}
			for i := first; i < end; i++ {
				x, ok := r.number(b, field, c, i, bad)
				if !ok {
					return false
				}
				b.Vector = append(b.Vector, x)
			}
		}
	}
	return true
}

// number returns value i of a field of the vector.
func (r *Reader) number(b *input.Batch, field int, c *cursor, i int, bad *input.Bad) (x float32,
	ok bool) {
	if c.isNumbers() && !c.nulls[i] {
		if x := float32(c.double(c.bits[i])); x-x == 0 {
			return x, true
		}
	}
	at := len(b.Buffer)
	b.Buffer = c.appendText(b.Buffer, i)
	return r.spec.Number(field, b.Buffer[at:], bad)
}
