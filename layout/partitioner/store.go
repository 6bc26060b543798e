package partitioner

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/openfiles"
	"gdb/layout/rowfile"
	"gdb/layout/topology"

	"github.com/RoaringBitmap/roaring/v2"
)

// scanCache is the cache of blocks, in bytes, with which lists that have levels are read in order.
const scanCache = 4 << 20

// labelClass is the kind of labels of which each node has one.
const labelClass = "class"

// OfStore returns the graph of a store, by its in-lists. Labels are the classes of training nodes
// or, where nodes have no such labels, one for all training nodes; without a split train no node
// has one. files and what they open have to stay open.
func OfStore(ctx context.Context, files *openfiles.Set, split string) (*Graph, error) {
	st := files.Store
	m := st.Meta()
	g := &Graph{Nodes: m.Nodes, Entries: m.Edges, Classes: 1, Count: []uint64{0, m.Nodes},
		Scan: func(ctx context.Context, fn func(kv.NodeID, bool, *listfile.Lists) error) error {
			if len(st.Levels()) == 0 {
				return listfile.Scan(ctx, st, files.Device, layout.In, fn)
			}
			t, err := files.Topology(ctx, layout.In, topology.Options{CacheBytes: scanCache})
			if err != nil {
				return err
			}
			return topology.ScanOpen(ctx, t, fn)
		}}
	train, err := st.Split(ctx, m.SplitName("train", split))
	if errors.Is(err, kv.ErrNotFound) {
		return g, nil
	}
	if err != nil {
		return nil, fmt.Errorf("partitioner: %w", err)
	}
	l := &labels{train: train}
	if m.Labels != nil && m.Labels.Kind == labelClass {
		g.Classes = len(m.Labels.Classes)
		if l.rows, err = files.Rows(ctx, m.Labels.Rows); err != nil {
			return nil, err
		}
	}
	l.classes, g.Labels = uint32(g.Classes), l.read
	return g, g.count(ctx)
}

// count counts the nodes of each label.
func (g *Graph) count(ctx context.Context) error {
	g.Count = make([]uint64, g.Classes+1)
	return g.eachLabel(ctx, func(_ uint64, c uint32) { g.Count[c]++ })
}

// eachLabel calls fn with each node and its label.
func (g *Graph) eachLabel(ctx context.Context, fn func(v uint64, label uint32)) error {
	out := make([]uint32, labelsRead)
	for v := uint64(0); v < g.Nodes; v += labelsRead {
		some := out[:min(labelsRead, g.Nodes-v)]
		if err := g.Labels(ctx, kv.NodeID(v), some); err != nil {
			return err
		}
		for i, c := range some {
			fn(v+uint64(i), c)
		}
	}
	return nil
}

// labels reads the labels of training nodes.
type labels struct {
	train   *roaring.Bitmap
	rows    *rowfile.Reader // of classes; nil where there is one label for all
	classes uint32
	buf     []int32
}

func (l *labels) read(ctx context.Context, first kv.NodeID, out []uint32) error {
	for i := range out {
		out[i] = l.classes
	}
	if l.rows != nil {
		l.buf = mem.Resized(l.buf, len(out))
		if err := l.rows.ScanRaw(ctx, first, len(out), mem.BytesOf(l.buf)); err != nil {
			return fmt.Errorf("partitioner: read labels: %w", err)
		}
	}
	it := l.train.Iterator()
	for it.AdvanceIfNeeded(uint32(first)); it.HasNext(); {
		i := int(it.Next()) - int(first)
		if i >= len(out) {
			return nil
		}
		switch {
		case l.rows == nil:
			out[i] = 0
		case l.buf[i] >= 0 && uint32(l.buf[i]) < l.classes:
			out[i] = uint32(l.buf[i])
		}
	}
	return nil
}
