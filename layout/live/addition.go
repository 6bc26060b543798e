package live

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/listfile"
	"gdb/layout/openfiles"
	"gdb/layout/topology"
	"gdb/layout/typedchange"

	"github.com/RoaringBitmap/roaring/v2"
)

// addition is a store of sources, as ingest reads it to make a level: by the numbers that its nodes
// have in the level, the old ones first, in the order of the store, then the new ones.
type addition struct {
	files *openfiles.Set // of the sources
	meta  *kv.Meta       // of the sources
	into  *layout.Store
	lists topology.Reader // of the store, to find edges that it has; nil where it keeps parallels

	where string   // what errors name
	local []uint32 // by node of the sources: the number in the level, or absent
	old   []uint32 // by number in the level: the node of the store
	there []uint64 // nodes that the store has: node of the store<<32 | node of the sources
	fresh []uint32 // nodes of the sources that are new, in order
	first uint64   // the number of the first of them in the store
	held  mem.Account
	isNew func(name string) error // fails if a node with a row that the store has may not be
	names *typedchange.EdgeNames
	draft bool // it is for predictions, which columns of edges do not matter to
}

const absent = math.MaxUint32

// chunk is how many nodes are looked up or read together.
const chunk = 4096

var _ ingest.Again = (*addition)(nil)

// match finds which nodes of the sources the store has. Of these only those with an edge are in the
// level.
func (a *appending) match(ctx context.Context, src *layout.Store) (d *addition, err error) {
	d = &addition{files: openfiles.New(src, a.dev, a.budget), meta: src.Meta(), into: a.store,
		where: src.Dir(), first: a.meta.Nodes, held: mem.NewAccount(a.budget, "nodes of sources"),
		isNew: a.checkIsNew, draft: a.onlyNew}
	made := d
	defer func() {
		if err != nil {
			d, err = nil, errors.Join(err, made.close())
		}
	}()
	if err := d.check(a.lacks); err != nil {
		return nil, err
	}
	if err := d.held.AtLeast(4 * int64(d.meta.Nodes)); err != nil {
		return nil, err
	}
	d.local = make([]uint32, d.meta.Nodes)
	for i := range d.local {
		d.local[i] = absent
	}
	used, err := d.withEdges(ctx)
	if err != nil {
		return nil, err
	}
	all := openfiles.New(a.store, a.dev, a.budget)
	defer func() { err = errors.Join(err, all.Close()) }()
	if err := d.number(ctx, all, used, a.lacks); err != nil {
		return nil, err
	}
	if drops(a.meta) {
		opt := topology.Options{CacheBytes: 4 << 20, Budget: a.budget}
		d.lists, err = topology.Open(ctx, a.store, a.dev, layout.In, opt)
	}
	return d, err
}

// check finds what the sources have otherwise than the store.
func (d *addition) check(lacks *roaring.Bitmap) error {
	m, was := d.meta, d.into.Meta()
	kinds := func(m *kv.Meta) string {
		if m.Labels == nil {
			return "none"
		}
		return m.Labels.Kind
	}
	for _, of := range []struct {
		what      string
		same      bool
		here, was any
	}{{"weights of edges", m.Edges == 0 || m.Weighted == was.Weighted, m.Weighted,
		was.Weighted},
		{"times of edges", m.Edges == 0 || m.Timestamped == was.Timestamped && m.Times == was.Times,
			m.Timestamped, was.Timestamped},
		{"types of edges", m.Edges == 0 || (len(m.EdgeTypes) > 0) == (len(was.EdgeTypes) > 0),
			m.EdgeTypes, was.EdgeTypes},
		{"types of nodes", len(m.NodeTypes) == 0, len(m.NodeTypes), 0},
		{"splits of edges", len(m.EdgeSplits) == 0, len(m.EdgeSplits), 0},
		{"features", len(m.Features) <= len(was.Features), len(m.Features), len(was.Features)},
		{"labels", m.Labels == nil || kinds(m) == kinds(was), kinds(m), kinds(was)}} {
		if !of.same {
			return input.Usage("%s: the sources have %v, the store %v", of.what, of.here, of.was)
		}
	}
	for _, t := range m.EdgeTypes {
		if !slices.Contains(was.EdgeTypes, t) {
			return input.Usage("edges of type %q: the store has no such edges, and new types are "+
				"not taken so far", t)
		}
	}
	var err error
	if d.names, err = typedchange.NewEdgeNames(m, was); err != nil && !d.draft {
		return err
	}
	if len(m.Features) == 0 {
		return nil
	}
	f, of := m.Features[0], was.Features[0]
	if f.Dim != of.Dim || f.DType != of.DType || !slices.Equal(
		m.FeatureColumns(f).Names(), was.FeatureColumns(of).Names()) {
		return input.Usage("features: the sources have other columns than the store, %d and %d",
			f.Dim, of.Dim)
	}
	return nil
}

// withEdges returns the nodes of the sources that have an edge.
func (d *addition) withEdges(ctx context.Context) (*roaring.Bitmap, error) {
	used := roaring.New()
	err := listfile.Scan(ctx, d.files.Store, d.files.Device, layout.In,
		func(first layout.NodeID, _ bool, l *listfile.Lists) error {
			for i := range len(l.Off) - 1 {
				if l.Off[i+1] > l.Off[i] {
					used.Add(uint32(first) + uint32(i))
				}
			}
			used.AddMany(mem.View[uint32](mem.BytesOf(l.Nbrs)))
			return ctx.Err()
		})
	return used, err
}

// number numbers the nodes of the level.
func (d *addition) number(ctx context.Context, all *openfiles.Set, used,
	lacks *roaring.Bitmap) error {
	names, err := d.files.IDs(ctx, 0)
	if err != nil {
		return err
	}
	known, err := all.IDs(ctx, 0)
	if err != nil {
		return err
	}
	u := uint32(0)
	find := &finder{known: known, most: findMost(all.Budget), fn: func(name string,
		node int64) error {
		u++
		switch {
		case node == ids.Deleted:
			return errDeleted(name)
		case node >= 0:
			d.there = append(d.there, uint64(node)<<32|uint64(u-1))
			if d.hasRow(u-1, lacks) {
				return d.isNew(name)
			}
			return nil
		}
		d.fresh = append(d.fresh, u-1)
		return checkNew(d.into.Meta(), name, uint64(len(d.fresh)-1), d.hasRow(u-1, lacks))
	}}
	var text []string
	nodes := make([]layout.NodeID, 0, chunk)
	for v := uint64(0); v < d.meta.Nodes; v += uint64(len(nodes)) {
		nodes = nodes[:0]
		for u := v; u < d.meta.Nodes && len(nodes) < chunk; u++ {
			nodes = append(nodes, layout.NodeID(u))
		}
		if text, err = names.External(ctx, nodes, text[:0]); err != nil {
			return err
		}
		for _, name := range text {
			if err := find.add(ctx, []byte(name)); err != nil {
				return err
			}
		}
		err := d.held.AtLeast(4*int64(len(d.local)+2*cap(d.fresh)) + 12*int64(cap(d.there)))
		if err != nil {
			return err
		}
	}
	if err := find.flush(ctx); err != nil {
		return err
	}
	slices.Sort(d.there)
	for _, p := range d.there {
		if used.Contains(uint32(p)) {
			d.local[uint32(p)] = uint32(len(d.old))
			d.old = append(d.old, uint32(p>>32))
		}
	}
	for i, u := range d.fresh {
		d.local[u] = uint32(len(d.old) + i)
	}
	return nil
}

// hasRow reports whether the sources have a row of features of a node.
func (d *addition) hasRow(u uint32, lacks *roaring.Bitmap) bool {
	return len(d.meta.Features) > 0 && !lacks.Contains(u)
}

// nodes returns the nodes of the level, by the numbers of the store.
func (d *addition) nodes() *roaring.Bitmap {
	set := roaring.BitmapOf(d.old...)
	set.AddRange(d.first, d.first+uint64(len(d.fresh)))
	set.RunOptimize()
	return set
}

// splits returns the nodes in each split of the sources, by the numbers of the store, and which of
// them the store had before.
func (d *addition) splits(ctx context.Context) (sets map[string]*roaring.Bitmap,
	old *roaring.Bitmap, err error) {
	sets, old = map[string]*roaring.Bitmap{}, roaring.New()
	for _, s := range d.meta.Splits {
		set, err := d.files.Store.Split(ctx, s.Name)
		if err != nil {
			return nil, nil, err
		}
		to := roaring.New()
		for _, p := range d.there {
			if set.Contains(uint32(p)) {
				to.Add(uint32(p >> 32))
			}
		}
		old.Or(to)
		for i, u := range d.fresh {
			if set.Contains(u) {
				to.Add(uint32(d.into.Meta().Nodes) + uint32(i))
			}
		}
		sets[s.Name] = to
	}
	return sets, old, nil
}

func (d *addition) close() error {
	var err error
	if d.lists != nil {
		err = d.lists.Close()
	}
	d.held.Release()
	return errors.Join(err, d.files.Close())
}

// Below returns how many nodes of the level the store had before.
func (d *addition) Below() uint64 { return uint64(len(d.old)) }

// Info describes the level, whose ids are its numbers.
func (d *addition) Info() *source.Info {
	m := d.into.Meta()
	info := &source.Info{Format: "store", Paths: []string{d.into.Dir()}, RowIDs: true,
		Nodes: uint64(len(d.old) + len(d.fresh)), Edges: d.meta.Edges, EdgeTypes: m.EdgeTypes,
		Typed: len(m.EdgeTypes) > 0, Weighted: m.Weighted, Timed: m.Timestamped, Times: m.Times}
	if len(d.fresh) == 0 {
		return info
	}
	for _, f := range m.Features {
		of := source.FeatureInfo{Name: f.Name, Dim: f.Dim, DType: f.DType, Rows: info.Nodes,
			Columns: m.FeatureNames[f.Name]}
		if len(d.old) > 0 {
			of.Dims = []int{0, f.Dim}
		}
		info.Features = append(info.Features, of)
	}
	if m.Labels != nil {
		info.Labels = &source.LabelInfo{Kind: m.Labels.Kind, Text: true, Classes: m.Labels.Classes}
	}
	return info
}

// Edges streams the edges of the sources that the store does not have, by the numbers of the level.
func (d *addition) Edges(ctx context.Context, fn func(*source.EdgeChunk) error) error {
	c := &source.EdgeChunk{Where: source.Where{File: d.where, Unit: "edge"}}
	types := d.names.Types
	var known map[edge]bool
	return listfile.Scan(ctx, d.files.Store, d.files.Device, layout.In,
		func(first layout.NodeID, _ bool, l *listfile.Lists) (err error) {
			if known, err = d.known(ctx, first, l, types); err != nil {
				return err
			}
			c.SrcInt, c.DstInt, c.TypeInt = c.SrcInt[:0], c.DstInt[:0], c.TypeInt[:0]
			c.Weight, c.Time = c.Weight[:0], c.Time[:0]
			for i := range len(l.Off) - 1 {
				for k := l.Off[i]; k < l.Off[i+1]; k++ {
					e := d.edge(first+layout.NodeID(i), l, k, types)
					if known[e] {
						continue
					}
					c.SrcInt, c.DstInt = append(c.SrcInt, uint64(e.src)), append(c.DstInt,
						uint64(e.dst))
					if l.Types != nil {
						c.TypeInt = append(c.TypeInt, e.typ)
					}
					if l.Weights != nil {
						c.Weight = append(c.Weight, l.Weights[k])
					}
					if l.Times != nil {
						c.Time = append(c.Time, l.Times[k])
					}
				}
			}
			if len(c.SrcInt) == 0 {
				return ctx.Err()
			}
			return fn(c)
		})
}

// edge is an edge by the numbers of the level.
type edge struct{ src, dst, typ uint32 }

// edge returns an entry of the list of a node of the sources.
func (d *addition) edge(v layout.NodeID, l *listfile.Lists, k uint64, types []uint32) edge {
	e := edge{src: d.local[l.Nbrs[k]], dst: d.local[v]}
	if l.Types != nil {
		e.typ = types[l.Types[k]]
	}
	return e
}

// known returns which edges of some lists the store has, unless it keeps parallel edges.
func (d *addition) known(ctx context.Context, first layout.NodeID, l *listfile.Lists,
	types []uint32) (map[edge]bool, error) {
	if d.lists == nil {
		return nil, nil
	}
	var dst []layout.NodeID
	of := map[layout.NodeID]uint32{} // number in the level, by node of the store
	asked := map[edge]bool{}
	for i := range len(l.Off) - 1 {
		at := d.local[first+layout.NodeID(i)]
		if l.Off[i] == l.Off[i+1] || int(at) >= len(d.old) {
			continue
		}
		v := layout.NodeID(d.old[at])
		dst, of[v] = append(dst, v), at
		for k := l.Off[i]; k < l.Off[i+1]; k++ {
			asked[d.edge(first+layout.NodeID(i), l, k, types)] = false
		}
	}
	slices.Sort(dst)
	s := d.lists.NewSession()
	defer s.Release()
	most := topology.ListsMost{Nodes: chunk, Entries: 1 << 16}
	err := topology.EachList(ctx, s, dst, most, func(nodes []layout.NodeID, l *listfile.Lists) (
		bool, error) {
		for i, v := range nodes {
			for k := l.Off[i]; k < l.Off[i+1]; k++ {
				at, found := slices.BinarySearch(d.old, uint32(l.Nbrs[k]))
				e := edge{src: uint32(at), dst: of[v]}
				if l.Types != nil {
					e.typ = uint32(l.Types[k])
				}
				if _, is := asked[e]; found && is {
					asked[e] = true
				}
			}
		}
		return true, nil
	})
	return asked, err
}

// Nodes streams nothing, since ids are numbers.
func (d *addition) Nodes(context.Context, func(*source.IDChunk) error) error { return nil }

// newNodes calls fn with the new nodes, some at a time: their nodes in the sources, and their
// numbers.
func (d *addition) newNodes(ctx context.Context, fn func(of []layout.NodeID,
	ids *source.IDChunk) error) error {
	for at := 0; at < len(d.fresh); at += chunk {
		some := d.fresh[at:min(at+chunk, len(d.fresh))]
		c := &source.IDChunk{Where: source.Where{File: d.where, Unit: "node"}}
		for i := range some {
			c.Ints = append(c.Ints, uint64(len(d.old)+at+i))
		}
		if err := fn(mem.View[layout.NodeID](mem.BytesOf(some)), c); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Features streams the rows of the new nodes.
func (d *addition) Features(ctx context.Context, _ string, fn func(*source.RowChunk) error) error {
	rows, err := d.files.Rows(ctx, d.meta.Features[0])
	if err != nil {
		return err
	}
	dim, typ := rows.Meta().Dim, 0
	if len(d.old) > 0 {
		typ = 1
	}
	return d.newNodes(ctx, func(of []layout.NodeID, ids *source.IDChunk) error {
		c := &source.RowChunk{IDs: ids, Rows: make([]float32, len(of)*dim), Type: typ,
			Where: ids.Where}
		if err := rows.Gather(ctx, of, nil, c.Rows); err != nil {
			return err
		}
		return fn(c)
	})
}

// Labels streams the labels of the new nodes.
func (d *addition) Labels(ctx context.Context, fn func(*source.LabelChunk) error) error {
	if d.meta.Labels == nil {
		return nil
	}
	rows, err := d.files.Rows(ctx, d.meta.Labels.Rows)
	if err != nil {
		return err
	}
	return d.newNodes(ctx, func(of []layout.NodeID, ids *source.IDChunk) error {
		raw := make([]byte, 4*len(of))
		if err := rows.GatherRaw(ctx, of, nil, raw); err != nil {
			return err
		}
		c := &source.LabelChunk{IDs: &source.IDChunk{Where: ids.Where}, Where: ids.Where}
		for i := range of {
			word := binary.LittleEndian.Uint32(raw[4*i:])
			switch {
			case !isLabel(d.meta.Labels.Kind, word):
				continue
			case d.meta.Labels.Kind == "target":
				c.Target = append(c.Target, math.Float32frombits(word))
			default:
				c.Text = append(c.Text, []byte(d.meta.Labels.Classes[word]))
			}
			c.IDs.Ints = append(c.IDs.Ints, ids.Ints[i])
		}
		return fn(c)
	})
}

// Splits streams nothing: the catalog of the whole store has them.
func (d *addition) Splits(context.Context, func(*source.SplitChunk) error) error { return nil }

// Close does nothing: close does it.
func (d *addition) Close() error { return nil }

// Meta describes the store that the level is for.
func (d *addition) Meta() *kv.Meta {
	m := *d.into.Meta()
	m.Source, m.EdgeSplits = d.meta.Source, nil
	return &m
}

// At returns v: nodes keep their numbers.
func (d *addition) At(v uint64) uint64 { return v }

// Inverse returns v.
func (d *addition) Inverse(v uint64) uint64 { return v }

// Parts returns nil: the nodes are in no partitions.
func (d *addition) Parts() []kv.Partition { return nil }

// EdgeCut is not known.
func (d *addition) EdgeCut() float64 { return 0 }

// Sum identifies the sources.
func (d *addition) Sum() string { return fmt.Sprintf("%s level", d.meta.UUID) }

// Names streams the ids of the new nodes.
func (d *addition) Names(ctx context.Context, fn func(external []byte) error) error {
	dict, err := d.files.IDs(ctx, 0)
	if err != nil {
		return err
	}
	return d.newNodes(ctx, func(of []layout.NodeID, _ *source.IDChunk) error {
		names, err := dict.External(ctx, of, nil)
		for _, name := range names {
			if err == nil {
				err = fn([]byte(name))
			}
		}
		return err
	})
}

// SplitEdges streams nothing: there are no splits of edges.
func (d *addition) SplitEdges(context.Context, string, func(edgefile.Edges) error) error {
	return nil
}
