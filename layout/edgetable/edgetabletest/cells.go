// Package edgetabletest reads tables of edges as text, for tests.
package edgetabletest

import (
	"fmt"
	"testing"

	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/edgetable"
	"gdb/layout/layouttest"
)

// Cells returns, for each of some entries of the in-lists of a relation, in any order, the
// columns of the edge with a blank before each; "" if the edges have none.
func Cells(t testing.TB, s *layout.Store, relation int, entries []edgetable.Entry) []string {
	t.Helper()
	cells := make([]string, len(entries))
	if s.Meta().EdgeTable(relation) == nil {
		return cells
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	table, err := edgetable.Open(t.Context(), s, layouttest.Device(t), relation, nil)
	must(err)
	rows, err := table.Rows(t.Context(), entries, nil)
	must(err)
	for c := range table.Columns() {
		var v columnfile.Values
		must(table.Gather(t.Context(), rows, c, &v))
		for i := range cells {
			cells[i] += " " + Cell(&v, i)
		}
	}
	must(table.Close())
	return cells
}

// Cell returns row i of values as text.
func Cell(v *columnfile.Values, i int) string {
	switch {
	case v.Null(i):
		return "null"
	case len(v.Floats) > 0:
		return fmt.Sprint(v.Floats[i])
	case len(v.Ints) > 0:
		return fmt.Sprint(v.Ints[i])
	}
	return string(v.Strings.At(i))
}
