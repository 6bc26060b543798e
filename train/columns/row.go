package columns

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/input"
)

// Row encodes rows of a type that no table of the store has: those of new nodes. It may be used
// from any goroutine.
type Row struct {
	of       *kv.NodeTypeMeta
	encoders []*encoder
	dim      int
}

// CellError says what is wrong with the value of a column.
type CellError struct{ Column, What, Do string }

// Error returns it in one line.
func (e *CellError) Error() string {
	return fmt.Sprintf("column %q: %s: %s", e.Column, e.What, e.Do)
}

// NewRow returns what encodes rows of a type of a store. It fails if rows have more than the values
// of columns.
func (e *Encoders) NewRow(m *kv.Meta, typ int) (*Row, error) {
	t := &e.Types[typ]
	if len(t.Vectors) > 0 {
		return nil, fmt.Errorf("its features have the vectors of %s beside columns",
			t.Vectors[0].Name)
	}
	r := &Row{of: &m.NodeTypes[typ], dim: t.Dim()}
	for i := range t.Columns {
		at := r.column(t.Columns[i].Name)
		if at < 0 {
			return nil, lacks(t.Columns[i].Name)
		}
		r.encoders = append(r.encoders, newEncoder(&t.Columns[i], r.of.Columns[at].Type))
	}
	return r, nil
}

// lacks is the error of a store without a column that a run needs.
func lacks(name string) error {
	return fmt.Errorf("column %q, which the run was trained on, is not there", name)
}

// column returns the number of a column of the table, or -1.
func (r *Row) column(name string) int {
	return slices.IndexFunc(r.of.Columns, func(c kv.TableColumn) bool { return c.Name == name })
}

// Encode returns the row of the values of some columns by their names, as a table with these values
// would have it. Columns that are left out have no value. Values are as JSON has them: a
// json.Number, text, true or false. Columns that are not features are checked and not read. Errors
// are CellErrors.
func (r *Row) Encode(cells map[string]any) ([]float32, error) {
	values := make([]columnfile.Values, len(r.of.Columns))
	for name, cell := range cells {
		at := r.column(name)
		if at < 0 {
			var names []string
			for _, c := range r.of.Columns {
				names = append(names, c.Name)
			}
			return nil, &CellError{name, "nodes of type " + r.of.Name + " have no such column",
				"name one of " + strings.Join(names, ", ")}
		}
		if err := parseCell(&r.of.Columns[at], cell, &values[at]); err != nil {
			return nil, err
		}
	}
	row, first := make([]float32, r.dim), 0
	for _, e := range r.encoders {
		v := &values[r.column(e.Name)]
		if v.Rows == 0 {
			v.AddNull(e.typ)
		}
		e.encode(v, 0, row[first:first+e.Dim()])
		first += e.Dim()
	}
	return row, nil
}

// wanted says what values of the types of columns are.
var wanted = map[string]string{columnfile.Int64: "an integer", columnfile.Float64: "a number",
	columnfile.Bool: "true or false", columnfile.String: "text",
	columnfile.Date:      `a date, such as "2026-01-05"`,
	columnfile.Timestamp: `a date and time, such as "2026-01-05T12:30:00Z"`}

// parseCell sets to, which has no rows, to a value as tables have it: as ingest parses its text.
func parseCell(c *kv.TableColumn, cell any, to *columnfile.Values) error {
	if cell == nil {
		return &CellError{c.Name, "null is no value", "leave the column out where it has none"}
	}
	text, ok := textOf(c.Type, cell)
	if ok && c.Type == columnfile.String {
		if text == "" { // as an empty field of a table
			to.AddNull(c.Type)
			return nil
		}
		to.Strings.Add([]byte(text))
		to.AddRow(true)
		return nil
	}
	bits := int64(0)
	if ok {
		bits, ok = input.ParseValue(c.Type, []byte(text))
	}
	if !ok {
		return &CellError{c.Name, fmt.Sprintf("%s is not %s", shown(cell), wanted[c.Type]),
			fmt.Sprintf("give %s, or leave the column out where it has none", wanted[c.Type])}
	}
	if c.Type == columnfile.Float64 {
		to.Floats = append(to.Floats, math.Float64frombits(uint64(bits)))
	} else {
		to.Ints = append(to.Ints, bits)
	}
	to.AddRow(true)
	return nil
}

// textOf returns a value as the text of a table, and whether a column of the type has such values.
func textOf(typ string, cell any) (text string, ok bool) {
	switch v := cell.(type) {
	case string:
		return v, typ == columnfile.String || typ == columnfile.Date ||
			typ == columnfile.Timestamp
	case json.Number:
		return v.String(), typ == columnfile.Int64 || typ == columnfile.Float64
	case bool:
		return fmt.Sprint(v), typ == columnfile.Bool
	}
	return "", false
}

// shown shows a value in a message, shortened.
func shown(cell any) string {
	const most = 40
	switch v := cell.(type) {
	case string:
		return fmt.Sprintf("%.*q", most, v)
	case json.Number, bool:
		return fmt.Sprintf("%.*s", most, fmt.Sprint(v))
	}
	return "a list or an object"
}
