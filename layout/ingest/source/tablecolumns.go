package source

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gdb/layout/columnfile"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// TableInfo is a table whose columns are stored: the nodes of a type.
type TableInfo struct {
	Type    int
	Columns []ColumnInfo
	// Roles are what columns are besides, by name: label, split, or an end of an edge.
	Roles map[string]string
}

// ColumnInfo is a column that is stored, with its type: one of package columnfile.
type ColumnInfo struct {
	Name, Type string
	field      int
	moment     bool // its file has times as numbers
	of         string
}

// ColumnTypes are the types that --column-types may name.
var ColumnTypes = []string{columnfile.Int64, columnfile.Float64, columnfile.Bool,
	columnfile.String, columnfile.Date, columnfile.Timestamp}

// addColumns lists the columns of all tables that are stored: all but the ids, and lists, which are
// features.
func (s *typedGraph) addColumns() error {
	given, err := s.givenTypes()
	if err != nil {
		return err
	}
	for i, t := range s.types {
		if t.table == nil {
			continue
		}
		info := TableInfo{Type: i}
		of := t.table.opened
		for c := range of.Width {
			if c == of.id || of.List(c) || of.Kind(c) == table.Unread {
				continue
			}
			column := ColumnInfo{Name: of.Name(c), field: c, of: t.name}
			key := t.name + ColumnSep + column.Name
			if column.Type = given[key]; column.Type == "" {
				column.Type = ColumnType(of.Table, c, t.table.tables.Missing)
			}
			column.moment = of.IsTime(c) && column.Type != columnfile.String
			delete(given, key)
			info.Columns = append(info.Columns, column)
		}
		if len(info.Columns) > 0 {
			s.info.Tables = append(s.info.Tables, info)
		}
	}
	for key := range given {
		return input.Usage("--column-types %s: no table has a column of that name to store", key)
	}
	s.describeColumns()
	return nil
}

// givenTypes reads --column-types.
func (s *typedGraph) givenTypes() (map[string]string, error) {
	given := map[string]string{}
	for _, word := range table.ListOf(s.opt.ColumnTypes) {
		if word == "" {
			continue
		}
		at := len(word) - 1
		for at >= 0 && word[at] != '=' {
			at--
		}
		if at < 1 || !slices.Contains(ColumnTypes, word[at+1:]) {
			return nil, input.Usage("--column-types %s: write TYPE%sCOLUMN=KIND, where KIND is "+
				"one of %v", word, ColumnSep, ColumnTypes)
		}
		given[word[:at]] = word[at+1:]
	}
	return given, nil
}

// valueRoles are the roles of columns that are values of their rows, and no more.
var valueRoles = []string{"", "feature", "time", "weight"}

// describeColumns says of columns without a role as what they are stored.
func (s *typedGraph) describeColumns() {
	for n := range s.info.Tables {
		t := &s.info.Tables[n]
		t.Roles = map[string]string{}
		file := s.types[t.Type].table.opened.Path
		for _, c := range t.Columns {
			for i := range s.info.Columns {
				known := &s.info.Columns[i]
				if known.File != file || known.Name != c.Name {
					continue
				}
				if role, _, _ := strings.Cut(known.Role, ","); !slices.Contains(valueRoles, role) {
					t.Roles[c.Name] = known.Role
				}
				if known.Role != "" {
					known.Role += ", "
				}
				known.Role += c.Type
			}
		}
	}
}

// ColumnType finds the type of a column: that which a table of columns says, else the narrowest
// that all values of its first rows are of.
func ColumnType(t *table.Table, col int, missing []string) string {
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
			_, ok := parseValue(typ, []byte(r[col]))
			return !ok
		})
	}
	if !some || len(types) == 0 {
		return columnfile.String
	}
	return types[0]
}

// parseValue reads a value of a type other than string, as the bits that columnfile.Values hold.
func parseValue(typ string, f []byte) (bits int64, ok bool) {
	switch typ {
	case columnfile.Bool:
		x, ok := input.ParseTruth(f)
		return int64(x), ok
	case columnfile.Int64:
		n, ok := input.ParseInteger(f)
		// 007 and +7 are texts: as numbers they would come back as others.
		return n, ok && (len(f) == 1 || f[0] != '0' && f[0] != '+' && (f[0] != '-' || f[1] != '0'))
	case columnfile.Float64:
		x, err := strconv.ParseFloat(string(f), 64)
		return int64(math.Float64bits(x)), err == nil
	case columnfile.Date:
		at, day, ok := input.ParseDate(f)
		return at.Unix() / secondsOfDay, ok && day // a whole number of days
	}
	at, _, ok := input.ParseDate(f)
	return at.UnixMicro(), ok
}

// secondsOfDay is how long a day is.
const secondsOfDay = 24 * 60 * 60

// takeMoments takes times that a file has as numbers.
func takeMoments(to *columnfile.Values, c *ColumnInfo, micros []int64) {
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

// microsOfDay is a day in microseconds.
const microsOfDay = secondsOfDay * 1_000_000

// ColumnChunk is a run of rows of some columns of a table.
type ColumnChunk struct {
	Columns []columnfile.Values
	Where
}

// TableColumns streams some columns of a table, by their places in TableInfo.Columns.
func (s *typedGraph) TableColumns(ctx context.Context, t *TableInfo, columns []int,
	fn func(*ColumnChunk) error) error {
	want := nodeWants{}
	for _, c := range columns {
		kind := input.Text
		if t.Columns[c].moment {
			kind = input.Moment
		}
		want.columns = append(want.columns, input.Column{Field: t.Columns[c].field, Kind: kind})
	}
	out := &ColumnChunk{Columns: make([]columnfile.Values, len(columns))}
	return input.AsError(s.types[t.Type].table.opened.each(ctx, want, func(r *nodeRows) error {
		out.Where = r.ids.Where
		for k, c := range columns {
			out.Columns[k].Reset()
			if err := s.parseColumn(&out.Columns[k], &t.Columns[c], r, k); err != nil {
				return err
			}
		}
		return fn(out)
	}))
}

// parseColumn reads the texts of column number k of rows.
func (s *typedGraph) parseColumn(to *columnfile.Values, c *ColumnInfo, r *nodeRows, k int) error {
	if c.moment {
		takeMoments(to, c, r.columns[k].Integers)
		return nil
	}
	missing := s.tables.Missing
	for i, f := range r.columns[k].Texts {
		null := len(f) == 0 || len(missing) > 0 && slices.Contains(missing, string(f))
		bits, ok := int64(0), true
		if !null && c.Type != columnfile.String {
			bits, ok = parseValue(c.Type, f)
		}
		if !ok {
			return &input.Error{Where: r.ids.Position(i), What: fmt.Sprintf("column %q has %.40q, "+
				"and is %s by its first rows", c.Name, f, c.Type),
				Do: fmt.Sprintf("--column-types %s.%s=string keeps it as text", c.of, c.Name)}
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
