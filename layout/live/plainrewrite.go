package live

import (
	"context"
	"errors"
	"slices"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/openfiles"
	"gdb/layout/typedchange"

	"github.com/RoaringBitmap/roaring/v2"
)

var _ ingest.Again = (*typedchange.Plain)(nil)

// isPlainAnew reports whether each commit writes a store of one type of nodes anew: if its edges
// are in splits, each of which is a file of all its edges, or have columns.
func isPlainAnew(m *kv.Meta) bool {
	return !m.Typed() && (len(m.EdgeSplits) > 0 || len(m.EdgeTables) > 0)
}

// appendPlain adds to such a store.
func (a *appending) appendPlain(ctx context.Context, from source.Source) (done *Added,
	err error) {
	if done, err := a.claim(from.Info()); done != nil || err != nil {
		return done, err
	}
	r, err := a.newRewriting()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if r.rows, err = a.ingestSources(ctx, a.fs, from); err != nil {
		return nil, err
	}
	d := &addition{files: openfiles.New(r.rows, r.dev, r.budget), meta: r.rows.Meta(),
		into: r.store, where: r.rows.Dir(), held: mem.NewAccount(r.budget, "nodes of sources")}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.check(a.lacks); err != nil {
		return nil, err
	}
	if err := r.matchPlain(ctx, d); err != nil {
		return nil, err
	}
	if d.meta.Edges == 0 && r.plain.Valued.IsEmpty() &&
		!slices.Contains(r.change.Of, typedchange.Absent) {
		return &Added{LevelMeta: kv.LevelMeta{Snapshot: r.meta.Snapshot}}, nil
	}
	edges := d.names.Edges(typedchange.GivenEdges(r.rows, r.dev, r.budget), d.local)
	if len(r.meta.EdgeSplits) > 0 {
		divider, err := typedchange.NewDivider(ctx, r.meta, edges, r.budget)
		if err != nil {
			return nil, err
		}
		defer divider.Close()
		r.change.Divider = divider
	}
	done, err = r.run(ctx, edges, &source.Info{Format: from.Info().Format,
		Paths: from.Info().Paths})
	if err == nil && r.onlyNew {
		done.OfNew, done.Between, err = countEnds(ctx, r.meta.Nodes, edges)
	}
	return done, err
}

// matchPlain finds the nodes of sources in the store, and which of them have values. Edges of the
// sources have the numbers of the store then, and new nodes those behind.
func (r *rewriting) matchPlain(ctx context.Context, d *addition) error {
	r.plain = &typedchange.PlainChange{Lack: r.lacks}
	known, err := r.files.IDs(ctx, 0)
	if err != nil {
		return err
	}
	if n := r.meta.Nodes + d.meta.Nodes; n > layout.MaxNodes {
		return input.Usage("a store has at most %d nodes", uint64(layout.MaxNodes))
	}
	fresh := uint64(0)
	err = r.match(ctx, d.files, known, func(row uint32, node int64, name string) error {
		if node >= 0 {
			if d.hasRow(row, r.lacks) {
				return r.checkIsNew(name)
			}
			return nil
		}
		fresh++
		return checkNew(r.meta, name, fresh-1, d.hasRow(row, r.lacks))
	})
	if err != nil {
		return err
	}
	if err := d.held.AtLeast(4 * int64(d.meta.Nodes)); err != nil {
		return err
	}
	d.local = make([]uint32, d.meta.Nodes)
	for row, node := range r.change.Of {
		if d.local[row] = node; node == typedchange.Absent {
			d.local[row] = uint32(r.meta.Nodes) + uint32(row)
		}
	}
	r.plain.Valued, err = d.valued(ctx, r.lacks)
	return err
}

// valued returns the nodes of the sources that have features, a label or a split.
func (d *addition) valued(ctx context.Context, lacks *roaring.Bitmap) (*roaring.Bitmap, error) {
	set := roaring.New()
	if len(d.meta.Features) > 0 {
		set.AddRange(0, d.meta.Nodes)
		set.AndNot(lacks)
	}
	for _, s := range d.meta.Splits {
		of, err := d.files.Store.Split(ctx, s.Name)
		if err != nil {
			return nil, err
		}
		set.Or(of)
	}
	if d.meta.Labels == nil {
		return set, nil
	}
	err := eachLabel(ctx, d.files, d.meta.Labels, func(i int) (layout.NodeID, bool) {
		return layout.NodeID(i), uint64(i) < d.meta.Nodes
	}, func(i int, _ uint32) { set.Add(uint32(i)) })
	return set, err
}

// deletePlain deletes nodes and edges of a store of one type that is written anew: nodes behind
// those that go move up.
func (d *deleting) deletePlain(ctx context.Context) (err error) {
	d.done.Snapshot = d.meta.Snapshot
	if d.done.Nodes = d.nodes.GetCardinality(); d.done.Nodes == 0 && len(d.patterns) == 0 {
		return nil
	}
	r, err := d.newRewriting()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	slices.SortFunc(d.patterns, func(p, of pattern) int { return p.compare(of) })
	r.plain, r.change.Gone = &typedchange.PlainChange{}, d.nodes
	r.without = func(c *source.EdgeChunk) *source.EdgeChunk {
		return typedchange.Select(c, func(i int) bool { return !d.isNamed(c, i) })
	}
	added, err := r.run(ctx, nil, &source.Info{Format: "deletion"})
	if err != nil {
		return err
	}
	d.done.Snapshot, d.done.Edges = added.Snapshot, r.gone
	for _, p := range d.patterns {
		if !p.found {
			d.done.LostEdges++
		}
	}
	return nil
}

// isNamed reports whether patterns name edge i of a chunk, in either direction if edges have none.
func (d *deleting) isNamed(c *source.EdgeChunk, i int) (named bool) {
	ends := []pattern{{dst: layout.NodeID(c.DstInt[i]), src: layout.NodeID(c.SrcInt[i])}}
	if d.meta.Undirected {
		ends = append(ends, pattern{dst: ends[0].src, src: ends[0].dst})
	}
	for _, at := range ends {
		k, _ := slices.BinarySearchFunc(d.patterns, at, func(p, of pattern) int {
			return p.compare(of)
		})
		for ; k < len(d.patterns) && d.patterns[k].compare(at) == 0; k++ {
			p := &d.patterns[k]
			if (p.typ < 0 || p.typ == int32(c.TypeInt[i])) && (!p.timed || p.time == c.Time[i]) {
				p.found, named = true, true
			}
		}
	}
	return named
}
