// Package typedtables writes nodes and edges that are in memory as tables of a typed store, which
// are read as files of the user's are.
package typedtables

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/typedlevel"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Column is a column of nodes or edges of a typed store. Cells has the text that a CSV file would
// have for each row, "" for null.
type Column struct {
	Name  string
	Cells []string
}

// Nodes are nodes of a type, and the columns that they have values of.
type Nodes struct {
	Type    string
	IDs     []string // as the type has them: "7", not "user:7"
	Columns []Column
}

// Edges are edges of a relation, as "user:buys:item", by the ids of their ends.
type Edges struct {
	Relation string
	Src, Dst []string
	Columns  []Column
}

// Tables are nodes and edges for a typed store. The slices are the caller's, which does not change
// them before Write ends.
type Tables struct {
	of    *kv.Meta // of the store
	nodes []Nodes
	edges []Edges
}

// New returns empty tables for a typed store that has this metadata.
func New(of *kv.Meta) *Tables { return &Tables{of: of} }

// Len returns the number of edges and of nodes that were added.
func (t *Tables) Len() (edges, nodes int) {
	for _, e := range t.edges {
		edges += len(e.Src)
	}
	for _, v := range t.nodes {
		nodes += len(v.IDs)
	}
	return edges, nodes
}

// endNames are the columns of ends in the tables that are written of a batch.
var endNames = [2]string{"src", "dst"}

// AddEdges adds edges, if the store has their relation, and all of one relation the same columns.
func (t *Tables) AddEdges(e Edges) error {
	n := len(e.Src)
	if len(e.Dst) != n {
		return input.Usage("%d edges with %d destinations", n, len(e.Dst))
	}
	var known []string
	for i := range typedlevel.Forward(t.of) {
		name, src, dst := source.RelationEnds(t.of, i)
		known = append(known, src+source.TypeSep+name+source.TypeSep+dst)
	}
	if !slices.Contains(known, e.Relation) {
		return input.Usage("edges of the relation %q: the store has no such relation; it has %s",
			e.Relation, strings.Join(known, ", "))
	}
	for _, of := range t.edges {
		if of.Relation == e.Relation && !sameNames(of.Columns, e.Columns) {
			return input.Usage("edges of %s have other columns than those that were given before: "+
				"commit these first", e.Relation)
		}
	}
	if err := checkCells("edges of "+e.Relation, e.Columns, n, endNames[:]); err != nil {
		return err
	}
	t.edges = append(t.edges, e)
	return nil
}

// AddNodes adds nodes, and values of nodes, if the store has their type, and all of one type the
// same columns.
func (t *Tables) AddNodes(v Nodes) error {
	at := slices.IndexFunc(t.of.NodeTypes, func(m kv.NodeTypeMeta) bool { return m.Name == v.Type })
	if at < 0 {
		var types []string
		for _, m := range t.of.NodeTypes {
			types = append(types, m.Name)
		}
		return input.Usage("nodes of the type %q: the store has no such type; it has %s", v.Type,
			strings.Join(types, ", "))
	}
	typ := &t.of.NodeTypes[at]
	for _, c := range v.Columns {
		if typ.Encoding != nil && slices.ContainsFunc(typ.Encoding.Columns,
			func(of kv.EncodedColumn) bool { return of.List && of.Name == c.Name }) {
			return input.Usage("nodes of %s: the column %s has a list in each row, which cells do "+
				"not have: append a file of Parquet", v.Type, c.Name)
		}
	}
	for _, of := range t.nodes {
		if of.Type == v.Type && !sameNames(of.Columns, v.Columns) {
			return input.Usage("nodes of %s have other columns than those that were given before: "+
				"commit these first", v.Type)
		}
	}
	key := []string{keyColumn(typ)}
	if err := checkCells("nodes of "+v.Type, v.Columns, len(v.IDs), key); err != nil {
		return err
	}
	t.nodes = append(t.nodes, v)
	return nil
}

// checkCells fails if columns do not have n cells each, or share a name.
func checkCells(what string, columns []Column, n int, taken []string) error {
	for _, c := range columns {
		switch {
		case c.Name == "":
			return input.Usage("%s: a column has no name", what)
		case slices.Contains(taken, c.Name):
			return input.Usage("%s: two columns are called %s, of which one may have the ids", what,
				c.Name)
		case len(c.Cells) != n:
			return input.Usage("%s: %d cells of the column %s for %d rows", what, len(c.Cells),
				c.Name, n)
		}
		taken = append(taken, c.Name)
	}
	return nil
}

// sameNames reports whether two tables have the same columns in the same order.
func sameNames(a, b []Column) bool {
	return slices.EqualFunc(a, b, func(a, b Column) bool { return a.Name == b.Name })
}

// keyColumn returns the name of the column of ids of a type.
func keyColumn(t *kv.NodeTypeMeta) string {
	if t.KeyName != "" {
		return t.KeyName
	}
	return "id"
}

// Write writes a table for each type and relation in a folder, and has opt name them.
func (t *Tables) Write(fs vfs.FS, dir string, opt *source.Options) error {
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	opt.Header, opt.Delim = "yes", ","
	for i := range t.of.NodeTypes {
		typ := &t.of.NodeTypes[i]
		var parts []tablePart
		for _, v := range t.nodes {
			if v.Type == typ.Name && len(v.IDs) > 0 {
				parts = append(parts, tablePart{ids: [][]string{v.IDs}, columns: v.Columns})
			}
		}
		if len(parts) == 0 {
			continue
		}
		path := fs.PathJoin(dir, "nodes-"+typ.Name+".csv")
		if err := writeTable(fs, path, []string{keyColumn(typ)}, parts); err != nil {
			return err
		}
		opt.NodeTables = append(opt.NodeTables, source.NodeTable{Type: typ.Name, File: path,
			Key: keyColumn(typ)})
	}
	return t.writeRelations(fs, dir, opt)
}

// writeRelations writes the edges of each relation as a table.
func (t *Tables) writeRelations(fs vfs.FS, dir string, opt *source.Options) error {
	var ends [2][]string
	for i := range typedlevel.Forward(t.of) {
		var r source.Relation
		r.Name, r.Src, r.Dst = source.RelationEnds(t.of, i)
		name := r.Src + source.TypeSep + r.Name + source.TypeSep + r.Dst
		var parts []tablePart
		for _, e := range t.edges {
			if e.Relation == name && len(e.Src) > 0 {
				parts = append(parts, tablePart{ids: [][]string{e.Src, e.Dst}, columns: e.Columns})
			}
		}
		if len(parts) == 0 {
			continue
		}
		r.File = fs.PathJoin(dir, "edges-"+strings.ReplaceAll(name, source.TypeSep, "-")+".csv")
		if err := writeTable(fs, r.File, endNames[:], parts); err != nil {
			return err
		}
		opt.Relations = append(opt.Relations, r)
		for end, column := range endNames {
			if word := r.Name + source.ColumnSep + column; !slices.Contains(ends[end], word) {
				ends[end] = append(ends[end], word)
			}
		}
	}
	opt.SrcCol, opt.DstCol = strings.Join(ends[0], ","), strings.Join(ends[1], ",")
	return nil
}

// tablePart is a part of a table: columns of ids, and others.
type tablePart struct {
	ids     [][]string
	columns []Column
}

// writeTable writes the parts of a table as one file.
func writeTable(fs vfs.FS, path string, ids []string, parts []tablePart) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	w := bufio.NewWriterSize(f, 1<<16)
	head := slices.Clone(ids)
	for _, c := range parts[0].columns {
		head = append(head, c.Name)
	}
	writeRow(w, head)
	for _, t := range parts {
		row := make([]string, len(head))
		for i := range t.ids[0] {
			for k, of := range t.ids {
				row[k] = of[i]
			}
			for k := range t.columns {
				row[len(t.ids)+k] = t.columns[k].Cells[i]
			}
			writeRow(w, row)
		}
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// writeRow writes a row with quotes around each cell that is not empty, so that no cell is taken
// for a comment. The writer keeps its first error for Flush.
func writeRow(w *bufio.Writer, row []string) {
	for i, cell := range row {
		if i > 0 {
			_ = w.WriteByte(',')
		}
		if cell != "" {
			_, _ = io.WriteString(w, `"`+strings.ReplaceAll(cell, `"`, `""`)+`"`)
		}
	}
	_ = w.WriteByte('\n')
}
