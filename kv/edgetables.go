package kv

import "slices"

// EdgeTable describes the table of the edges of a relation. Its rows are in the order of in-lists:
// entry k of the list of a node has the row that Starts has for the node, plus k.
type EdgeTable struct {
	// Relation is a number of EdgeTypes. In a store that is not typed it is 0, and all edges are in
	// the table.
	Relation int
	// Rows is the number of edges.
	Rows uint64
	// Starts has a row for each node that the relation may lead to, in order: where the rows of its
	// list begin.
	Starts  TableColumn
	Columns []TableColumn `json:",omitempty"`
	// Reverse is set for a relation that is another one, the other way round, and has no columns of
	// its own.
	Reverse *ReverseRows `json:",omitempty"`
}

// ReverseRows says where the columns of a reverse relation are: in the table of relation Of, in the
// row that Rows has for an entry.
type ReverseRows struct {
	Of   int
	Rows TableColumn
}

// EdgeTable returns the table of the edges of a relation, nil if it has none.
func (m *Meta) EdgeTable(relation int) *EdgeTable {
	for i := range m.EdgeTables {
		if m.EdgeTables[i].Relation == relation {
			return &m.EdgeTables[i]
		}
	}
	return nil
}

// EdgeColumns describes the columns of the edges of a relation, of a reverse one those of the
// relation that it reverses.
func (m *Meta) EdgeColumns(relation int) []TableColumn {
	t := m.EdgeTable(relation)
	if t != nil && t.Reverse != nil {
		t = m.EdgeTable(t.Reverse.Of)
	}
	if t == nil {
		return nil
	}
	return t.Columns
}

// IsEdgeColumn reports whether a file is of a table of edges.
func (m *Meta) IsEdgeColumn(path string) bool {
	for i := range m.EdgeTables {
		t := &m.EdgeTables[i]
		if slices.Contains(t.Paths(), path) {
			return true
		}
	}
	return false
}

// Paths returns the files of the table.
func (t *EdgeTable) Paths() []string {
	paths := []string{t.Starts.Path}
	for _, c := range t.Columns {
		paths = append(paths, c.Path)
	}
	if t.Reverse != nil {
		paths = append(paths, t.Reverse.Rows.Path)
	}
	return paths
}
