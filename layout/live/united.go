package live

import (
	"context"
	"slices"
	"sort"
	"sync"

	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/stream"
	"gdb/layout/listfile"
)

// united are levels of edges as one, with the base of a store or without, which ingest reads in the
// order of lists. A goroutine reads each level, another merges their entries, and the caller's
// merges these with the lists of the base, most of which are copied as they are.
type united struct {
	*addition // nil where nothing but lists is read
	dev       blockdev.Device
	union     *union
	base      *layout.Store // nil where levels alone are united
	levels    []unitedLevel
}

// unitedLevel is a level of edges.
type unitedLevel struct {
	*layout.Level
	at int      // its place among all levels that are merged, those too that take edges away
	of []uint32 // the nodes of the store, by number of the level
	to []uint32 // the numbers that they get
}

var _ ingest.Sorted = (*united)(nil)

// add adds a level, whose nodes are of.
func (u *united) add(l *layout.Level, at int, of []uint32) {
	to, next := make([]uint32, len(of)), 0
	for i, v := range of {
		if uint64(v) >= u.first {
			to[i] = uint32(uint64(len(u.old)) + uint64(v) - u.first)
			continue
		}
		for u.old[next] < v {
			next++
		}
		to[i] = uint32(next)
	}
	u.levels = append(u.levels, unitedLevel{l, at, of, to})
}

// Edges streams the edges in the order of in-lists.
func (u *united) Edges(ctx context.Context, fn func(*source.EdgeChunk) error) error {
	c := &source.EdgeChunk{Where: source.Where{File: "levels", Unit: "edge"}}
	return u.Lists(ctx, layout.In, func(r *stream.ListRun) error {
		ingest.EdgesOf(r, layout.In, c)
		return fn(c)
	})
}

// Lists merges the lists of the base and of all levels.
func (u *united) Lists(ctx context.Context, dir layout.Direction,
	fn func(*stream.ListRun) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	var readers []*levelReader
	defer func() {
		cancel()
		work.Wait()
		for _, r := range readers {
			if err == nil {
				err = r.err
			}
		}
	}()
	start := func(do func()) {
		work.Go(func() {
			defer bug.Catch()
			do()
		})
	}
	var streams []*entryStream
	for _, l := range u.levels {
		r := &levelReader{unitedLevel: l, union: u.union, entryStream: newEntryStream()}
		readers, streams = append(readers, r), append(streams, r.entryStream)
		start(func() { r.read(ctx, u.dev, dir) })
	}
	for len(streams) != 1 { // a tree: what two became is merged after all that wait
		to := newEntryStream()
		some := streams[:min(2, len(streams))]
		start(func() { mergeStreams(ctx, some, to) })
		streams = append(streams[len(some):], to)
	}
	m := &baseMerge{runs: stream.NewListRuns(fn), union: u.union, dir: dir, levels: streams[0]}
	if m.more = m.levels.next(); u.base != nil {
		err = listfile.Scan(ctx, u.base, u.dev, dir, m.lists)
	}
	if err == nil {
		err = m.finish()
	}
	if err != nil {
		return err
	}
	if dir == layout.In { // out-lists have the same edges
		for _, r := range readers {
			u.union.removed -= r.removed
		}
	}
	return ctx.Err()
}

// mergeStreams merges up to two streams to one.
func mergeStreams(ctx context.Context, streams []*entryStream, to *entryStream) {
	defer close(to.full)
	var from []*entryStream
	for _, s := range streams {
		if s.next() {
			from = append(from, s)
		}
	}
	for len(from) > 0 {
		e, ok := to.empty(ctx)
		if !ok {
			return
		}
		for len(from) > 0 && len(e.keys) < streamEntries {
			if len(from) == 1 {
				from[0].take(&e, ^uint64(0))
			} else if a, b := from[0], from[1]; !a.run.carry() && !b.run.carry() {
				mergeKeys(&e, a, b)
			} else if a.key() <= b.key() {
				a.take(&e, b.key())
			} else {
				b.take(&e, a.key())
			}
			from = slices.DeleteFunc(from, func(s *entryStream) bool {
				return s.i == len(s.run.keys) && !s.next()
			})
		}
		to.full <- e
	}
}

// mergeKeys moves entries without values from two streams, up to streamEntries of each, until one
// has no more.
func mergeKeys(to *entries, a, b *entryStream) {
	x, y := a.run.keys[a.i:], b.run.keys[b.i:]
	x, y = x[:min(len(x), streamEntries)], y[:min(len(y), streamEntries)]
	most := min(x[len(x)-1], y[len(y)-1])
	x, y = notAbove(x, most), notAbove(y, most)
	a.i, b.i = a.i+len(x), b.i+len(y)
	from, n := len(to.keys), len(x)+len(y)
	to.keys = slices.Grow(to.keys, n)[:from+n]
	extsort.MergeTwo(to.keys[from:], x, y)
}

// notAbove returns the keys that are not above most.
func notAbove(keys []uint64, most uint64) []uint64 {
	return keys[:sort.Search(len(keys), func(i int) bool { return keys[i] > most })]
}

// baseMerge merges the lists of a base with the entries of levels.
type baseMerge struct {
	runs   *stream.ListRuns
	levels *entryStream
	more   bool // levels has another entry
	union  *union
	dir    layout.Direction
	taken  listfile.Lists
}

// lists merges lists of the base, the first of which belongs to node first. They are all lists up
// to the last one, which may go on in the next call.
func (m *baseMerge) lists(first layout.NodeID, _ bool, l *listfile.Lists) error {
	n := len(l.Off) - 1
	// The last list may go on, with neighbors from its last one here on.
	last := (uint64(first)+uint64(n)-1)<<32 | absent
	if l.Off[n-1] < l.Off[n] {
		last = last&^absent | uint64(l.Nbrs[l.Off[n]-1])
	}
	if len(m.union.last) > 0 {
		m.union.leaveOut(l, func(v layout.NodeID) layout.NodeID { return v }, first,
			m.dir, baseLevel)
	}
	for i := 0; i < n; {
		v := first + layout.NodeID(i)
		if err := m.before(v); err != nil {
			return err
		}
		end := n
		if m.more {
			end = int(min(uint64(n), m.levels.key()>>32-uint64(first)))
		}
		if i < end {
			m.runs.AddLists(first, l, i, end)
			i = end
		} else {
			most := min(last, uint64(v)<<32|absent)
			if err := m.list(v, l, l.Off[i], l.Off[i+1], most); err != nil {
				return err
			}
			i++
		}
		if err := m.runs.Pass(); err != nil {
			return err
		}
	}
	return nil
}

// before adds the entries of levels before the list of node v.
func (m *baseMerge) before(v layout.NodeID) error {
	for m.more && m.levels.key() < uint64(v)<<32 {
		m.take(uint64(v)<<32 - 1)
		if err := m.runs.Pass(); err != nil {
			return err
		}
	}
	return nil
}

// list merges entries from … to-1 of l with those of levels up to a key, all of the list of node v.
func (m *baseMerge) list(v layout.NodeID, l *listfile.Lists, from, to, most uint64) error {
	for m.more && m.levels.key() <= most {
		if !m.levels.run.carry() {
			keys := m.levels.upTo(most)
			end := from // of the entries that are not after these keys
			last := layout.NodeID(keys[len(keys)-1])
			for end < to && l.Nbrs[end] <= last {
				end++
			}
			m.runs.MergeIDs(v, l.Nbrs[from:end], keys)
			m.pass(len(keys))
			from = end
		} else {
			at, nbr := from, layout.NodeID(m.levels.key())
			for from < to && l.Nbrs[from] <= nbr {
				from++
			}
			if at < from {
				m.runs.Add(v, l, at, from)
			}
			next := most
			if from < to {
				next = min(next, uint64(v)<<32|uint64(l.Nbrs[from]))
			}
			m.take(next)
		}
		if err := m.runs.Pass(); err != nil {
			return err
		}
	}
	if from < to {
		m.runs.Add(v, l, from, to)
	}
	return nil
}

// take adds entries of levels up to a key, as many as there are together.
func (m *baseMerge) take(most uint64) {
	keys, of := m.levels.upTo(most), &m.taken
	m.levels.lists(len(keys), of)
	for from := 0; from < len(keys); {
		to := from + 1
		for to < len(keys) && keys[to]>>32 == keys[from]>>32 {
			to++
		}
		m.runs.Add(layout.NodeID(keys[from]>>32), of, uint64(from), uint64(to))
		from = to
	}
	m.pass(len(keys))
}

// pass passes entries of levels.
func (m *baseMerge) pass(entries int) {
	s := m.levels
	if s.i += entries; s.i == len(s.run.keys) {
		m.more = s.next()
	}
}

// finish adds what is left of the levels.
func (m *baseMerge) finish() error {
	for m.more {
		m.take(^uint64(0))
		if err := m.runs.Pass(); err != nil {
			return err
		}
	}
	return m.runs.Flush()
}

// entries are some entries of lists of a level: a node and a neighbor each, by the numbers that
// they get, and what they carry.
type entries struct {
	keys    []uint64
	types   []uint16
	weights []float32
	times   []int64
}

// carry reports whether entries have types, weights or times.
func (e *entries) carry() bool { return len(e.types)+len(e.weights)+len(e.times) > 0 }

// entryStream hands entries on from a goroutine to another.
type entryStream struct {
	full chan entries
	free chan entries

	run entries // the entries that are handed on
	i   int     // the next of them
}

// streamRuns is how many runs of entries a stream has, so that one is read while another is merged,
// and streamEntries at how many entries a run is full that streams are merged to.
const streamRuns, streamEntries = 2, 1 << 13

func newEntryStream() *entryStream {
	s := &entryStream{full: make(chan entries, streamRuns), free: make(chan entries, streamRuns)}
	for range streamRuns {
		s.free <- entries{}
	}
	return s
}

// empty returns entries to be filled, none of which is there yet; not ok if ctx is done.
func (s *entryStream) empty(ctx context.Context) (e entries, ok bool) {
	select {
	case e = <-s.free:
		e.cut(0)
		return e, true
	case <-ctx.Done():
		return e, false
	}
}

// next goes to the next run that has entries, and returns whether there is one.
func (s *entryStream) next() bool {
	for {
		if s.run.keys != nil {
			s.free <- s.run
		}
		run, more := <-s.full
		s.run, s.i = run, 0
		if !more || len(run.keys) > 0 {
			return more
		}
	}
}

// key returns the key of the next entry.
func (s *entryStream) key() uint64 { return s.run.keys[s.i] }

// upTo returns the keys of the run from the next entry on that are not above a key.
func (s *entryStream) upTo(most uint64) []uint64 {
	keys := s.run.keys[s.i:]
	end := 0
	for end < len(keys) && keys[end] <= most {
		end++
	}
	return keys[:end]
}

// lists sets l to the next entries, as many as count says, without where lists begin. They share
// memory but for neighbors.
func (s *entryStream) lists(count int, l *listfile.Lists) {
	e, to := &s.run, s.i+count
	l.Nbrs = mem.Resize(l.Nbrs, count)
	for i, key := range e.keys[s.i:to] {
		l.Nbrs[i] = layout.NodeID(key)
	}
	if len(e.types) > 0 {
		l.Types = e.types[s.i:to]
	}
	if len(e.weights) > 0 {
		l.Weights = e.weights[s.i:to]
	}
	if len(e.times) > 0 {
		l.Times = e.times[s.i:to]
	}
}

// take moves entries to others: the next one, and those after it in the run up to a key.
func (s *entryStream) take(to *entries, most uint64) {
	from, end := s.i, s.i+max(1, len(s.upTo(most)))
	to.keys = append(to.keys, s.run.keys[from:end]...)
	if len(s.run.types) > 0 {
		to.types = append(to.types, s.run.types[from:end]...)
	}
	if len(s.run.weights) > 0 {
		to.weights = append(to.weights, s.run.weights[from:end]...)
	}
	if len(s.run.times) > 0 {
		to.times = append(to.times, s.run.times[from:end]...)
	}
	s.i = end
}

// levelReader reads the lists of a level to a stream.
type levelReader struct {
	unitedLevel
	*entryStream
	union *union
	// These are read after full is closed.
	err     error  // of reading
	removed uint64 // entries that later levels take away
}

// read reads all lists.
func (r *levelReader) read(ctx context.Context, dev blockdev.Device, dir layout.Direction) {
	defer close(r.full)
	r.err = listfile.Scan(ctx, r.Store, dev, dir, func(first layout.NodeID, _ bool,
		lists *listfile.Lists) error {
		if len(lists.Nbrs) == 0 {
			return nil
		}
		if len(r.union.last) > 0 {
			r.removed += r.union.leaveOut(lists, func(v layout.NodeID) layout.NodeID {
				return layout.NodeID(r.of[v])
			}, first, dir, r.at)
			if len(lists.Nbrs) == 0 {
				return nil
			}
		}
		e, ok := r.empty(ctx)
		if !ok {
			return ctx.Err()
		}
		e.keys = mem.Resize(e.keys, len(lists.Nbrs))
		for i, u := range lists.Nbrs { // first all of these, whose cache misses overlap so
			e.keys[i] = uint64(r.to[u])
		}
		for i, v := range r.to[first:][:len(lists.Off)-1] {
			for k := lists.Off[i]; k < lists.Off[i+1]; k++ {
				e.keys[k] |= uint64(v) << 32
			}
		}
		e.types = append(e.types, lists.Types...)
		e.weights = append(e.weights, lists.Weights...)
		e.times = append(e.times, lists.Times...)
		r.full <- e
		return nil
	})
}

// baseLevel is the place of the base before the levels.
const baseLevel = -1

// leaveOut leaves entries of lists out that a level after level at takes away, and returns how many
// these are. of returns the node of the store that has a number in the lists.
//
//lint:parameters lists, where they are, and whose numbers they have
func (u *union) leaveOut(l *listfile.Lists, of func(layout.NodeID) layout.NodeID,
	first layout.NodeID, dir layout.Direction, at int) (left uint64) {
	to, from := uint64(0), uint64(0)
	for i := range len(l.Off) - 1 {
		v, end := of(first+layout.NodeID(i)), l.Off[i+1]
		for k := from; k < end; k++ {
			key := layout.EdgeKey{Src: of(l.Nbrs[k]), Dst: v}
			if dir == layout.Out {
				key.Src, key.Dst = v, key.Src
			}
			if len(l.Types) > 0 {
				key.Type = l.Types[k]
			}
			if len(l.Times) > 0 {
				key.Time = l.Times[k]
			}
			if by, is := u.last[key]; !is || by <= at {
				move(l, to, k)
				to++
			}
		}
		from, l.Off[i+1] = end, to
	}
	left = uint64(len(l.Nbrs)) - to
	l.Nbrs = l.Nbrs[:to]
	l.Types = l.Types[:min(to, uint64(len(l.Types)))]
	l.Weights = l.Weights[:min(to, uint64(len(l.Weights)))]
	l.Times = l.Times[:min(to, uint64(len(l.Times)))]
	return left
}

// move copies entry from of lists to entry to.
func move(l *listfile.Lists, to, from uint64) {
	l.Nbrs[to] = l.Nbrs[from]
	if len(l.Types) > 0 {
		l.Types[to] = l.Types[from]
	}
	if len(l.Weights) > 0 {
		l.Weights[to] = l.Weights[from]
	}
	if len(l.Times) > 0 {
		l.Times[to] = l.Times[from]
	}
}

// cut drops all but the first n entries.
func (e *entries) cut(n uint64) {
	e.keys = e.keys[:n]
	e.types = e.types[:min(n, uint64(len(e.types)))]
	e.weights = e.weights[:min(n, uint64(len(e.weights)))]
	e.times = e.times[:min(n, uint64(len(e.times)))]
}

// wholeBytes returns what reading base and levels of a store as one takes in memory: what is held,
// and what streams take beside it.
func wholeBytes(s *layout.Store) (held, streams int64) {
	streams = streamBytes
	for _, l := range s.Lists() {
		streams += levelBytes(l)
		if held += 4 * int64(l.Meta().Nodes); l.Of.Gone {
			held += int64(l.Meta().Edges) * unitedBytes
		}
	}
	return held, streams
}

// whole returns the base and all levels of a store as one. The caller frees its union.
func whole(ctx context.Context, w *work) (*united, error) {
	levels := w.store.Lists()
	u, of, err := unite(ctx, w.dev, 0, levels)
	if err != nil {
		return nil, err
	}
	all := &united{dev: w.dev, union: u, base: w.store.Base()}
	for i, l := range levels {
		if !l.Of.Gone {
			all.levels = append(all.levels, unitedLevel{l, i, of[i], of[i]})
		}
	}
	return all, nil
}
