package source

import (
	"slices"

	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// allEdges names the edges of a source without types of nodes where columns are named.
const allEdges = "edges"

// edgesName returns what edges of a relation of a store are named by where columns are.
func edgesName(m *kv.Meta, relation int) string {
	if !m.Typed() {
		return allEdges
	}
	name, _, _ := RelationEnds(m, relation)
	return name
}

// addEdgeTable lists the columns of tables of edges that are stored: all but the ends of edges,
// their types, weights and times, and lists. Several tables become one with the columns of all: a
// row has null in the columns that its own table lacks.
func (s *parts) addEdgeTable(typ int, of string, tables []*edgeTable, given *givenTypes) {
	info := TableInfo{Type: typ}
	place := func(name string) int {
		return slices.IndexFunc(info.Columns, func(c table.Stored) bool { return c.Name == name })
	}
	own := make([][]table.Stored, len(tables))
	for i, t := range tables {
		own[i] = s.columnsToStore(t.Table, of, given, func(c int) bool {
			return t.hasRole(c) || t.Unnamed(c) || t.Names != nil && t.Names[c] == ""
		})
		for _, c := range own[i] {
			if at := place(c.Name); at < 0 {
				info.Columns = append(info.Columns, c)
			} else {
				info.Columns[at].Type = commonType(info.Columns[at].Type, c.Type)
			}
		}
	}
	for i, t := range tables {
		t.stored = slices.Clone(info.Columns)
		for k := range t.stored {
			t.stored[k] = t.stored[k].Lacking()
		}
		for _, c := range own[i] {
			c.Type = info.Columns[place(c.Name)].Type
			t.stored[place(c.Name)] = c
			s.describeColumn(t.Path, c)
		}
		info.RowBytes = max(info.RowBytes, table.RowBytes(t.Table, t.stored))
	}
	if len(info.Columns) > 0 {
		s.info.EdgeTables = append(s.info.EdgeTables, info)
	}
}

// commonType returns the type of a column that has one type in one file and one in another.
func commonType(a, b string) string {
	numbers := []string{columnfile.Int64, columnfile.Float64}
	switch {
	case a == b:
		return a
	case slices.Contains(numbers, a) && slices.Contains(numbers, b):
		return columnfile.Float64
	}
	return columnfile.String
}

// describeColumn says of a column without a role as what it is stored.
func (s *parts) describeColumn(file string, c table.Stored) {
	for i := range s.info.Columns {
		if known := &s.info.Columns[i]; known.File == file && known.Name == c.Name &&
			known.Role == "" {
			known.Role = c.Type
		}
	}
}

// storedInputs returns how the stored columns of the table are read.
func (t *edgeTable) storedInputs() (columns []input.Column) {
	for i := range t.stored {
		if !t.stored[i].IsLacking() {
			columns = append(columns, t.stored[i].Input())
		}
	}
	return columns
}

// parseStored sets the stored columns of a chunk to what was read of them.
func (t *edgeTable) parseStored(c *EdgeChunk, read []input.Values, rows int,
	missing []string) error {
	if len(c.Columns) == 0 {
		c.Columns = make([]columnfile.Values, len(t.stored))
	}
	for k := range t.stored {
		to, column := &c.Columns[k], &t.stored[k]
		to.Reset()
		if column.IsLacking() {
			for range rows {
				to.AddNull(column.Type)
			}
			continue
		}
		if err := column.Parse(to, &read[0], missing, &c.Where); err != nil {
			return err
		}
		read = read[1:]
	}
	return nil
}

// bare returns the table without its stored columns.
func (t *edgeTable) bare() *edgeTable {
	b := *t
	b.stored = nil
	return &b
}
