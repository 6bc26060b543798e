// Package edgetable reads the tables of edges: the columns of a relation's edges beside their
// types, weights and times. Rows are in the order of the relation's in-lists, so those of a list
// follow each other.
package edgetable

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
)

// Table reads the table of one relation. It holds what its columns hold, 8 bytes a block of each.
// Any goroutine may use it.
type Table struct {
	meta   *kv.EdgeTable // of the relation
	of     *kv.EdgeTable // that has the columns: meta, or that of the relation it is the reverse of
	first  uint64        // node of the first row of starts
	starts *columnfile.Reader
	back   *columnfile.Reader // rows of a reverse relation
	// columns are parallel to of.Columns.
	columns []*columnfile.Reader
	levels  *levels // of a store with levels, which has the readers then; else nil
}

// Open opens the table of a relation, 0 in a store that is not typed. The caller calls Close.
func Open(ctx context.Context, s *layout.Store, dev blockdev.Device, relation int,
	budget *mem.Budget) (*Table, error) {
	m := s.Meta()
	t := &Table{meta: m.EdgeTable(relation)}
	if t.meta == nil {
		return nil, fmt.Errorf("layout: edges of relation %d have no table of columns", relation)
	}
	if len(s.Levels()) > 0 {
		return openLevels(ctx, s, dev, relation, budget)
	}
	if t.of = t.meta; t.meta.Reverse != nil {
		t.of = m.EdgeTable(t.meta.Reverse.Of)
	}
	if m.Typed() {
		t.first = m.NodeTypes[m.Relations[relation].Dst].First
	}
	open := func(c kv.TableColumn) (r *columnfile.Reader, err error) {
		return columnfile.Open(ctx, s, dev, c, budget)
	}
	var err error
	t.starts, err = open(t.meta.Starts)
	if err == nil && t.meta.Reverse != nil {
		t.back, err = open(t.meta.Reverse.Rows)
	}
	for _, c := range t.of.Columns {
		if err == nil {
			var r *columnfile.Reader
			r, err = open(c)
			t.columns = append(t.columns, r)
		}
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Columns describes the columns.
func (t *Table) Columns() []kv.TableColumn { return t.of.Columns }

// Entry is an entry of the in-lists of the relation: number Place of the list of Node, from 0 on.
type Entry struct {
	Node  layout.NodeID
	Place uint32
}

// Rows sets rows to the rows of some entries, in any order. It reads the blocks of starts that have
// the nodes, once each, and for a reverse relation those that have the rows; it takes 40 bytes an
// entry.
func (t *Table) Rows(ctx context.Context, entries []Entry, rows []uint64) ([]uint64, error) {
	if t.levels != nil {
		return t.levels.rows(ctx, entries, rows)
	}
	var v columnfile.Values
	nodes := make([]uint64, 0, 2*len(entries))
	for _, e := range entries {
		at := uint64(e.Node) - t.first
		if at >= t.meta.Starts.Rows {
			return nil, fmt.Errorf("layout: node %d has no list of relation %d", e.Node,
				t.meta.Relation)
		}
		// The list ends where the next one begins.
		nodes = append(nodes, at, min(at+1, t.meta.Starts.Rows-1))
	}
	if err := t.starts.Gather(ctx, nodes, &v); err != nil {
		return nil, err
	}
	rows = rows[:0]
	for i, e := range entries {
		begin, end := uint64(v.Ints[2*i]), uint64(v.Ints[2*i+1])
		if nodes[2*i] == nodes[2*i+1] {
			end = t.meta.Rows
		}
		row := begin + uint64(e.Place)
		if row >= end {
			return nil, fmt.Errorf("layout: entry %d of the list of node %d, which has rows %d to "+
				"%d of relation %d", e.Place, e.Node, begin, end, t.meta.Relation)
		}
		rows = append(rows, row)
	}
	return rows, t.forward(ctx, rows, &v)
}

// forward turns places of entries of a reverse relation into rows.
func (t *Table) forward(ctx context.Context, rows []uint64, v *columnfile.Values) error {
	if t.back == nil {
		return nil
	}
	if err := t.back.Gather(ctx, rows, v); err != nil {
		return err
	}
	for i, row := range v.Ints {
		rows[i] = uint64(row)
	}
	return nil
}

// Gather sets out to the values of a column, by its number, of rows in any order: see
// columnfile.Reader.Gather.
func (t *Table) Gather(ctx context.Context, rows []uint64, column int,
	out *columnfile.Values) error {
	if t.levels != nil {
		return t.levels.gather(ctx, rows, column, out)
	}
	return t.columns[column].Gather(ctx, rows, out)
}

// IsMerged reports whether the store has levels: rows are in the order of base and levels then, and
// not in that of the in-lists, and are found by Rows alone.
func (t *Table) IsMerged() bool { return t.levels != nil }

// Scan calls fn with n values of a column from row first on, in order: see columnfile.Reader.Scan.
// Tables that are merged have no such order.
func (t *Table) Scan(ctx context.Context, first, n uint64, column int,
	fn func(at uint64, v *columnfile.Values) error) error {
	if t.levels != nil {
		return errors.New("layout: rows of base and levels are not in the order of lists")
	}
	return t.columns[column].Scan(ctx, first, n, nil, fn)
}

// Close closes the columns. No other call may be under way.
func (t *Table) Close() error {
	if t.levels != nil {
		return t.levels.close()
	}
	var errs []error
	for _, r := range append(slices.Clone(t.columns), t.starts, t.back) {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	return errors.Join(errs...)
}
