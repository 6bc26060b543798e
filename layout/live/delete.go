package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/listfile"
	"gdb/layout/openfiles"
	"gdb/layout/topology"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Deletion says what is deleted: Options.Edges is a file of edges, read as ingest reads them, and
// Nodes a text file with an id a line. Either may be "". Of a typed store Options.Relations are the
// files of edges, and Options.NodeTables those of ids of a type.
type Deletion struct {
	ingest.Options
	DeleteNodes string
}

// Deleted tells what a deletion did. Lost are ids and edges of its files that the store lacks.
type Deleted struct {
	Snapshot             uint64
	Nodes, Edges         uint64 // edges as entries of in-lists: an undirected one counts twice
	LostNodes, LostEdges uint64
}

// Delete deletes edges, and nodes with all their edges, from the store in dir: all of them, durable
// when it returns, or none. An edge of the file stands for all that are parallel to it, of its type
// and time if the file has types or times. A node that was deleted keeps its number, without edges;
// no id leads to it, and no split has it. Besides the memory of reading the file, it takes 80 bytes
// for each edge that it names or that ends at one of the nodes.
func Delete(ctx context.Context, fs vfs.FS, dir string, del Deletion) (done *Deleted, err error) {
	d := &deleting{}
	err = change(ctx, fs, dir, "delete", del.Options, func(a *appending) error {
		switch typed := len(del.Relations)+len(del.NodeTables) > 0; {
		case a.meta.Typed():
			return a.deleteTyped(ctx, del, &d.done)
		case typed:
			return input.Usage("%s: its nodes have no types: write --delete-nodes FILE and "+
				"--delete-edges FILE", a.store.Dir())
		}
		d.appending, d.held = a, mem.NewAccount(a.budget, "edges that are deleted")
		defer d.held.Release()
		return d.run(ctx, del)
	})
	if err != nil {
		return nil, err
	}
	return &d.done, nil
}

// pattern names edges: those with these ends, and with this type and time unless any may have it.
type pattern struct {
	dst, src layout.NodeID
	typ      int32 // -1 for any
	timed    bool
	time     int64
	found    bool
	asked    bool // the file names it
}

// deleting is a deletion under way.
type deleting struct {
	*appending
	done     Deleted
	patterns []pattern
	nodes    *roaring.Bitmap // that are deleted
	gone     layout.Edges    // one for each key
	counts   layout.CommitHead
	held     mem.Account
}

func (d *deleting) account() error {
	return d.held.AtLeast(40*int64(cap(d.patterns)) + 20*int64(cap(d.gone.Src)))
}

func (d *deleting) run(ctx context.Context, del Deletion) error {
	all := openfiles.New(d.store, d.dev, d.budget)
	defer func() { _ = all.Close() }() // it was only read
	if err := d.findNodes(ctx, all, del.DeleteNodes); err != nil {
		return err
	}
	if err := d.readEdges(ctx, all); err != nil {
		return err
	}
	if isPlainAnew(d.meta) {
		return d.deletePlain(ctx)
	}
	if err := d.edgesOfNodes(ctx); err != nil {
		return err
	}
	if err := d.resolve(ctx); err != nil {
		return err
	}
	d.done.Snapshot, d.done.Nodes = d.meta.Snapshot, d.nodes.GetCardinality()
	d.done.Edges = d.counts.Removed
	if d.gone.Len() == 0 && d.nodes.IsEmpty() {
		return nil
	}
	c := &layout.Commit{CommitHead: d.counts, Gone: d.gone}
	c.Snapshot, c.Created, c.Nodes = d.meta.Snapshot+1, time.Now().UTC(), d.meta.Nodes
	d.done.Snapshot = c.Snapshot
	if d.nodes.IsEmpty() && uint64(d.gone.Len()) <= smallEdges {
		if err := d.allowCommits(ctx); err != nil {
			return err
		}
		_, err := layout.WriteCommit(d.fs, d.store, c)
		d.small = c
		return err
	}
	return d.level(ctx, c)
}

// findNodes finds the nodes that a file has ids of.
func (d *deleting) findNodes(ctx context.Context, all *openfiles.Set, path string) error {
	d.nodes = roaring.New()
	if path == "" {
		return nil
	}
	known, err := all.IDs(ctx, 1<<20)
	if err != nil {
		return err
	}
	return files.ReadLines(d.fs, path, 1<<16, func(line []byte) error {
		name := strings.TrimSuffix(string(line), "\r")
		if name == "" {
			return nil
		}
		v, err := known.Internal(ctx, name)
		switch {
		case errors.Is(err, kv.ErrNotFound):
			d.done.LostNodes++
			return ctx.Err()
		case err != nil:
			return err
		}
		d.nodes.Add(uint32(v))
		return ctx.Err()
	})
}

// readEdges makes patterns of the file of edges.
func (d *deleting) readEdges(ctx context.Context, all *openfiles.Set) error {
	if d.opt.Edges == "" {
		return nil
	}
	opt := d.opt
	opt.Out, opt.BlockBytes = d.path("read"), d.meta.BlockBytes
	opt.Undirected = d.meta.Undirected && !isPlainAnew(d.meta) // it reads each edge once
	opt.KeepDuplicates, opt.KeepSelfLoops = true, true
	fs, _, err := d.scratch()
	if err != nil {
		return err
	}
	if _, err := ingest.Run(ctx, fs, opt); err != nil {
		return err
	}
	src, err := layout.Open(ctx, fs, opt.Out)
	if err != nil {
		return err
	}
	m, was := src.Meta(), d.meta
	if len(m.EdgeTables) > 0 && d.opt.Notes != nil {
		// A note that cannot be written must not end the deletion.
		_, _ = fmt.Fprintf(d.opt.Notes, "delete: edges are named by their ends, type and time: "+
			"other columns of the file are not looked at\n")
	}
	switch {
	case m.Weighted:
		return input.Usage("the edges to delete have weights: edges are named by their ends, " +
			"type and time; give --weight-col none if a column is taken for weights")
	case m.Timestamped && !was.Timestamped:
		return input.Usage("the edges to delete have times, and those of the store have none")
	case m.Timestamped && len(was.EdgeSplits) > 0:
		return errSplitTimes
	case len(m.EdgeTypes) > 0 && len(was.EdgeTypes) == 0:
		return input.Usage("the edges to delete have types, and those of the store have none")
	}
	nodes, err := d.matchNodes(ctx, src, all)
	if err != nil {
		return err
	}
	types := make([]int32, len(m.EdgeTypes))
	for i, t := range m.EdgeTypes {
		types[i] = int32(slices.Index(was.EdgeTypes, t))
	}
	return listfile.Scan(ctx, src, d.dev, layout.In, func(first layout.NodeID, _ bool,
		l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			for k := l.Off[i]; k < l.Off[i+1]; k++ {
				from, to := nodes[l.Nbrs[k]], nodes[uint64(first)+uint64(i)]
				p := pattern{src: layout.NodeID(from), dst: layout.NodeID(to), typ: -1, asked: true}
				if l.Types != nil {
					p.typ = types[l.Types[k]]
				}
				if l.Times != nil {
					p.timed, p.time = true, l.Times[k]
				}
				if from == absent || to == absent || l.Types != nil && p.typ < 0 {
					d.done.LostEdges++
					continue
				}
				d.patterns = append(d.patterns, p)
			}
		}
		return d.account()
	})
}

// matchNodes returns the node of the store for each node of the sources, or absent.
func (d *deleting) matchNodes(ctx context.Context, src *layout.Store, all *openfiles.Set) (
	[]uint32, error) {
	from := openfiles.New(src, d.dev, d.budget)
	defer func() { _ = from.Close() }() // it was only read
	names, err := from.IDs(ctx, 0)
	if err != nil {
		return nil, err
	}
	known, err := all.IDs(ctx, 0)
	if err != nil {
		return nil, err
	}
	to := make([]uint32, 0, src.Meta().Nodes)
	find := &finder{known: known, most: findMost(d.budget), fn: func(_ string, node int64) error {
		if node < 0 { // it was deleted, or never there
			node = absent
		}
		to = append(to, uint32(node))
		return nil
	}}
	var some []layout.NodeID
	var text []string
	for v := 0; v < cap(to); v += chunk {
		some = some[:0]
		for u := v; u < min(v+chunk, cap(to)); u++ {
			some = append(some, layout.NodeID(u))
		}
		if text, err = names.External(ctx, some, text[:0]); err != nil {
			return nil, err
		}
		for _, name := range text {
			if err := find.add(ctx, []byte(name)); err != nil {
				return nil, err
			}
		}
	}
	return to, find.flush(ctx)
}

// edgesOfNodes adds patterns of all edges of the nodes that are deleted. Of a directed store
// without out-lists it reads all in-lists.
func (d *deleting) edgesOfNodes(ctx context.Context) error {
	if d.nodes.IsEmpty() {
		return nil
	}
	add := func(src, dst layout.NodeID) {
		d.patterns = append(d.patterns, pattern{src: src, dst: dst, typ: -1})
	}
	ends := func(dir layout.Direction, fn func(v, u layout.NodeID)) error {
		t, err := topology.Open(ctx, d.store, d.dev, dir, topology.Options{CacheBytes: 4 << 20,
			Budget: d.budget})
		if err != nil {
			return err
		}
		s := t.NewSession()
		most := topology.ListsMost{Nodes: chunk, Entries: 1 << 16}
		nodes := mem.View[layout.NodeID](mem.BytesOf(d.nodes.ToArray()))
		err = topology.EachList(ctx, s, nodes, most, func(some []layout.NodeID,
			l *listfile.Lists) (bool, error) {
			for i, v := range some {
				for _, u := range l.Nbrs[l.Off[i]:l.Off[i+1]] {
					fn(v, u)
				}
			}
			return true, d.account()
		})
		s.Release()
		return errors.Join(err, t.Close())
	}
	err := ends(layout.In, func(v, u layout.NodeID) {
		add(u, v)
		if d.meta.Undirected {
			add(v, u)
		}
	})
	switch {
	case err != nil || d.meta.Undirected:
		return err
	case slices.Contains(d.meta.Directions, "out"):
		return ends(layout.Out, func(v, u layout.NodeID) { add(v, u) })
	}
	return topology.Scan(ctx, d.store, d.dev, layout.In, func(first layout.NodeID, _ bool,
		l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			for _, u := range l.Nbrs[l.Off[i]:l.Off[i+1]] {
				if d.nodes.Contains(uint32(u)) {
					add(u, first+layout.NodeID(i))
				}
			}
		}
		return d.account()
	})
}

func (p *pattern) compare(of pattern) int {
	return cmp.Or(cmp.Compare(p.dst, of.dst), cmp.Compare(p.src, of.src))
}

// resolve finds the entries that patterns name.
func (d *deleting) resolve(ctx context.Context) error {
	d.counts.TypeCounts = make([]int64, len(d.meta.EdgeTypes))
	slices.SortFunc(d.patterns, func(p, of pattern) int { return p.compare(of) })
	var nodes []layout.NodeID
	for _, p := range d.patterns {
		if len(nodes) == 0 || nodes[len(nodes)-1] != p.dst {
			nodes = append(nodes, p.dst)
		}
	}
	t, err := topology.Open(ctx, d.store, d.dev, layout.In, topology.Options{CacheBytes: 4 << 20,
		Budget: d.budget})
	if err != nil {
		return err
	}
	s := t.NewSession()
	most := topology.ListsMost{Nodes: chunk, Entries: 1 << 16}
	err = topology.EachList(ctx, s, nodes, most, func(some []layout.NodeID, l *listfile.Lists) (
		bool, error) {
		for i, v := range some {
			d.resolveList(v, l, l.Off[i], l.Off[i+1])
		}
		return true, d.account()
	})
	s.Release()
	for _, p := range d.patterns {
		if p.asked && !p.found {
			d.done.LostEdges++
		}
	}
	return errors.Join(err, t.Close())
}

// resolveList finds those entries of the list of v, or of a part of it, that patterns name.
func (d *deleting) resolveList(v layout.NodeID, l *listfile.Lists, from, to uint64) {
	first := d.gone.Len() // of the entries of this list, the keys are in gone from there on
	for k := from; k < to; k++ {
		at := pattern{dst: v, src: l.Nbrs[k]}
		i, _ := slices.BinarySearchFunc(d.patterns, at, func(p, of pattern) int {
			return p.compare(of)
		})
		named := false
		for ; i < len(d.patterns) && d.patterns[i].compare(at) == 0; i++ {
			p := &d.patterns[i]
			if (p.typ < 0 || int32(l.Types[k]) == p.typ) && (!p.timed || l.Times[k] == p.time) {
				p.found, named = true, true
			}
		}
		if !named {
			continue
		}
		one := layout.Edges{Src: []layout.NodeID{at.src}, Dst: []layout.NodeID{v}}
		if l.Types != nil {
			one.Types = l.Types[k : k+1]
		}
		if l.Times != nil {
			one.Times = l.Times[k : k+1]
		}
		d.counts.Removed++
		d.counts.Count(&one, -1)
		if !d.hasKey(first, one.Key(0)) {
			d.gone.Append(&one, 0)
		}
	}
}

// hasKey reports whether gone has a key from a place on: entries of one neighbor are together.
func (d *deleting) hasKey(first int, key layout.EdgeKey) bool {
	for i := d.gone.Len() - 1; i >= first && d.gone.Src[i] == key.Src; i-- {
		if d.gone.Key(i) == key {
			return true
		}
	}
	return false
}

// level writes a deletion as a level, and takes nodes out of splits and ids.
func (d *deleting) level(ctx context.Context, c *layout.Commit) error {
	if err := d.flush(ctx, &d.opt); err != nil {
		return err
	}
	var levels []kv.LevelMeta
	for _, l := range d.store.LevelsOf(c) {
		level := l.Of
		level.Path = fmt.Sprintf("%s/%d", layout.LevelsDir, c.Snapshot)
		if err := d.write(ctx, d.listed(l), &level, &d.opt, d.budget.Used()); err != nil {
			return err
		}
		levels = append(levels, level)
	}
	labels, err := d.labelsWithout(ctx, d.nodes)
	if err != nil {
		return err
	}
	return d.commit(ctx, func(m *kv.Meta, set func(string) (*roaring.Bitmap, error)) (
		map[string]*roaring.Bitmap, error) {
		m.Edges, m.Labels = m.Edges-c.Removed, labels
		m.Stats.SelfLoops += uint64(c.SelfLoops)
		for i, n := range c.TypeCounts {
			m.Stats.TypeCounts[i] += uint64(n)
		}
		m.Levels = append(m.Levels, levels...)
		sets := map[string]*roaring.Bitmap{}
		if d.nodes.IsEmpty() {
			return sets, nil
		}
		for i := range m.Splits {
			s := &m.Splits[i]
			with, err := set(s.Name)
			if err != nil {
				return nil, err
			}
			if with.Intersects(d.nodes) {
				with.AndNot(d.nodes)
				s.Count, sets[s.Name] = with.GetCardinality(), with
			}
		}
		gone := d.nodes.Clone()
		if m.Deleted != "" {
			was, err := set(m.Deleted)
			if err != nil {
				return nil, err
			}
			gone.Or(was)
		}
		m.Deleted = fmt.Sprintf("nodes:deleted@%d", m.Snapshot)
		sets[m.Deleted] = gone
		return sets, nil
	})
}
