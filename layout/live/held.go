package live

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"

	"github.com/RoaringBitmap/roaring/v2"
)

// A commit of at most smallEdges edges is small. Small commits are written out as a level when
// together they have more than heldEdges edges, or are more than heldCommits: opening a store reads
// them all.
const (
	heldEdges   = 1 << 18
	heldCommits = 256
)

var smallEdges = uint64(1 << 14) // tests have fewer

// isSmall reports whether what the sources have may be held: edges alone, and ids.
func (a *appending) isSmall(m *kv.Meta) bool {
	return m.Edges <= smallEdges && m.Nodes <= 2*smallEdges && len(m.Features) == 0 &&
		m.Labels == nil && len(m.Splits) == 0
}

// hold writes a small commit, which is durable then. One that changes nothing is none.
func (a *appending) hold(ctx context.Context, add *addition, level *kv.LevelMeta) error {
	c := &layout.Commit{CommitHead: layout.CommitHead{Snapshot: level.Snapshot,
		Created: time.Now().UTC(), Nodes: a.meta.Nodes, New: level.Nodes}}
	if a.meta.IDs.Kind != kv.IDsDense {
		err := add.Names(ctx, func(external []byte) error {
			c.Names = append(c.Names, string(external))
			return nil
		})
		if err != nil {
			return err
		}
	}
	c.TypeCounts = make([]int64, len(a.meta.EdgeTypes))
	err := add.Edges(ctx, func(chunk *source.EdgeChunk) error {
		add.collect(&c.Added, chunk)
		return nil
	})
	if err != nil {
		return err
	}
	if c.New == 0 && c.Added.Len()+c.Gone.Len() == 0 {
		level.Snapshot, level.Path = a.meta.Snapshot, ""
		return nil
	}
	c.Count(&c.Added, 1)
	if err := a.allowCommits(ctx); err != nil {
		return err
	}
	level.Edges, level.Path = uint64(c.Added.Len()), ""
	level.Bytes, err = layout.WriteCommit(a.fs, a.store, c)
	a.small = c
	return err
}

// collect appends the edges of a chunk, by the numbers of the store.
func (d *addition) collect(to *layout.Edges, c *source.EdgeChunk) {
	at := func(local uint64) layout.NodeID {
		if local < uint64(len(d.old)) {
			return layout.NodeID(d.old[local])
		}
		return layout.NodeID(d.into.Meta().Nodes + local - uint64(len(d.old)))
	}
	for i := range c.SrcInt {
		to.Src, to.Dst = append(to.Src, at(c.SrcInt[i])), append(to.Dst, at(c.DstInt[i]))
	}
	for _, t := range c.TypeInt {
		to.Types = append(to.Types, uint16(t))
	}
	to.Weights, to.Times = append(to.Weights, c.Weight...), append(to.Times, c.Time...)
}

// allowCommits makes the catalog of a store that had no level say that there may be some, which
// earlier versions do not read.
func (w *work) allowCommits(ctx context.Context) error {
	if w.store.Recorded().Manifest > 0 {
		return nil
	}
	dir := w.store.Path(layout.LevelsDir)
	if err := w.fs.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	if err := steps.SyncDir(w.fs, w.store.Dir()); err != nil {
		return err
	}
	return w.store.Catalog().Commit(ctx, nil, func(m *kv.Meta, _ func(string) (*roaring.Bitmap,
		error)) (map[string]*roaring.Bitmap, error) {
		m.Manifest = kv.ManifestVersion
		return nil, nil
	})
}

// finish ends a commit: it writes small ones out if they are worth a level, merges levels if there
// are too many, and removes files that nothing reads. After a small commit there is nothing else to
// do, and the catalog is not read.
func (w *work) finish(ctx context.Context, opt *ingest.Options) error {
	if w.small != nil && !isWorth(append(slices.Clip(w.store.HeldCommits()), w.small)) {
		return nil
	}
	if err := w.reopen(ctx); err != nil {
		return err
	}
	if w.small != nil {
		if err := w.flush(ctx, opt); err != nil {
			return err
		}
	}
	if err := w.merge(ctx, opt); err != nil {
		return err
	}
	return w.sweep(ctx)
}

// reopen opens the store as it is now.
func (w *work) reopen(ctx context.Context) (err error) {
	s, err := layout.OpenLive(ctx, w.fs, w.store.Dir())
	if err == nil {
		w.store = s
	}
	return err
}

// isWorth reports whether commits are worth a level.
func isWorth(commits []*layout.Commit) bool {
	edges := 0
	for _, c := range commits {
		edges += c.Added.Len() + c.Gone.Len()
	}
	return edges > heldEdges || len(commits) > heldCommits
}

// flush writes the small commits out as levels, if there are some. The snapshot stays.
func (w *work) flush(ctx context.Context, opt *ingest.Options) error {
	if len(w.store.HeldCommits()) == 0 {
		return nil
	}
	of := *opt
	of.Resume = false
	if err := removeAll(w.fs, w.path("level")); err != nil { // of one that was killed
		return err
	}
	var levels []kv.LevelMeta
	for _, l := range w.store.Levels() {
		if l.Held == nil {
			continue
		}
		level := l.Of
		level.Path = fmt.Sprintf("%s/%d", layout.LevelsDir, level.Snapshot)
		if level.Gone {
			level.Path += "-gone"
		}
		if err := w.write(ctx, w.listed(l), &level, &of, 0); err != nil {
			return err
		}
		levels = append(levels, level)
	}
	now := w.store.Meta()
	err := w.commit(ctx, func(m *kv.Meta, _ func(string) (*roaring.Bitmap, error)) (
		map[string]*roaring.Bitmap, error) {
		m.Snapshot, m.Nodes, m.Edges, m.Stats = now.Snapshot, now.Nodes, now.Edges, now.Stats
		m.Committed = now.Committed
		m.Levels = append(m.Levels, levels...)
		return nil, nil
	})
	if err != nil {
		return err
	}
	return w.reopen(ctx)
}

// listed is a level whose edges are in memory, as ingest reads it to write it out. names are the
// ids of new nodes, unless files, which is not nil then, has them.
type listed struct {
	*addition
	edges *layout.Edges
	names []string
}

func (w *work) listed(l *layout.Level) *listed {
	below := l.Meta().Below
	d := &addition{meta: &kv.Meta{UUID: l.Meta().UUID, Edges: l.Of.Edges,
		Source: w.store.Meta().Source}, into: w.store, old: l.Held.Of[:below],
		where: "commits of " + w.store.Dir(), first: l.First, fresh: make([]uint32, l.Of.Nodes)}
	return &listed{d, &l.Held.Edges, l.Held.Names}
}

// Info describes the level.
func (l *listed) Info() *source.Info {
	info := l.addition.Info()
	info.Weighted = l.edges.Weights != nil
	return info
}

// Names streams the ids of new nodes.
func (l *listed) Names(ctx context.Context, fn func(external []byte) error) error {
	if l.files != nil {
		return l.addition.Names(ctx, fn)
	}
	for _, name := range l.names {
		if err := fn([]byte(name)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Edges streams all edges, by the numbers of the level.
func (l *listed) Edges(ctx context.Context, fn func(*source.EdgeChunk) error) error {
	words := layout.RankWords(l.first)
	old := layout.NewRanks(make([]uint64, words), make([]uint32, words))
	old.Add(l.old)
	old.Number()
	at := func(v layout.NodeID) uint64 {
		if uint64(v) >= l.first {
			return uint64(len(l.old)) + uint64(v) - l.first
		}
		i, _ := old.Rank(v)
		return uint64(i)
	}
	for from := 0; from < l.edges.Len(); from += chunk {
		c := &source.EdgeChunk{Where: source.Where{File: l.where, Unit: "edge"}}
		for i := from; i < min(from+chunk, l.edges.Len()); i++ {
			c.SrcInt = append(c.SrcInt, at(l.edges.Src[i]))
			c.DstInt = append(c.DstInt, at(l.edges.Dst[i]))
			if l.edges.Types != nil {
				c.TypeInt = append(c.TypeInt, uint32(l.edges.Types[i]))
			}
			if l.edges.Weights != nil {
				c.Weight = append(c.Weight, l.edges.Weights[i])
			}
			if l.edges.Times != nil {
				c.Time = append(c.Time, l.edges.Times[i])
			}
		}
		if err := fn(c); err != nil {
			return err
		}
	}
	return ctx.Err()
}
