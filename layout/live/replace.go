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
	"gdb/layout"
	"gdb/layout/ingest/source"
	"gdb/layout/openfiles"

	"github.com/RoaringBitmap/roaring/v2"
)

// replacing has rows of features or labels that sources give to nodes of the store. It makes a
// level without edges, whose rows are read in place of the rows that the nodes had before.
type replacing struct {
	*addition                 // its new nodes are those whose rows are replaced
	of        *roaring.Bitmap // these, by the numbers of the store
	rows      string          // the path of the rows
	isLabels  bool
}

// replacing returns the rows that a commit replaces, of features and labels.
func (d *addition) replacing(ctx context.Context, lacks *roaring.Bitmap) (all []*replacing,
	err error) {
	m := d.into.Meta()
	if len(d.meta.Features) > 0 {
		r := d.replacingOf(m.Features[0].Path)
		for _, p := range d.there {
			if u := uint32(p); !lacks.Contains(u) {
				r.add(p)
			}
		}
		all = append(all, r)
	}
	if d.meta.Labels != nil {
		r := d.replacingOf(m.Labels.Rows.Path)
		r.isLabels = true
		err = eachLabel(ctx, d.files, d.meta.Labels, sources(d.there), func(i int, _ uint32) {
			r.add(d.there[i])
		})
		all = append(all, r)
	}
	some := all[:0]
	for _, r := range all {
		if len(r.fresh) > 0 {
			some = append(some, r)
		}
	}
	return some, err
}

func (d *addition) replacingOf(rows string) *replacing {
	return &replacing{addition: &addition{files: d.files, meta: d.meta, into: d.into,
		where: d.where}, of: roaring.New(), rows: rows}
}

// add adds a node of the store and of the sources.
func (r *replacing) add(pair uint64) {
	r.of.Add(uint32(pair >> 32))
	r.fresh = append(r.fresh, uint32(pair))
}

// sources returns the nodes of the sources of pairs.
func sources(pairs []uint64) func(i int) (layout.NodeID, bool) {
	return func(i int) (layout.NodeID, bool) {
		if i >= len(pairs) {
			return 0, false
		}
		return layout.NodeID(uint32(pairs[i])), true
	}
}

// eachLabel calls fn with each of some nodes that has a label: its place among them, and the label
// as it is stored.
func eachLabel(ctx context.Context, files *openfiles.Set, m *kv.LabelsMeta,
	node func(i int) (layout.NodeID, bool), fn func(i int, word uint32)) error {
	rows, err := files.Rows(ctx, m.Rows)
	if err != nil {
		return err
	}
	raw, nodes := make([]byte, 4*chunk), make([]layout.NodeID, 0, chunk)
	for first := 0; ; first += len(nodes) {
		nodes = nodes[:0]
		for v, more := node(first); more && len(nodes) < chunk; v, more = node(first + len(nodes)) {
			nodes = append(nodes, v)
		}
		if len(nodes) == 0 {
			return ctx.Err()
		}
		if err := rows.GatherRaw(ctx, nodes, nil, raw); err != nil {
			return err
		}
		for i := range nodes {
			if word := binary.LittleEndian.Uint32(raw[4*i:]); isLabel(m.Kind, word) {
				fn(first+i, word)
			}
		}
	}
}

// isLabel reports whether the word of a row of labels is one.
func isLabel(kind string, word uint32) bool {
	if kind == "target" {
		x := math.Float32frombits(word)
		return x == x
	}
	return int32(word) >= 0
}

// Info describes the level.
func (r *replacing) Info() *source.Info {
	info := r.addition.Info()
	info.Edges, info.EdgeTypes, info.Typed, info.Weighted, info.Timed = 0, nil, false, false, false
	if r.isLabels {
		info.Features = nil
	} else {
		info.Labels = nil
	}
	return info
}

// Meta describes the store that the level is for; the level has no ids.
func (r *replacing) Meta() *kv.Meta {
	m := r.addition.Meta()
	m.IDs.Kind = kv.IDsDense
	return m
}

// Edges streams nothing.
func (r *replacing) Edges(context.Context, func(*source.EdgeChunk) error) error { return nil }

// Sum identifies the sources and what is replaced.
func (r *replacing) Sum() string { return fmt.Sprintf("%s rows of %s", r.meta.UUID, r.rows) }

// nodes returns the nodes whose rows are replaced.
func (r *replacing) nodes() *roaring.Bitmap {
	r.of.RunOptimize()
	return r.of
}

// labelsWithout returns the counts of the labels of the store without those of some of its nodes;
// nil if it has no labels.
func (a *appending) labelsWithout(ctx context.Context, of *roaring.Bitmap) (*kv.LabelsMeta,
	error) {
	if a.store.Meta().Labels == nil {
		return nil, nil
	}
	counts := *a.store.Meta().Labels
	counts.ClassCounts = slices.Clone(counts.ClassCounts)
	all := openfiles.New(a.store, a.dev, a.budget)
	nodes := mem.View[layout.NodeID](mem.BytesOf(of.ToArray()))
	err := eachLabel(ctx, all, a.store.Meta().Labels, func(i int) (layout.NodeID, bool) {
		if i >= len(nodes) {
			return 0, false
		}
		return nodes[i], true
	}, func(_ int, word uint32) {
		counts.Labeled--
		if counts.Kind == "class" {
			counts.ClassCounts[word]--
		}
	})
	return &counts, errors.Join(err, all.Close())
}
