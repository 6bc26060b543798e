package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/openfiles"

	"github.com/RoaringBitmap/roaring/v2"
)

// isPlain reports whether sources have edges and ids alone, of which a level is made in one ingest.
func (a *appending) isPlain(info *source.Info) bool {
	return len(info.Features) == 0 && info.Labels == nil && len(info.Splits) == 0 &&
		len(info.EdgeSplits) == 0 && len(info.NodeTypes) == 0 && len(info.EdgeTables) == 0 &&
		!info.RowIDs && !info.Typed && len(a.meta.EdgeTypes) == 0 && !drops(a.meta)
}

// atOnce makes a level of sources in one ingest, which looks their ids up in the store. The error
// wraps ingest.ErrNoLevel if they are to be ingested as a store of their own first.
func (a *appending) atOnce(ctx context.Context, src source.Source) (*Added, error) {
	if err := a.flush(ctx, &a.opt); err != nil {
		return nil, err
	}
	a.meta = a.store.Meta()
	info := src.Info()
	d := &addition{into: a.store, meta: &kv.Meta{Edges: 1, Weighted: info.Weighted,
		Timestamped: info.Timed, Times: info.Times}}
	if err := d.check(nil); err != nil {
		return nil, err
	}
	opt := a.shaped()
	opt.Out, opt.Both = a.path("level"), slices.Contains(a.meta.Directions, "out")
	if err := a.goOnWith(&opt); err != nil {
		return nil, err
	}
	m, err := ingest.RunLevel(ctx, a.fs, src, entering{a}, opt)
	if err != nil {
		return nil, err
	}
	level := a.newLevel(m.Nodes-m.Below, m.Source)
	done := &Added{LevelMeta: level}
	if m.Edges == 0 && level.Nodes == 0 {
		done.Snapshot, done.Path = a.meta.Snapshot, ""
		return done, removeAll(a.fs, opt.Out)
	}
	done.take(m)
	if err := a.settle(opt.Out, level.Path); err != nil {
		return nil, err
	}
	return done, a.list(ctx, &commit{Added: done, levels: []kv.LevelMeta{done.LevelMeta}})
}

// take notes what was made.
func (a *Added) take(m *kv.Meta) {
	a.UUID, a.Edges = m.UUID, m.Edges
	for _, f := range m.Files {
		a.Bytes += f.Size
	}
}

// entering numbers the nodes of sources in a level of a store.
type entering struct{ *appending }

// Meta describes the store.
func (e entering) Meta() *kv.Meta { return e.meta }

// Enter looks the ids up. Sources that are a small commit are none that it takes.
func (e entering) Enter(ctx context.Context, from *ingest.LevelIDs) (*ingest.LevelNodes, error) {
	if from.Edges <= smallEdges && from.Count <= 2*smallEdges ||
		e.meta.Labels != nil { // new nodes have rows
		return nil, ingest.ErrNoLevel
	}
	if e.meta.IDs.Kind != kv.IDsDense || from.Ints == nil {
		return e.byName(ctx, from)
	}
	deleted, err := e.store.Deleted(ctx)
	if err != nil {
		return nil, err
	}
	l := &ingest.LevelNodes{Set: roaring.New()}
	fresh, some := uint64(0), make([]uint32, 0, chunk)
	err = from.Ints(func(id uint64) error {
		switch {
		case id >= e.meta.Nodes:
			name := strconv.FormatUint(id, 10)
			if err := checkNew(e.meta, name, fresh, false); err != nil {
				return err
			}
			fresh++
		case deleted != nil && deleted.Contains(uint32(id)):
			return errDeleted(strconv.FormatUint(id, 10))
		default:
			l.Below++
		}
		if some = append(some, uint32(id)); len(some) == chunk {
			l.Set.AddMany(some)
			some = some[:0]
		}
		return nil
	})
	l.Set.AddMany(some)
	l.Set.RunOptimize()
	return l, err
}

// byName looks ids up as text, many together.
func (e entering) byName(ctx context.Context, from *ingest.LevelIDs) (l *ingest.LevelNodes,
	err error) {
	held := mem.NewAccount(e.budget, "nodes of sources")
	defer held.Release()
	if err := held.AtLeast(12 * int64(from.Count)); err != nil {
		return nil, err
	}
	all := openfiles.New(e.store, e.dev, e.budget)
	defer func() { err = errors.Join(err, all.Close()) }()
	known, err := all.IDs(ctx, 0)
	if err != nil {
		return nil, err
	}
	var there []uint64 // node of the store<<32 | number of the sources
	l = &ingest.LevelNodes{Of: make([]uint32, from.Count), Set: roaring.New()}
	number, fresh := uint32(0), uint64(0)
	find := &finder{known: known, most: findMost(e.budget), fn: func(name string,
		node int64) error {
		number++
		switch {
		case node == ids.Deleted:
			return errDeleted(name)
		case node >= 0:
			there = append(there, uint64(node)<<32|uint64(number-1))
			return nil
		}
		err := checkNew(e.meta, name, fresh, false)
		l.Of[number-1] = absent
		fresh++
		return err
	}}
	if from.Texts != nil {
		err = from.Texts(func(external []byte) error { return find.add(ctx, external) })
	} else {
		var text []byte
		err = from.Ints(func(id uint64) error {
			text = strconv.AppendUint(text[:0], id, 10)
			return find.add(ctx, text)
		})
	}
	if err == nil {
		err = find.flush(ctx)
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(there)
	l.Below = uint64(len(there))
	for i, pair := range there {
		l.Of[uint32(pair)] = uint32(i)
		l.Set.Add(uint32(pair >> 32))
	}
	next := uint32(l.Below)
	for i, at := range l.Of {
		if at == absent {
			l.Of[i] = next
			next++
		}
	}
	l.Set.AddRange(e.meta.Nodes, e.meta.Nodes+fresh)
	l.Set.RunOptimize()
	return l, nil
}

// checkNew fails unless a store can take a node by its id, after fresh others.
func checkNew(m *kv.Meta, name string, fresh uint64, hasRow bool) error {
	next := m.Nodes + fresh
	_, err := strconv.ParseUint(name, 10, 64)
	switch {
	case next >= layout.MaxNodes:
		return input.Usage("a store has at most %d nodes", uint64(layout.MaxNodes))
	case m.IDs.Kind == kv.IDsDense && name != strconv.FormatUint(next, 10):
		return input.Usage("node %s: ids of this store are row numbers, 0 to %d; the next new "+
			"node is %d", name, m.Nodes-1, next)
	case m.IDs.Kind == kv.IDsInteger && err != nil:
		return input.Usage("node %q: ids of this store are integers", name)
	case len(m.Features) > 0 && !hasRow:
		return input.Usage("node %s is new, and has no row of features: the store has %d for each "+
			"node", name, m.Features[0].Dim)
	}
	return nil
}

func errDeleted(name string) error {
	return input.Usage("node %s was deleted: its id is not given again", name)
}

// finder finds the nodes of ids, many together: then each block of a dictionary is read once.
type finder struct {
	known ids.Dictionary
	most  int                                 // ids that are found together
	fn    func(name string, node int64) error // gets them in order, with what InternalMany gives
	heap  []byte
	ends  []int
	nodes []int64
}

// findBytes is about what an id takes in memory while it is looked up.
const findBytes = 128

// findMost returns how many ids are looked up together, as memory allows.
func findMost(budget *mem.Budget) int {
	return int(min(max(budget.Free()/(4*findBytes), chunk), 1<<20))
}

// add looks an id up, at once or later.
func (f *finder) add(ctx context.Context, external []byte) error {
	f.heap = append(f.heap, external...)
	f.ends = append(f.ends, len(f.heap))
	if len(f.ends) < f.most && len(f.heap) < f.most*findBytes/4 {
		return nil
	}
	return f.flush(ctx)
}

// flush looks up what was added.
func (f *finder) flush(ctx context.Context) error {
	text, names, first := string(f.heap), make([]string, len(f.ends)), 0
	for i, end := range f.ends {
		names[i], first = text[first:end], end
	}
	f.heap, f.ends = f.heap[:0], f.ends[:0]
	f.nodes = slices.Grow(f.nodes[:0], len(names))[:len(names)]
	if err := ids.InternalMany(ctx, f.known, names, f.nodes); err != nil {
		return fmt.Errorf("look ids up: %w", err)
	}
	for i, name := range names {
		if err := f.fn(name, f.nodes[i]); err != nil {
			return err
		}
	}
	return ctx.Err()
}
