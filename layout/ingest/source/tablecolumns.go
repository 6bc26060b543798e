package source

import (
	"context"
	"maps"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// TableInfo is a table whose columns are stored: the nodes of a type, or the edges of one.
type TableInfo struct {
	Type    int // 0 of a table that all edges are in, of a source whose types are no ranges
	Columns []table.Stored
	// RowBytes is, of a table of edges, the size of the largest of its first rows, as package
	// tables encodes them; 0 if it is not known.
	RowBytes int
	// Reverse is the relation that has the same edges the other way round; 0 is none.
	Reverse int
	// Roles are what columns are besides, by name: label, split, or an end of an edge.
	Roles map[string]string
}

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
		of := t.table.opened
		columns := s.columnsToStore(of.Table, t.name, given, func(c int) bool { return c == of.id })
		if len(columns) > 0 {
			s.info.Tables = append(s.info.Tables, TableInfo{Type: i, Columns: columns})
		}
	}
	for i, r := range s.relations {
		isNodes := func(t NodeTable) bool { return t.File == r.File }
		if r.Key != "" || slices.ContainsFunc(s.opt.NodeTables, isNodes) {
			continue // its rows are nodes, whose table has the columns
		}
		s.addEdgeTable(i, r.Name, []*edgeTable{r.edges()}, given)
	}
	for i := range s.info.EdgeTables {
		if t := &s.info.EdgeTables[i]; s.reverse {
			t.Reverse = t.Type + len(s.relations)
		}
	}
	s.describeColumns()
	return given.allUsed()
}

// columnsToStore lists the columns of a table that are stored: all but lists and those that have.
func (s *parts) columnsToStore(t *table.Table, of string, given *givenTypes,
	has func(c int) bool) (columns []table.Stored) {
	for c := range t.Width {
		if has(c) || t.List(c) || t.Kind(c) == table.Unread {
			continue
		}
		columns = append(columns, s.tables.Store(t, c, of, given.take(of+ColumnSep+t.Name(c))))
	}
	return columns
}

// givenTypes are the types of columns that --column-types names, by TYPE.COLUMN.
type givenTypes struct {
	types map[string]string
	used  map[string]bool
}

// take returns the type of a column, "" if none is given.
func (g *givenTypes) take(key string) string {
	g.used[key] = true
	return g.types[key]
}

// allUsed fails if a type is given of a column that is not stored.
func (g *givenTypes) allUsed() error {
	for _, key := range slices.Sorted(maps.Keys(g.types)) {
		if !g.used[key] {
			return input.Usage("--column-types %s: no table has a column of that name to store",
				key)
		}
	}
	return nil
}

// givenTypes reads --column-types.
func (s *parts) givenTypes() (*givenTypes, error) {
	given := &givenTypes{map[string]string{}, map[string]bool{}}
	for _, word := range table.ListOf(s.opt.ColumnTypes) {
		if word == "" {
			continue
		}
		at := len(word) - 1
		for at >= 0 && word[at] != '=' {
			at--
		}
		if at < 1 || !slices.Contains(table.ColumnTypes, word[at+1:]) {
			return nil, input.Usage("--column-types %s: write TYPE%sCOLUMN=KIND, where KIND is "+
				"one of %v", word, ColumnSep, table.ColumnTypes)
		}
		given.types[word[:at]] = word[at+1:]
	}
	given.addStored(s.opt.Of)
	return given, nil
}

// addStored adds the types that columns have in a store, nil for none. Tables need not have all of
// them.
func (g *givenTypes) addStored(of *kv.Meta) {
	if of == nil {
		return
	}
	for r := range max(1, len(of.Relations)) {
		for _, c := range of.EdgeColumns(r) {
			key := edgesName(of, r) + ColumnSep + c.Name
			g.types[key], g.used[key] = c.Type, true
		}
	}
	for _, t := range of.NodeTypes {
		for _, c := range t.Columns {
			key := t.Name + ColumnSep + c.Name
			g.types[key], g.used[key] = c.Type, true
		}
	}
}

// RelationEnds returns the name of a relation of a typed store, without the types of its ends where
// they stand before and behind it, and these.
func RelationEnds(m *kv.Meta, relation int) (name, src, dst string) {
	r := m.Relations[relation]
	src, dst = m.NodeTypes[r.Src].Name, m.NodeTypes[r.Dst].Name
	name = strings.TrimPrefix(m.EdgeTypes[relation], src+TypeSep)
	return strings.TrimSuffix(name, TypeSep+dst), src, dst
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
		want.columns = append(want.columns, t.Columns[c].Input())
	}
	out, missing := &ColumnChunk{Columns: make([]columnfile.Values, len(columns))}, s.tables.Missing
	return input.AsError(s.types[t.Type].table.opened.each(ctx, want, func(r *nodeRows) error {
		out.Where = r.ids.Where
		for k, c := range columns {
			out.Columns[k].Reset()
			err := t.Columns[c].Parse(&out.Columns[k], &r.columns[k], missing, &out.Where)
			if err != nil {
				return err
			}
		}
		return fn(out)
	}))
}
