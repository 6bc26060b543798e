package live

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdb/kv"
	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/typedtables"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Edges are edges to add, by the ids of their ends. Types, Weights and Times are nil, or as many
// as there are edges, as the store has them. Edges of a typed store have a Relation, as
// "user:buys:item", ids as their types have them ("7", not "user:7"), and Columns instead, weights
// and times among them.
type Edges struct {
	Src, Dst []string
	Relation string
	Columns  []Column
	Types    []string
	Weights  []float32
	Times    []int64
}

// Nodes are nodes to add, or nodes of the store that get other values. Features has a row for each
// node, one after the other; nil for none. Labels and Splits have a word for each, "" for none; nil
// says that no node has one. A label of a store whose labels are numbers is one as text. Nodes of a
// typed store have a Type, and Columns instead: those that its table had, with labels, splits and
// what features are made of.
type Nodes struct {
	IDs            []string
	Type           string
	Columns        []Column
	Features       []float32
	Labels, Splits []string
}

// Batch is what a commit adds, in memory: a source of ingest, but for a typed store, where tables
// are written of it. Its slices are the caller's, which does not change them before the commit
// ends.
type Batch struct {
	edges []Edges
	nodes []Nodes
	of    *kv.Meta // of the store that it is for
	// tables have the nodes and edges of a typed store, in the place of edges and nodes.
	tables *typedtables.Tables
}

// Column is a column of nodes or edges of a typed store.
type Column = typedtables.Column

var _ source.Source = (*Batch)(nil)

// NewBatch returns an empty batch for a store that has this metadata.
func NewBatch(of *kv.Meta) *Batch { return &Batch{of: of, tables: typedtables.New(of)} }

// notTyped fails if fields are given that are for stores without types.
func notTyped(given bool, fields string) error {
	if !given {
		return nil
	}
	return input.Usage("%s: the store has types of nodes: give columns by their names in Columns, "+
		"and the Type of nodes or the Relation of edges", fields)
}

// AddEdges adds edges, if the store can have what they carry.
func (b *Batch) AddEdges(e Edges) error {
	if b.of.Typed() {
		err := notTyped(e.Types != nil || e.Weights != nil || e.Times != nil,
			"Types, Weights and Times")
		if err != nil {
			return err
		}
		return b.tables.AddEdges(typedtables.Edges{Relation: e.Relation, Src: e.Src, Dst: e.Dst,
			Columns: e.Columns})
	}
	if e.Relation != "" || e.Columns != nil {
		return input.Usage("edges with a Relation %q and %d Columns: the store has no types of "+
			"nodes", e.Relation, len(e.Columns))
	}
	n := len(e.Src)
	for _, p := range []struct {
		what string
		n    int
		has  bool
	}{{"destinations", len(e.Dst), true}, {"types", len(e.Types), len(b.of.EdgeTypes) > 0},
		{"weights", len(e.Weights), b.of.Weighted}, {"times", len(e.Times), b.of.Timestamped}} {
		switch {
		case p.has && p.n != n:
			return input.Usage("%d edges with %d %s: each edge of the store has one", n, p.n,
				p.what)
		case !p.has && p.n > 0:
			return input.Usage("edges with %s: the store has none", p.what)
		}
	}
	if err := b.checkIDs(e.Src); err != nil {
		return err
	}
	if err := b.checkIDs(e.Dst); err != nil {
		return err
	}
	b.edges = append(b.edges, e)
	return nil
}

// AddNodes adds nodes and values of nodes, if the store can have them.
func (b *Batch) AddNodes(v Nodes) error {
	if b.of.Typed() {
		err := notTyped(v.Features != nil || v.Labels != nil || v.Splits != nil,
			"Features, Labels and Splits")
		if err != nil {
			return err
		}
		return b.tables.AddNodes(typedtables.Nodes{Type: v.Type, IDs: v.IDs, Columns: v.Columns})
	}
	if v.Type != "" || v.Columns != nil {
		return input.Usage("nodes with a Type %q and %d Columns: the store has no types of nodes",
			v.Type, len(v.Columns))
	}
	n, dim := len(v.IDs), 0
	if len(b.of.Features) > 0 {
		dim = b.of.Features[0].Dim
	}
	switch {
	case v.Features != nil && len(v.Features) != n*dim:
		return input.Usage("%d values of features of %d nodes: the store has %d for each",
			len(v.Features), n, dim)
	case v.Labels != nil && (len(v.Labels) != n || b.of.Labels == nil):
		return input.Usage("%d labels of %d nodes: want one for each, in a store with labels",
			len(v.Labels), n)
	case v.Splits != nil && (len(v.Splits) != n || len(b.of.Splits) == 0):
		return input.Usage("%d splits of %d nodes: want one for each, in a store with splits",
			len(v.Splits), n)
	}
	if v.Labels != nil && b.of.Labels.Kind == "target" {
		for i, label := range v.Labels {
			if _, err := strconv.ParseFloat(label, 32); err != nil && label != "" {
				return input.Usage("label %q of node %s is no number, as the store has them", label,
					v.IDs[i])
			}
		}
	}
	if err := b.checkIDs(v.IDs); err != nil {
		return err
	}
	b.nodes = append(b.nodes, v)
	return nil
}

// checkIDs finds ids that are no integers, of a store that has only these.
func (b *Batch) checkIDs(ids []string) error {
	if b.text() {
		return nil
	}
	for _, id := range ids {
		if _, err := strconv.ParseUint(id, 10, 64); err != nil {
			return input.Usage("id %q: ids of this store are integers from 0 on", id)
		}
	}
	return nil
}

func (b *Batch) text() bool { return b.of.IDs.Kind.Text() }

// Info describes the batch.
func (b *Batch) Info() *source.Info {
	m := b.of
	info := &source.Info{Format: "memory", TextIDs: b.text(), Typed: len(m.EdgeTypes) > 0,
		Weighted: m.Weighted, Timed: m.Timestamped, Times: m.Times}
	has := func(of func(v *Nodes) bool) bool {
		return slices.ContainsFunc(b.nodes, func(v Nodes) bool { return of(&v) })
	}
	for _, e := range b.edges {
		info.Edges += uint64(len(e.Src))
	}
	if has(func(v *Nodes) bool { return v.Features != nil }) {
		f := m.Features[0]
		info.Features = []source.FeatureInfo{{Name: f.Name, Dim: f.Dim, DType: f.DType,
			Columns: m.FeatureNames[f.Name]}}
	}
	if has(func(v *Nodes) bool { return v.Labels != nil }) {
		info.Labels = &source.LabelInfo{Kind: m.Labels.Kind, Text: m.Labels.Kind != "target"}
	}
	if has(func(v *Nodes) bool { return v.Splits != nil }) {
		for _, v := range b.nodes {
			for _, s := range v.Splits {
				if s != "" && !slices.Contains(info.Splits, s) {
					info.Splits = append(info.Splits, s)
				}
			}
		}
	}
	return info
}

// texts returns ids or other words as sources have them.
func texts(words []string) (all [][]byte) {
	for _, w := range words {
		all = append(all, []byte(w))
	}
	return all
}

// ids returns a chunk of ids.
func (b *Batch) ids(what string, first int, ids []string) *source.IDChunk {
	c := &source.IDChunk{Where: source.Where{File: what, First: int64(first), Unit: "row"}}
	if b.text() {
		c.Text = texts(ids)
	} else {
		c.Ints = integers(ids)
	}
	return c
}

// integers returns ids that checkIDs found to be integers.
func integers(ids []string) (all []uint64) {
	for _, id := range ids {
		v, _ := strconv.ParseUint(id, 10, 64) // it is one
		all = append(all, v)
	}
	return all
}

// Edges streams the edges.
func (b *Batch) Edges(ctx context.Context, fn func(*source.EdgeChunk) error) error {
	first := 0
	for _, e := range b.edges {
		for from := 0; from < len(e.Src); from += chunk {
			to := min(from+chunk, len(e.Src))
			c := &source.EdgeChunk{Where: source.Where{File: "edges", First: int64(first + from),
				Unit: "row"}}
			if src, dst := e.Src[from:to], e.Dst[from:to]; b.text() {
				c.SrcText, c.DstText = texts(src), texts(dst)
			} else {
				c.SrcInt, c.DstInt = integers(src), integers(dst)
			}
			if e.Types != nil {
				c.TypeText = texts(e.Types[from:to])
			}
			if e.Weights != nil {
				c.Weight = e.Weights[from:to]
			}
			if e.Times != nil {
				c.Time = e.Times[from:to]
			}
			if err := fn(c); err != nil {
				return err
			}
		}
		first += len(e.Src)
	}
	return ctx.Err()
}

// some calls fn with nodes, some at a time: their place among all, and which of v they are.
func (b *Batch) some(ctx context.Context, fn func(at int, v *Nodes, from, to int) error) error {
	first := 0
	for i := range b.nodes {
		v := &b.nodes[i]
		for from := 0; from < len(v.IDs); from += chunk {
			if err := fn(first+from, v, from, min(from+chunk, len(v.IDs))); err != nil {
				return err
			}
		}
		first += len(v.IDs)
	}
	return ctx.Err()
}

// Nodes streams the ids of nodes.
func (b *Batch) Nodes(ctx context.Context, fn func(*source.IDChunk) error) error {
	return b.some(ctx, func(at int, v *Nodes, from, to int) error {
		return fn(b.ids("nodes", at, v.IDs[from:to]))
	})
}

// Features streams the rows that there are.
func (b *Batch) Features(ctx context.Context, _ string, fn func(*source.RowChunk) error) error {
	dim := b.of.Features[0].Dim
	return b.some(ctx, func(at int, v *Nodes, from, to int) error {
		if v.Features == nil {
			return nil
		}
		ids := b.ids("features", at, v.IDs[from:to])
		return fn(&source.RowChunk{IDs: ids, Rows: v.Features[from*dim : to*dim], Where: ids.Where})
	})
}

// Labels streams the labels that there are.
func (b *Batch) Labels(ctx context.Context, fn func(*source.LabelChunk) error) error {
	return b.some(ctx, func(at int, v *Nodes, from, to int) error {
		if v.Labels == nil {
			return nil
		}
		var ids []string
		c := &source.LabelChunk{}
		for i, label := range v.Labels[from:to] {
			if label == "" {
				continue
			}
			ids = append(ids, v.IDs[from+i])
			if b.of.Labels.Kind == "target" {
				x, err := strconv.ParseFloat(label, 32)
				if err != nil {
					return fmt.Errorf("label of node %s: %w", v.IDs[from+i], err)
				}
				c.Target = append(c.Target, float32(x))
			} else {
				c.Text = append(c.Text, []byte(label))
			}
		}
		if len(ids) == 0 {
			return nil
		}
		c.IDs = b.ids("labels", at, ids)
		c.Where = c.IDs.Where
		return fn(c)
	})
}

// Splits streams the members of splits.
func (b *Batch) Splits(ctx context.Context, fn func(*source.SplitChunk) error) error {
	return b.some(ctx, func(at int, v *Nodes, from, to int) error {
		of := map[string][]string{}
		if v.Splits != nil {
			for i, split := range v.Splits[from:to] {
				if split != "" {
					of[split] = append(of[split], v.IDs[from+i])
				}
			}
		}
		for split, ids := range of {
			err := fn(&source.SplitChunk{Name: split, IDs: *b.ids("splits", at, ids)})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Close does nothing.
func (b *Batch) Close() error { return nil }

// Len returns the number of edges and of nodes that were added to the batch.
func (b *Batch) Len() (edges, nodes int) {
	if b.of.Typed() {
		return b.tables.Len()
	}
	for _, e := range b.edges {
		edges += len(e.Src)
	}
	for _, v := range b.nodes {
		nodes += len(v.IDs)
	}
	return edges, nodes
}

// AppendBatch is Append of a batch, without the sources of opt.
func AppendBatch(ctx context.Context, fs vfs.FS, dir string, b *Batch, opt ingest.Options) (
	added *Added, err error) {
	err = change(ctx, fs, dir, "append", opt, func(a *appending) (err error) {
		a.batch = b
		if added, err = a.run(ctx); err != nil && a.meta.Typed() {
			err = &batchError{err, a.path(givenPath) + "/"}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return added, nil
}

// givenPath is the folder of the work with the tables of a batch for a typed store.
const givenPath = "given"

// batchError is an error that names the tables of a batch without their folder.
type batchError struct {
	error
	folder string
}

// Error returns the text without the folder.
func (e *batchError) Error() string {
	return strings.ReplaceAll(e.error.Error(), e.folder, "")
}

// Unwrap returns the error.
func (e *batchError) Unwrap() error { return e.error }
