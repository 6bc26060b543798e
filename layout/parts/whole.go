package parts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/edgefile"
	"gdb/layout/edgetable"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/stream"
	"gdb/layout/ingest/table"
	"gdb/layout/listfile"
	"gdb/layout/openfiles"
	"gdb/layout/partitioner"
	"gdb/layout/topology"
)

// whole is a store that ingest writes anew, with its nodes in the order of partitions,
// or in the order that they have.
type whole struct {
	part  // all nodes, named by their numbers
	was   *kv.Meta
	order nodeOrder
	cut   float64
	given func(ctx context.Context, dir layout.Direction, fn func(*stream.ListRun) error) error
}

var _ ingest.Again = (*whole)(nil)

// newWhole opens a store to be written anew. The caller calls close.
func newWhole(ctx context.Context, files *openfiles.Set) (w *whole, err error) {
	numbered := *files.Store.Meta()
	numbered.IDs.Kind = kv.IDsDense
	w = &whole{part: part{files: files, meta: &numbered}, was: files.Store.Meta()}
	if w.dict, err = files.IDs(ctx, 0); err != nil {
		return nil, err
	}
	if w.deleted, err = files.Store.Deleted(ctx); err != nil {
		return nil, err
	}
	w.nodes, err = newNodeSet(w.was.Nodes, files.Budget)
	for v := range w.was.Nodes {
		if err != nil {
			return nil, err
		}
		w.nodes.add(layout.NodeID(v))
	}
	return w, err
}

func (w *whole) close() error { return errors.Join(w.nodes.free(), w.order.free()) }

// Info describes the store, whose ids are row numbers.
func (w *whole) Info() *source.Info {
	list, _ := layout.TopologyPaths(layout.In)
	info := w.part.Info()
	info.Format, info.Paths = "store", []string{w.files.Store.Path(list)}
	info.RowIDs, info.Nodes, info.Edges, info.Splits = true, w.was.Nodes, w.was.Edges, nil
	for _, s := range w.was.Splits {
		info.Splits = append(info.Splits, s.Name)
	}
	for _, t := range w.was.EdgeTables {
		of := source.TableInfo{}
		for _, c := range t.Columns {
			of.Columns = append(of.Columns, table.Stored{Name: c.Name, Type: c.Type})
		}
		info.EdgeTables = append(info.EdgeTables, of)
	}
	return info
}

// openTable opens the table of all edges; nil if there is none.
func (w *whole) openTable(ctx context.Context) (*edgetable.Table, error) {
	if w.was.EdgeTable(0) == nil {
		return nil, nil
	}
	return edgetable.Open(ctx, w.files.Store, w.files.Device, 0, w.files.Budget)
}

// addColumns sets the columns of a chunk of edges, the first of which has a row of the table.
func addColumns(ctx context.Context, c *source.EdgeChunk, t *edgetable.Table, row uint64) error {
	if c.Columns == nil {
		c.Columns = make([]columnfile.Values, len(t.Columns()))
	}
	for k := range c.Columns {
		c.Columns[k].Reset()
		err := t.Scan(ctx, row, uint64(c.Len()), k, func(_ uint64, v *columnfile.Values) error {
			c.Columns[k].Append(v, 0, v.Rows)
			return nil
		})
		if err != nil {
			return fmt.Errorf("order: columns of edges: %w", err)
		}
	}
	return nil
}

var _ ingest.Sorted = (*whole)(nil)

// Edges streams the in-lists of all nodes, in the order of the file, which rows of their table have
// too.
func (w *whole) Edges(ctx context.Context, fn func(*source.EdgeChunk) error) (err error) {
	t, err := w.openTable(ctx)
	if err != nil {
		return err
	}
	if t != nil {
		defer func() { err = errors.Join(err, t.Close()) }()
	}
	c := &source.EdgeChunk{Where: source.Where{File: w.files.Store.Dir(), Unit: "edge"}}
	row := uint64(0)
	return w.Lists(ctx, layout.In, func(r *stream.ListRun) error {
		if ingest.EdgesOf(r, layout.In, c); t != nil {
			if err := addColumns(ctx, c, t, row); err != nil {
				return err
			}
			row += uint64(c.Len())
		}
		return fn(c)
	})
}

// Lists streams the lists of all nodes of a direction, in the order of the file.
func (w *whole) Lists(ctx context.Context, dir layout.Direction,
	fn func(*stream.ListRun) error) error {
	if w.given != nil {
		return w.given(ctx, dir, fn)
	}
	runs := stream.NewListRuns(fn)
	err := topology.Scan(ctx, w.files.Store, w.files.Device, dir,
		func(first layout.NodeID, _ bool, l *listfile.Lists) error {
			runs.AddLists(first, l, 0, len(l.Off)-1)
			return errors.Join(ctx.Err(), runs.Pass())
		})
	if err != nil {
		return err
	}
	return runs.Flush()
}

// Features streams the rows of all nodes, in the order of the file.
func (w *whole) Features(ctx context.Context, name string,
	fn func(*source.RowChunk) error) error {
	at := slices.IndexFunc(w.was.Features, func(m kv.RowsMeta) bool { return m.Name == name })
	rows, err := openFeatures(ctx, w.files, w.was.Features[at])
	if err != nil {
		return err
	}
	dim := uint64(rows.Meta().Dim)
	most := max(1, entriesMost/dim)
	buf := make([]float32, most*dim)
	for v := uint64(0); v < w.was.Nodes; v += most {
		n := min(most, w.was.Nodes-v)
		c := &source.RowChunk{First: v, Rows: buf[:n*dim], Where: source.Where{
			File: w.files.Store.Dir(), First: int64(v), Unit: "node"}}
		if err := rows.Scan(ctx, layout.NodeID(v), int(n), c.Rows); err != nil {
			return fmt.Errorf("order: features: %w", err)
		}
		if err := fn(c); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Splits streams the members of all splits.
func (w *whole) Splits(ctx context.Context, fn func(*source.SplitChunk) error) error {
	some := make([]uint32, chunkNodes)
	for _, s := range w.was.Splits {
		set, err := w.files.Store.Split(ctx, s.Name)
		if err != nil {
			return err
		}
		it := set.ManyIterator()
		for n := it.NextMany(some); n > 0; n = it.NextMany(some) {
			c := &source.SplitChunk{Name: s.Name}
			for _, v := range some[:n] {
				c.IDs.Ints = append(c.IDs.Ints, uint64(v))
			}
			if err := fn(c); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// Meta returns the metadata of the store.
func (w *whole) Meta() *kv.Meta { return w.was }

// Parts returns the partitions; nil if nodes keep their order.
func (w *whole) Parts() []kv.Partition { return w.order.parts }

// EdgeCut returns the share of entries of lists whose neighbor is in another partition.
func (w *whole) EdgeCut() float64 { return w.cut }

// At returns the new node of a node.
func (w *whole) At(v uint64) uint64 {
	if w.order.of == nil {
		return v
	}
	return uint64(w.order.of[v])
}

// Inverse returns the node that becomes v. It looks at all nodes.
func (w *whole) Inverse(v uint64) uint64 {
	if w.order.of == nil {
		return v
	}
	return uint64(slices.Index(w.order.of, uint32(v)))
}

// Sum identifies the store and the order.
func (w *whole) Sum() string {
	return fmt.Sprintf("%s %08x", w.was.UUID, codec.Checksum(mem.BytesOf(w.order.of)))
}

// Names streams the external ids.
func (w *whole) Names(ctx context.Context, fn func(external []byte) error) error {
	for nodes := range w.nodes.chunks(chunkNodes) {
		names, err := w.dict.External(ctx, nodes, w.names[:0])
		if err != nil {
			return fmt.Errorf("order: ids: %w", err)
		}
		w.names = names
		for _, name := range names {
			if err := fn([]byte(name)); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// SplitEdges streams the edges of a split of the edges.
func (w *whole) SplitEdges(ctx context.Context, split string,
	fn func(e edgefile.Edges) error) (err error) {
	f, err := edgefile.Open(ctx, w.files.Store, w.files.Device, split)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.Stream(ctx, 0, f.Count(), func(_ uint64, e edgefile.Edges) error { return fn(e) })
}

// nodeOrder is the order of nodes by partition, and in a partition by what they were before. It
// takes 4 bytes of memory a node.
type nodeOrder struct {
	of    []uint32 // new node by node
	parts []kv.Partition
	arena *mem.Arena
}

// newNodeOrder returns the order by a number of partitions. The caller frees it.
func newNodeOrder(budget *mem.Budget, dealt *partitioner.Parts, parts int) (nodeOrder, error) {
	arena, err := mem.NewArena(budget, "the order of nodes", 4*int64(len(dealt.Of)))
	if err != nil {
		return nodeOrder{}, err
	}
	o := nodeOrder{of: mem.View[uint32](arena.Bytes())[:len(dealt.Of)], arena: arena,
		parts: make([]kv.Partition, parts)}
	for _, p := range dealt.Of {
		o.parts[p].Nodes++
	}
	next, first := make([]uint64, parts), uint64(0)
	for i := range o.parts {
		next[i], o.parts[i].First = first, layout.NodeID(first)
		first += o.parts[i].Nodes
	}
	for v, p := range dealt.Of {
		o.of[v] = uint32(next[p])
		next[p]++
	}
	return o, nil
}

func (o *nodeOrder) free() error {
	if o.arena == nil {
		return nil
	}
	return o.arena.Free()
}
