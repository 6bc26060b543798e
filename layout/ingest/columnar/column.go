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
	// present is the least definition level of an element of a list.
	present int
	what    string // of others: the type
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
			columns = append(columns, leafColumn(c, strings.Join(path, "."), repeated, present))
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

func leafColumn(c *parquet.Column, name string, repeated, present int) column {
	col := column{name: name, leaf: c.Index(), list: repeated == 1, present: present}
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

// integer returns the value of a column of integers, or of numbers that are integers.
func (c *column) integer(v parquet.Value) (n int64, ok bool) {
	switch c.form {
	case integers, times:
		if v.Kind() == parquet.Int32 {
			return int64(v.Int32()), true
		}
		return v.Int64(), true
	case unsigned:
		if v.Kind() == parquet.Int32 {
			return int64(v.Uint32()), true
		}
		return v.Int64(), v.Int64() >= 0
	case float32s, float64s:
		x := c.double(v)
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

// double returns the value of a column of numbers.
func (c *column) double(v parquet.Value) float64 {
	switch c.form {
	case float32s:
		return float64(v.Float())
	case float64s:
		return v.Double()
	case truths:
		if v.Boolean() {
			return 1
		}
		return 0
	case unsigned:
		if v.Kind() == parquet.Int64 {
			return float64(v.Uint64())
		}
	}
	n, _ := c.integer(v)
	return float64(n)
}

// appendText writes a value as it would stand in a text file; nothing for one that is null.
func (c *column) appendText(b []byte, v parquet.Value) []byte {
	if v.IsNull() {
		return b
	}
	switch c.form {
	case texts:
		return append(b, v.ByteArray()...)
	case truths:
		return strconv.AppendBool(b, v.Boolean())
	case times:
		n, _ := c.integer(v)
		return strconv.AppendInt(b, c.seconds(n), 10)
	case unsigned:
		if v.Kind() == parquet.Int64 {
			return strconv.AppendUint(b, v.Uint64(), 10)
		}
	case float32s, float64s:
		if n, ok := c.integer(v); ok { // as 7 and not 7.0: pandas makes ids with gaps numbers
			return strconv.AppendInt(b, n, 10)
		}
		return strconv.AppendFloat(b, c.double(v), 'g', -1, 64)
	case others:
		return fmt.Appendf(b, "<%s>", c.what)
	}
	n, _ := c.integer(v)
	return strconv.AppendInt(b, n, 10)
}

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

// listText returns a list as text: its elements, or at the head of a file their number in [].
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
	case input.ID, input.Reference:
		if n, ok := c.integer(value); ok && n >= 0 && c.form != times {
			v.IDs = append(v.IDs, uint64(n))
			return true
		}
	case input.Int64, input.Float64, input.Truth:
		n, ok := c.bits(kind, value)
		if ok {
			v.Integers, v.Nulls = append(v.Integers, n), append(v.Nulls, false)
		}
		return ok
	case input.Moment:
		n, ok := c.integer(value)
		v.Integers = append(v.Integers, c.micros(n))
		return ok
	case input.Time:
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

// bits returns a value as 64 bits if the column is of a kind.
func (c *column) bits(kind input.Kind, value parquet.Value) (n int64, ok bool) {
	switch {
	case kind == input.Int64 && c.form <= unsigned:
		return c.integer(value)
	case kind == input.Float64 && (c.form == float32s || c.form == float64s):
		return int64(math.Float64bits(c.double(value))), true
	case kind == input.Truth && c.form == truths:
		return int64(c.double(value)), true
	}
	return 0, false
}

// row returns the value of row i, or the values of its list.
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
