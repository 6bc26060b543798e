package table

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/input"
)

// Stored is a column that is stored, with its type: one of package columnfile.
type Stored struct {
	Name, Type string
	Of         string // the type of nodes or edges whose table it is in, for messages
	field      int    // -1 if its file does not have it
	moment     bool   // its file has times as numbers
	// kind is what its values are read as: Text, where they are parsed here.
	kind input.Kind
}

// Store returns a column of a table as it is stored, of a type that the user gave; "" finds one.
func (s *Opener) Store(t *Table, col int, of, typ string) Stored {
	c := Stored{Name: t.Name(col), Type: typ, Of: of, field: col, moment: t.IsTime(col)}
	if typ == "" {
		c.Type = ColumnType(t, col, s.Missing)
	}
	kinds := map[string]input.Kind{columnfile.Int64: input.Int64, columnfile.Bool: input.Truth,
		columnfile.Float64: input.Float64}
	kind, has := kinds[c.Type]
	if c.kind = input.Text; has && c.Type == t.Kind(col) && len(s.Missing) == 0 {
		c.kind = kind
	}
	return c
}

// Lacking returns the column as one that a file does not have.
func (c Stored) Lacking() Stored {
	c.field = -1
	return c
}

// IsLacking reports whether the file does not have the column.
func (c *Stored) IsLacking() bool { return c.field < 0 }

// readsMoments reports whether the file has times as numbers, which are read so if the column is
// not text.
func (c *Stored) readsMoments() bool { return c.moment && c.Type != columnfile.String }

// ColumnTypes are the types that --column-types may name.
var ColumnTypes = []string{columnfile.Int64, columnfile.Float64, columnfile.Bool,
	columnfile.String, columnfile.Date, columnfile.Timestamp}

// ColumnType finds the type of a column: that which a table of columns says, else the narrowest
// that all values of its first rows are of.
func ColumnType(t *Table, col int, missing []string) string {
	if kind := t.Kind(col); kind != "" {
		return kind
	}
	types := []string{columnfile.Bool, columnfile.Int64, columnfile.Float64, columnfile.Date,
		columnfile.Timestamp}
	some := false
	for _, r := range t.Sample {
		if r[col] == "" || slices.Contains(missing, r[col]) {
			continue
		}
		some = true
		types = slices.DeleteFunc(types, func(typ string) bool {
			_, ok := input.ParseValue(typ, []byte(r[col]))
			return !ok || typ == columnfile.Float64 && isCode(r[col])
		})
	}
	if !some || len(types) == 0 {
		return columnfile.String
	}
	return types[0]
}

// RowBytes returns the size of the largest of the first rows of a table with some columns: a bit
// for each column, and varints of integers, 8 bytes of a float, strings after their lengths.
func RowBytes(t *Table, columns []Stored) (most int) {
	for _, r := range t.Sample {
		n := (len(columns) + 7) / 8
		for i := range columns {
			if c := &columns[i]; !c.IsLacking() && r[c.field] != "" {
				n += c.cellBytes(r[c.field])
			}
		}
		most = max(most, n)
	}
	return most
}

// RowBytesOf does what RowBytes does for columns of a store, by their bounds: rows of strings may
// be larger.
func RowBytesOf(columns []kv.TableColumn) int {
	n := (len(columns) + 7) / 8
	for _, of := range columns {
		switch c := (Stored{Type: of.Type}); {
		case of.Nulls == of.Rows:
		case of.Type == columnfile.Bool:
			n++
		default:
			n += max(c.cellBytes(of.Least), c.cellBytes(of.Greatest))
		}
	}
	return n
}

// cellBytes returns the size of a value in a row.
func (c *Stored) cellBytes(f string) int {
	switch c.Type {
	case columnfile.String:
		return len(binary.AppendUvarint(nil, uint64(len(f)))) + len(f)
	case columnfile.Float64:
		return 8
	}
	bits, ok := input.ParseValue(c.Type, []byte(f))
	if !ok { // a file of columns shows it in another way
		return binary.MaxVarintLen64
	}
	return len(binary.AppendVarint(nil, bits))
}

// isCode reports whether a number begins with a 0 that says nothing, as in a code of a place.
func isCode(f string) bool {
	return len(f) > 1 && f[0] == '0' && f[1] >= '0' && f[1] <= '9'
}

// takeMoments takes times that a file has as numbers.
func takeMoments(to *columnfile.Values, c *Stored, micros []int64) {
	for _, n := range micros {
		null := n == input.NoMoment
		switch {
		case null:
			n = 0
		case c.Type == columnfile.Date:
			n = (n - (n%microsOfDay+microsOfDay)%microsOfDay) / microsOfDay
		}
		to.Ints = append(to.Ints, n)
		to.AddRow(!null)
	}
}

// takeBits takes values that a file has as they are stored.
func takeBits(to *columnfile.Values, c *Stored, from *input.Values) {
	for i, n := range from.Integers {
		if c.Type == columnfile.Float64 {
			to.Floats = append(to.Floats, math.Float64frombits(uint64(n)))
		} else {
			to.Ints = append(to.Ints, n)
		}
		to.AddRow(!from.Nulls[i])
	}
}

// microsOfDay is a day in microseconds.
const microsOfDay = 24 * 60 * 60 * 1_000_000

// Input returns how the column is read.
func (c *Stored) Input() input.Column {
	if c.readsMoments() {
		return input.Column{Field: c.field, Kind: input.Moment}
	}
	return input.Column{Field: c.field, Kind: c.kind}
}

// Parse appends values of the column that were read from rows at a place.
func (c *Stored) Parse(to *columnfile.Values, from *input.Values, missing []string,
	where *input.Where) error {
	if c.readsMoments() {
		takeMoments(to, c, from.Integers)
		return nil
	}
	if c.kind != input.Text {
		takeBits(to, c, from)
		return nil
	}
	for i, f := range from.Texts {
		null := len(f) == 0 || len(missing) > 0 && slices.Contains(missing, string(f))
		bits, ok := int64(0), true
		if !null && c.Type != columnfile.String {
			bits, ok = input.ParseValue(c.Type, f)
		}
		if !ok {
			return &input.Error{Where: where.Position(i), What: fmt.Sprintf("column %q has %.40q, "+
				"and is %s by its first rows", c.Name, f, c.Type),
				Do: fmt.Sprintf("--column-types %s.%s=string keeps it as text", c.Of, c.Name)}
		}
		switch c.Type {
		case columnfile.String:
			if null {
				f = nil
			}
			to.Strings.Add(f)
		case columnfile.Float64:
			to.Floats = append(to.Floats, math.Float64frombits(uint64(bits)))
		default:
			to.Ints = append(to.Ints, bits)
		}
		to.AddRow(!null)
	}
	return nil
}
