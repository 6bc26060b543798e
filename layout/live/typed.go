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
	"gdb/layout/parts"
	"gdb/layout/typedlevel"

	"github.com/RoaringBitmap/roaring/v2"
)

// openTyped opens the sources of a commit to a typed store.
func (a *appending) openTyped(ctx context.Context) (source.Source, error) {
	opt := &a.opt
	if a.batch != nil {
		if err := a.batch.tables.Write(a.fs, a.path(givenPath), &opt.Options); err != nil {
			return nil, err
		}
	}
	if opt.Nodes != "" && opt.NodesType != "" {
		opt.NodeTables = []source.NodeTable{{Type: opt.NodesType, File: opt.Nodes}}
		opt.Nodes, opt.NodesType = "", ""
	}
	switch {
	case opt.Nodes != "":
		return nil, input.Usage("--nodes %s: the store has types of nodes: write --nodes "+
			"TYPE=%s", opt.Nodes, opt.Nodes)
	case len(opt.Relations)+len(opt.NodeTables) == 0:
		return nil, input.Usage("the store has types of nodes: name edges by --edges " +
			"SRC:REL:DST=FILE, and nodes by --nodes TYPE=FILE")
	}
	if len(opt.NodeTables) > 0 {
		if err := a.checkNodes(opt); err != nil {
			return nil, err
		}
		a.addKeys(opt)
	}
	a.addColumns(opt)
	opt.Options.Of = a.meta
	src, err := ingest.Open(ctx, a.fs, opt)
	if err == nil && a.batch != nil {
		src.Info().Format, src.Info().Paths = "memory", nil
	}
	return src, err
}

// runTyped makes a level of edges of a typed store, and lists it in the catalog. The sources are
// read twice: to find the nodes at the ends of edges, and to make the level. With tables of nodes,
// and where edges are in splits, it writes the store anew.
func (a *appending) runTyped(ctx context.Context) (done *Added, err error) {
	if a.batch != nil {
		if edges, nodes := a.batch.Len(); edges+nodes == 0 {
			return &Added{LevelMeta: kv.LevelMeta{Snapshot: a.meta.Snapshot}}, nil
		}
	}
	src, err := a.openTyped(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if done, err := a.claim(src.Info()); done != nil || err != nil {
		return done, err
	}
	if len(a.opt.NodeTables) > 0 || len(a.meta.EdgeSplits) > 0 {
		return a.appendAnew(ctx, src)
	}
	all := openfiles.New(a.store, a.dev, a.budget)
	defer func() { err = errors.Join(err, all.Close()) }()
	dict, err := all.IDs(ctx, 0)
	if err != nil {
		return nil, err
	}
	tables, err := typedlevel.NewFiles(src, a.meta, dict)
	if err != nil {
		return nil, err
	}
	nodes, edges, err := tables.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	level := a.newLevel(0, kv.SourceMeta{Format: src.Info().Format, Paths: src.Info().Paths})
	done = &Added{LevelMeta: level}
	if edges == 0 {
		done.Snapshot, done.Path = a.meta.Snapshot, ""
		return done, nil
	}
	err = a.writeTyped(ctx, nodes, tables.Each, &done.LevelMeta, &a.opt)
	if err != nil {
		return nil, err
	}
	return done, a.list(ctx, &commit{Added: done, levels: []kv.LevelMeta{done.LevelMeta}})
}

// writeTyped makes a level of edges of a typed store among some of its nodes, and moves it to its
// place.
func (w *work) writeTyped(ctx context.Context, nodes *roaring.Bitmap, edges typedlevel.Edges,
	level *kv.LevelMeta, of *ingest.Options) error {
	dir := w.path("level")
	m, err := w.ingestTyped(ctx, dir, nodes, edges, of, of.UUID)
	if err != nil {
		return err
	}
	level.UUID, level.Edges = m.UUID, m.Edges
	for _, f := range m.Files {
		level.Bytes += f.Size
	}
	s, err := layout.Open(ctx, w.fs, dir)
	if err != nil {
		return err
	}
	err = s.Catalog().Commit(ctx, nil, func(m *kv.Meta, _ func(string) (*roaring.Bitmap, error)) (
		map[string]*roaring.Bitmap, error) {
		m.Below = m.Nodes
		return map[string]*roaring.Bitmap{kv.LevelNodes: nodes}, nil
	})
	if err != nil {
		return err
	}
	return w.settle(dir, level.Path)
}

// ingestTyped writes edges among some nodes of a typed store, or all where nodes is nil, as a store
// in dir.
func (w *work) ingestTyped(ctx context.Context, dir string, nodes *roaring.Bitmap,
	edges typedlevel.Edges, of *ingest.Options, id kv.UUID) (m *kv.Meta, err error) {
	meta := w.store.Meta()
	budget := mem.NewBudget(max(1, of.Memory/2))
	list, _ := layout.TopologyPaths(layout.In)
	src, err := typedlevel.New(meta, w.store.Path(list), nodes, edges, budget)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	opt := ingest.Options{Out: dir, Both: slices.Contains(meta.Directions, "out"),
		BlockBytes: meta.BlockBytes, Threads: of.Threads, Version: of.Version,
		Progress: of.Progress, Normalize: "none", UUID: id, Resume: of.Resume}
	if err := w.goOnWith(&opt); err != nil {
		return nil, err
	}
	opt.Memory = of.Memory - budget.Used()
	return ingest.RunSource(ctx, w.fs, src, opt)
}

// pieces returns the base, if it is wanted, and levels of lists of a typed store, and the nodes
// that these levels have.
func (w *work) pieces(ctx context.Context, withBase bool, levels []*layout.Level) (
	all []typedlevel.Piece, nodes *roaring.Bitmap, err error) {
	nodes = roaring.New()
	if withBase {
		all = append(all, typedlevel.Piece{Store: w.store.Base()})
	}
	for _, l := range levels {
		set, err := l.Nodes(ctx)
		if err != nil {
			return nil, nil, err
		}
		nodes.Or(set)
		all = append(all, typedlevel.Piece{Store: l.Store, Of: set.ToArray()})
	}
	nodes.RunOptimize()
	return all, nodes, nil
}

// typedLists merges levels of lists of a typed store to one.
func (m *merging) typedLists(ctx context.Context, levels []*layout.Level) error {
	pieces, nodes, err := m.pieces(ctx, false, levels)
	if err != nil {
		return err
	}
	last := levels[len(levels)-1].Of
	level := kv.LevelMeta{Snapshot: last.Snapshot, Created: last.Created, Source: last.Source,
		Path: m.path("")}
	edges := typedlevel.OfPieces(m.store.Meta(), m.dev, m.budget, pieces)
	if err := m.writeTyped(ctx, nodes, edges, &level, m.opt); err != nil {
		return err
	}
	m.done(levels, []kv.LevelMeta{level})
	return nil
}

// compactTyped writes base and levels of a typed store as one in dir. Files of nodes stay as they
// are: they have a second name there.
func (w *work) compactTyped(ctx context.Context, dir string, opt *parts.OrderOptions) (*kv.Meta,
	error) {
	pieces, _, err := w.pieces(ctx, true, w.store.Lists())
	if err != nil {
		return nil, err
	}
	of := &ingest.Options{Threads: opt.Threads, Version: opt.Version, Progress: opt.Progress}
	of.Memory = opt.Memory
	budget := mem.NewBudget(max(1, opt.Memory/4))
	edges := typedlevel.OfPieces(w.store.Meta(), w.dev, budget, pieces)
	made, err := w.ingestTyped(ctx, dir, nil, edges, of, w.store.Meta().UUID)
	if err != nil {
		return nil, err
	}
	meta, err := typedlevel.LinkNodes(w.fs, w.store.Base(), dir, made)
	if err != nil {
		return nil, err
	}
	sets, err := w.setsOfNodes(ctx, meta)
	if err != nil {
		return nil, err
	}
	s, err := layout.Open(ctx, w.fs, dir)
	if err != nil {
		return nil, err
	}
	return meta, s.Catalog().Commit(ctx, nil, func(m *kv.Meta, _ func(string) (*roaring.Bitmap,
		error)) (map[string]*roaring.Bitmap, error) {
		*m = *meta
		return sets, nil
	})
}

// setsOfNodes returns the splits of the store, and which nodes have labels if a node may have
// several, and makes meta, of a new base, list these splits.
func (w *work) setsOfNodes(ctx context.Context, meta *kv.Meta) (map[string]*roaring.Bitmap,
	error) {
	var names []string
	meta.Splits = nil
	for _, s := range w.store.Meta().Splits {
		names = append(names, s.Name)
		meta.Splits = append(meta.Splits, kv.SplitMeta{Name: s.Name, Count: s.Count})
	}
	sets, err := w.store.Splits(ctx, names...)
	if err == nil && meta.Labels != nil && meta.Labels.Kind == "multi" {
		sets["labeled"], err = w.store.Catalog().Set(ctx, "labeled")
	}
	return sets, err
}
