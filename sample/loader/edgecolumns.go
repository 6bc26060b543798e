package loader

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/edgetable"
	"gdb/layout/rowfile"
	"gdb/sample"
)

// The names of what edges have beside the columns of their tables.
const (
	// EdgeWeight is the weight.
	EdgeWeight = "weight"
	// EdgeDegree is log(1+n), n being the entries of the list that the edge was drawn from, of a
	// typed store those of its relation, as far as they could be drawn: as of a time those that are
	// not later.
	EdgeDegree = "degree"
)

// EdgeColumns reads numbers of edges as inputs of a model: weights, the lengths of lists, and
// columns of the tables of edges, of each relation that has a column of the name. Values have mean
// 0 and deviation 1 but for the lengths. Null, and what a relation does not have, is 0. It
// implements sample.EdgeColumns.
type EdgeColumns struct {
	src   *Source
	names []string
	scale *rowfile.Scale // nil while that is measured
	// tables has the table of each relation, nil for one of which no column is read, and columns
	// the number of the column of each name in it, -1 for none.
	tables  []*edgetable.Table
	columns [][]int
}

// edgeColumnsBytes is what Fill takes for an edge, in bytes: its entry, row and place, and what
// edgetable.Rows and a reader of columns take.
const edgeColumnsBytes = 8 + 8 + 4 + 40 + 20 + 16

// OpenEdgeColumns opens columns of edges. The source closes them, and its batches have them from
// now on.
func (s *Source) OpenEdgeColumns(ctx context.Context, names []string) (*EdgeColumns, error) {
	e := &EdgeColumns{src: s, names: names}
	s.CloseLater(e)
	relations := 1
	if s.Meta.Typed() {
		relations = len(s.Meta.Relations)
	}
	e.tables, e.columns = make([]*edgetable.Table, relations), make([][]int, relations)
	found := make([]bool, len(names))
	for r := range relations {
		if err := e.open(ctx, r, found); err != nil {
			return nil, fmt.Errorf("loader: columns of edges: %w", err)
		}
	}
	for i, name := range names {
		if err := e.check(name, found[i]); err != nil {
			return nil, fmt.Errorf("loader: %w", err)
		}
	}
	s.Columns = e
	s.EdgeWeights = s.EdgeWeights || slices.Contains(names, EdgeWeight)
	s.EdgeTypes = s.EdgeTypes || s.Meta.Typed()
	return e, nil
}

// open opens the table of a relation, if it has a column of one of the names.
func (e *EdgeColumns) open(ctx context.Context, relation int, found []bool) error {
	columns := e.src.Meta.EdgeColumns(relation)
	at, some := make([]int, len(e.names)), false
	for i, name := range e.names {
		at[i] = slices.IndexFunc(columns, func(c kv.TableColumn) bool { return c.Name == name })
		if at[i] < 0 {
			continue
		}
		switch c := columns[at[i]]; {
		case name == EdgeWeight || name == EdgeDegree:
			return fmt.Errorf("a column of edges is called %s, which is the name of what all "+
				"edges have: ingest it by another name", name)
		case c.Type == columnfile.String || c.Type == columnfile.Sparse || c.Dim > 0:
			return fmt.Errorf("column %s has values of type %s: models read numbers, bools, dates "+
				"and times of edges", name, c.Type)
		}
		found[i], some = true, true
	}
	e.columns[relation] = at
	if !some {
		return nil
	}
	t, err := edgetable.Open(ctx, e.src.Store, e.src.Device, relation, e.src.Budget)
	e.tables[relation] = t
	return err
}

// check returns an error if edges do not have what a name says.
func (e *EdgeColumns) check(name string, found bool) error {
	m := e.src.Meta
	switch {
	case found || name == EdgeDegree || name == EdgeWeight && m.Weighted:
		return nil
	case name == EdgeWeight:
		return errors.New("edges have no weights: ingest them with --weight-col")
	}
	known := []string{EdgeDegree}
	if m.Weighted {
		known = append(known, EdgeWeight)
	}
	for r := range e.tables {
		for _, c := range m.EdgeColumns(r) {
			if !slices.Contains(known, c.Name) {
				known = append(known, c.Name)
			}
		}
	}
	return fmt.Errorf("edges have no column %q: there are %s", name, strings.Join(known, ", "))
}

// Width returns how many columns there are.
func (e *EdgeColumns) Width() int { return len(e.names) }

// Scale has values scaled from now on.
func (e *EdgeColumns) Scale(s *rowfile.Scale) { e.scale = s }

// Fill writes the columns of a batch. It reads the blocks of each column that have values of its
// edges, once each.
func (e *EdgeColumns) Fill(ctx context.Context, d *sample.Dense) error {
	held := edgeColumnsBytes * int64(len(d.Nbrs))
	if err := e.src.Budget.Reserve("columns of edges", held); err != nil {
		return err
	}
	defer e.src.Budget.Release(held)
	if err := e.read(ctx, d); err != nil {
		return fmt.Errorf("loader: columns of edges: %w", err)
	}
	n := len(e.names)
	for i, x := range d.Columns {
		k := i % n
		if d.Columns[i] = (x - e.scale.Mean[k]) * e.scale.Inverse[k]; x != x {
			d.Columns[i] = 0
		}
	}
	return nil
}

// read writes the values as they are, NaN for those that are missing.
func (e *EdgeColumns) read(ctx context.Context, d *sample.Dense) error {
	n := len(e.names)
	d.Columns = slices.Grow(d.Columns[:0], n*len(d.Nbrs))[:n*len(d.Nbrs)]
	for i, name := range e.names {
		for k := range d.Nbrs {
			x := float32(math.NaN())
			switch name {
			case EdgeWeight:
				x = d.Weights[k]
			case EdgeDegree:
				x = float32(math.Log1p(float64(d.Places[k].Length)))
			}
			d.Columns[k*n+i] = x
		}
	}
	for r, t := range e.tables {
		if t == nil {
			continue
		}
		if err := e.readTable(ctx, d, r); err != nil {
			return err
		}
	}
	return nil
}

// readTable writes the columns of the edges of a relation.
func (e *EdgeColumns) readTable(ctx context.Context, d *sample.Dense, relation int) error {
	var entries []edgetable.Entry
	var at []uint32
	first, typed := d.NodeIDOffsets[1], e.src.Meta.Typed()
	for i := range d.Inner() {
		node := d.NodeIDs[first+uint32(i)]
		for k := d.NbrOffsets[i]; k < d.NbrOffsets[i+1]; k++ {
			if !typed || d.Types[k] == uint32(relation) {
				entries = append(entries, edgetable.Entry{Node: node, Place: d.Places[k].At})
				at = append(at, k)
			}
		}
	}
	if len(entries) == 0 {
		return nil
	}
	t := e.tables[relation]
	rows, err := t.Rows(ctx, entries, nil)
	for i, column := range e.columns[relation] {
		if column < 0 || err != nil {
			continue
		}
		var v columnfile.Values
		if err = t.Gather(ctx, rows, column, &v); err == nil {
			scatter(&v, d.Columns[i:], at, len(e.names))
		}
	}
	return err
}

// scatter writes values to the places at, each times step.
func scatter(v *columnfile.Values, to []float32, at []uint32, step int) {
	for j, k := range at {
		if len(v.Valid) > 0 && v.Valid[j/64]>>(j%64)&1 == 0 {
			continue
		}
		x := float32(0)
		if len(v.Floats) > 0 {
			x = float32(v.Floats[j])
		} else {
			x = float32(v.Ints[j])
		}
		to[int(k)*step] = x
	}
}

// Close closes the tables.
func (e *EdgeColumns) Close() error {
	var errs []error
	for _, t := range e.tables {
		if t != nil {
			errs = append(errs, t.Close())
		}
	}
	return errors.Join(errs...)
}
