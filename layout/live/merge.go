package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/listfile"
	"gdb/layout/openfiles"

	"github.com/RoaringBitmap/roaring/v2"
)

// A store has at most levelsMost levels of lists, and as many for each file of rows. A commit that
// makes one more merges the last ones. It begins with the first that has at most a mergeShare of
// the bytes of all that follow it, so that the levels before are large beside what is written anew.
const mergeShare = 4

var levelsMost = 12 // tests have fewer

// mergeFrom returns the first of some levels to merge, the oldest first; -1 for none.
func mergeFrom(levels []*layout.Level) int {
	if len(levels) <= levelsMost {
		return -1
	}
	after := int64(0)
	for i := len(levels) - 1; i >= 0; i-- {
		after += levels[i].Of.Bytes
	}
	for i, l := range levels {
		if after -= l.Of.Bytes; l.Of.Bytes*mergeShare <= after {
			return i
		}
	}
	return len(levels) - 2
}

// merge merges levels if they are too many. What it writes is a snapshot with the same content. It
// takes memory for the entries of the lists that it merges, as readers of the store do; where opt
// says less, it leaves the levels of lists as they are. It leaves all while small commits are held:
// these count while their numbers are above the snapshot of the catalog.
func (w *work) merge(ctx context.Context, opt *ingest.Options) (err error) {
	if len(w.store.HeldCommits()) > 0 {
		return nil
	}
	kinds := map[string][]*layout.Level{}
	for _, l := range w.store.Levels() {
		if l.Held == nil {
			kinds[l.Of.Rows] = append(kinds[l.Of.Rows], l)
		}
	}
	m := &merging{work: w, opt: opt, budget: mem.NewBudget(max(1, opt.Memory/2)),
		number: w.store.Meta().Snapshot + 1, of: map[string][]kv.LevelMeta{}}
	defer func() { m.closeFiles(&err) }()
	for rows, levels := range kinds {
		from := mergeFrom(levels)
		if from < 0 {
			continue
		}
		if w.store.Meta().Typed() {
			err = m.typedLists(ctx, levels[from:])
		} else if rows != "" {
			err = m.rows(ctx, rows, levels[from:])
		} else if m.fits(levels[from:]) {
			err = m.lists(ctx, levels[from:])
		} else if opt.Notes != nil {
			_, _ = fmt.Fprintf(opt.Notes, "append: the last levels stay apart, since merging them "+
				"takes more than half of --memory; %s compact makes the store one again\n",
				message.Program)
		}
		if err != nil {
			return fmt.Errorf("merge levels: %w", err)
		}
	}
	if len(m.of) == 0 {
		return nil
	}
	return m.list(ctx)
}

// merging is a merge of levels under way.
type merging struct {
	*work
	opt    *ingest.Options
	budget *mem.Budget
	number uint64 // of the snapshot that it makes
	files  *openfiles.Set
	of     map[string][]kv.LevelMeta // what it made, by the path of the last level that it merged
	merged []string                  // the paths of all of these
}

// open opens the files of the store, of which new levels take ids and rows.
func (m *merging) open() *openfiles.Set {
	if m.files == nil {
		m.files = openfiles.New(m.store, m.dev, m.budget)
	}
	return m.files
}

func (m *merging) closeFiles(err *error) {
	if m.files == nil {
		return
	}
	if failed := m.files.Close(); *err == nil {
		*err = failed
	}
}

// unitedBytes is what an edge that a level takes away needs in memory while levels are merged: its
// ends, type and time, and its place in a map.
const unitedBytes = 8 + 2 + 8 + 80

// streamBytes is what reading a level takes in memory, at most.
const streamBytes = 9 << 20

// fits reports whether levels can be merged in memory: the numbers of their nodes, what reads them,
// and the edges that they take away.
func (m *merging) fits(levels []*layout.Level) bool {
	n := 2 * int64(m.store.Meta().Nodes)
	for _, l := range levels {
		of := l.Meta()
		if l.Of.Gone {
			n += int64(of.Edges) * unitedBytes
		}
		n += 12*int64(of.Nodes) + levelBytes(l)
	}
	return n <= m.opt.Memory/2
}

// levelBytes returns what reading a level takes in memory, at most.
func levelBytes(l *layout.Level) int64 { return min(streamBytes, 3*l.Of.Bytes) }

// done notes that levels were merged to others.
func (m *merging) done(levels []*layout.Level, made []kv.LevelMeta) {
	for _, l := range levels {
		m.merged = append(m.merged, l.Of.Path)
	}
	m.of[levels[len(levels)-1].Of.Path] = made
}

// path returns the folder of a new level, called by what it has.
func (m *merging) path(what string) string {
	return fmt.Sprintf("%s/%d%s", layout.LevelsDir, m.number, what)
}

// addition describes a level of some old nodes and of the nodes from first to end-1, which takes
// its ids and rows from the store.
func (m *merging) addition(old []uint32, first, end, edges uint64) *addition {
	of := *m.store.Meta()
	of.Edges = edges
	d := &addition{files: m.open(), meta: &of, into: m.store, old: old, first: first,
		where: "levels of " + m.store.Dir()}
	for v := first; v < end; v++ {
		d.fresh = append(d.fresh, uint32(v))
	}
	return d
}

// rows merges levels that replace rows of a file.
func (m *merging) rows(ctx context.Context, rows string, levels []*layout.Level) error {
	all := roaring.New()
	for _, l := range levels {
		set, err := l.Nodes(ctx)
		if err != nil {
			return err
		}
		all.Or(set)
	}
	d := m.addition(nil, 0, 0, 0)
	d.fresh = all.ToArray()
	last := levels[len(levels)-1].Of
	r := &replacing{addition: d, of: all, rows: rows}
	level := kv.LevelMeta{Snapshot: last.Snapshot, Created: last.Created, Source: last.Source,
		Rows: rows, RowNodes: all.GetCardinality(), Path: m.path("-features")}
	if labels := m.store.Meta().Labels; labels != nil && labels.Rows.Path == rows {
		r.isLabels, level.Path = true, m.path("-labels")
	}
	if err := m.write(ctx, r, &level, m.opt, m.budget.Used()); err != nil {
		return err
	}
	m.done(levels, []kv.LevelMeta{level})
	return nil
}

// lists merges levels of lists: to one of edges that are gone, of those before, and one of edges
// and new nodes.
func (m *merging) lists(ctx context.Context, levels []*layout.Level) (err error) {
	last, first := levels[len(levels)-1], levels[0].First
	u, of, err := unite(ctx, m.dev, first, levels)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.free()) }()
	old := u.nodes.Clone()
	old.RemoveRange(first, 1<<32)
	level := kv.LevelMeta{Snapshot: last.Of.Snapshot, Created: last.Of.Created,
		Source: last.Of.Source}
	var made []kv.LevelMeta
	if u.gone.Len() > 0 {
		level := level
		level.Gone, level.Path = true, m.path("-gone")
		d := m.addition(old.ToArray(), first, first, uint64(u.gone.Len()))
		err := m.write(ctx, &listed{addition: d, edges: &u.gone}, &level, m.opt,
			m.budget.Used()+u.bytes())
		if err != nil {
			return err
		}
		made = append(made, level)
	}
	end, edges := last.First+last.Of.Nodes, uint64(0)
	all := &united{dev: m.dev, union: u}
	for i, l := range levels {
		if !l.Of.Gone {
			edges += l.Of.Edges
		}
		u.held += 12 * int64(len(of[i]))
	}
	if edges > 0 || end > first {
		all.addition = m.addition(old.ToArray(), first, end, edges)
		for i, l := range levels {
			if !l.Of.Gone {
				all.add(l, i, of[i])
			}
		}
		level.Nodes, level.Path = end-first, m.path("")
		if err := m.write(ctx, all, &level, m.opt, m.budget.Used()+u.bytes()); err != nil {
			return err
		}
		made = append(made, level)
	}
	if u.gone.Len() > 0 {
		made[0].Removed = u.removed
	}
	m.done(levels, made)
	return nil
}

// union is what levels of lists have together.
type union struct {
	nodes   *roaring.Bitmap
	gone    layout.Edges
	removed uint64                 // entries before the levels that gone takes away
	last    map[layout.EdgeKey]int // the last of the levels that takes an edge away
	held    int64                  // bytes of the numbers of nodes
	arena   *mem.Arena             // of the nodes of levels
}

// bytes returns the memory that it takes, but for the set of nodes.
func (u *union) bytes() int64 {
	return u.held + 18*int64(cap(u.gone.Src)) + 80*int64(len(u.last))
}

// free frees the nodes of levels.
func (u *union) free() error {
	if u.arena == nil {
		return nil
	}
	return u.arena.Free()
}

// unite finds the nodes of levels, of each and of all, and reads those levels that take edges away.
// Nodes from first on have no edges before the levels. The caller calls free.
func unite(ctx context.Context, dev blockdev.Device, first uint64, levels []*layout.Level) (
	u *union, of [][]uint32, err error) {
	u = &union{nodes: roaring.New(), last: map[layout.EdgeKey]int{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, u.free())
		}
	}()
	n := int64(0)
	for _, l := range levels {
		n += 4 * int64(l.Meta().Nodes)
	}
	if u.arena, err = mem.NewArena(nil, "nodes of levels", n); err != nil {
		return nil, nil, err
	}
	room := mem.View[uint32](u.arena.Bytes())
	for i, l := range levels {
		set, err := l.Nodes(ctx)
		if err != nil {
			return nil, nil, err
		}
		u.nodes.Or(set)
		count := int(l.Meta().Nodes)
		set.ManyIterator().NextMany(room[:count])
		of, room = append(of, room[:count:count]), room[count:]
		if !l.Of.Gone {
			continue
		}
		u.removed += l.Of.Removed
		err = eachEdge(ctx, l.Store, dev, of[i], func(e *layout.Edges) {
			u.takeAway(i, e, first)
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return u, of, nil
}

// takeAway notes edges that level number at takes away. Nodes from first on have no edges before
// the levels.
func (u *union) takeAway(at int, e *layout.Edges, first uint64) {
	for k := range e.Src {
		key := e.Key(k)
		if _, is := u.last[key]; !is && uint64(max(key.Src, key.Dst)) < first {
			u.gone.Append(e, k)
		}
		u.last[key] = at
	}
}

// eachEdge calls fn with the edges of a level by the numbers of the store, some at a time. of are
// the nodes of the level.
func eachEdge(ctx context.Context, l *layout.Store, dev blockdev.Device, of []uint32,
	fn func(e *layout.Edges)) error {
	return listfile.Scan(ctx, l, dev, layout.In, func(first layout.NodeID, _ bool,
		lists *listfile.Lists) error {
		e := layout.Edges{Types: lists.Types, Weights: lists.Weights, Times: lists.Times}
		for i := range len(lists.Off) - 1 {
			dst := layout.NodeID(of[int(first)+i])
			for _, u := range lists.Nbrs[lists.Off[i]:lists.Off[i+1]] {
				e.Src, e.Dst = append(e.Src, layout.NodeID(of[u])), append(e.Dst, dst)
			}
		}
		fn(&e)
		return ctx.Err()
	})
}

// list lists what was made in the place of what was merged, as a snapshot with the same content.
func (m *merging) list(ctx context.Context) error {
	err := m.commit(ctx, func(meta *kv.Meta, _ func(string) (*roaring.Bitmap, error)) (
		map[string]*roaring.Bitmap, error) {
		var levels []kv.LevelMeta
		for _, l := range meta.Levels {
			if !slices.Contains(m.merged, l.Path) {
				levels = append(levels, l)
			}
			levels = append(levels, m.of[l.Path]...)
		}
		meta.Levels, meta.Rewrites = levels, meta.Snapshot-1
		meta.Committed = time.Now().UTC().Truncate(time.Second)
		return nil, nil
	})
	if err != nil {
		return err
	}
	return m.reopen(ctx)
}
