package live

import (
	"context"
	"errors"
	"sync"

	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/listfile"
)

// united are levels of edges as one, which ingest reads in the order of lists: a goroutine reads
// each level, and their lists are merged as they come.
type united struct {
	*addition // nil where nothing but lists is read
	dev       blockdev.Device
	union     *union
	levels    []unitedLevel
}

// unitedLevel is a level of edges.
type unitedLevel struct {
	*layout.Level
	at int      // its place among all levels that are merged, those too that take edges away
	of []uint32 // the nodes of the store, by number of the level; nil of its base
	to []uint32 // the numbers that they get; nil for those that they have
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
	return u.Lists(ctx, layout.In, fn)
}

// Lists merges the lists of all levels.
func (u *united) Lists(ctx context.Context, dir layout.Direction,
	fn func(*source.EdgeChunk) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	var heap []headEntry
	var all []*entryStream
	defer func() {
		cancel()
		work.Wait()
		for _, s := range all {
			if err == nil {
				err = s.err
			}
		}
	}()
	for _, l := range u.levels {
		s := newEntryStream(l, u.union)
		all = append(all, s)
		work.Go(func() {
			defer bug.Catch()
			s.read(ctx, u.dev, dir)
		})
	}
	for _, s := range all {
		if s.next() {
			heap = append(heap, headEntry{s.key(), s})
		}
	}
	for i := len(heap) / 2; i >= 0; i-- {
		sift(heap, i)
	}
	c := &source.EdgeChunk{Where: source.Where{File: "levels", Unit: "edge"}}
	for len(heap) > 0 {
		s := heap[0].of
		s.take(c, dir, nextKey(heap))
		if s.i < len(s.run.keys) || s.next() {
			heap[0].key = s.key()
		} else {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		sift(heap, 0)
		if len(c.SrcInt) < chunk && len(heap) > 0 {
			continue
		}
		if err := errors.Join(ctx.Err(), fn(c)); err != nil {
			return err
		}
		c.SrcInt, c.DstInt, c.TypeInt = c.SrcInt[:0], c.DstInt[:0], c.TypeInt[:0]
		c.Weight, c.Time = c.Weight[:0], c.Time[:0]
	}
	for _, s := range all {
		if dir == layout.In { // out-lists have the same edges
			u.union.removed -= s.removed
		}
	}
	return ctx.Err()
}

// headEntry is the next entry of a stream in a heap.
type headEntry struct {
	key uint64
	of  *entryStream
}

// nextKey returns the least key of the streams of a heap but the first.
func nextKey(heap []headEntry) uint64 {
	least := ^uint64(0)
	for i := range heap[1:min(3, len(heap))] {
		least = min(least, heap[1+i].key)
	}
	return least
}

// sift moves entry i of a heap down to its place.
func sift(heap []headEntry, i int) {
	if i >= len(heap) {
		return
	}
	moved := heap[i]
	for {
		k := 2*i + 1
		if k >= len(heap) {
			break
		}
		if k+1 < len(heap) && heap[k+1].key < heap[k].key {
			k++
		}
		if heap[k].key >= moved.key {
			break
		}
		heap[i] = heap[k]
		i = k
	}
	heap[i] = moved
}

// entries are some entries of lists of a level: a node and a neighbor each, by the numbers that
// they get, and what they carry.
type entries struct {
	keys    []uint64
	types   []uint16
	weights []float32
	times   []int64
}

// entryStream hands the entries of a level on, from a goroutine that reads them.
type entryStream struct {
	level unitedLevel
	union *union
	full  chan entries
	free  chan entries
	// These are read after full is closed.
	err     error  // of reading
	removed uint64 // entries that later levels take away

	run entries // the entries that are handed on
	i   int     // the next of them
}

// streamRuns is how many runs of entries a stream has, so that one is read while another is merged.
const streamRuns = 2

func newEntryStream(l unitedLevel, u *union) *entryStream {
	s := &entryStream{level: l, union: u, full: make(chan entries, streamRuns),
		free: make(chan entries, streamRuns)}
	for range streamRuns {
		s.free <- entries{}
	}
	return s
}

// read reads all lists.
func (s *entryStream) read(ctx context.Context, dev blockdev.Device, dir layout.Direction) {
	defer close(s.full)
	l := s.level
	s.err = listfile.Scan(ctx, l.Store, dev, dir, func(first layout.NodeID, _ bool,
		lists *listfile.Lists) error {
		if len(lists.Nbrs) == 0 {
			return nil
		}
		var e entries
		select {
		case e = <-s.free:
		case <-ctx.Done():
			return ctx.Err()
		}
		e.keys = e.keys[:0]
		for i := range len(lists.Off) - 1 {
			nbrs, node := lists.Nbrs[lists.Off[i]:lists.Off[i+1]], uint64(first)+uint64(i)
			if l.to == nil {
				for _, u := range nbrs {
					e.keys = append(e.keys, node<<32|uint64(u))
				}
				continue
			}
			node = uint64(l.to[node]) << 32
			for _, u := range nbrs {
				e.keys = append(e.keys, node|uint64(l.to[u]))
			}
		}
		e.types = append(e.types[:0], lists.Types...)
		e.weights = append(e.weights[:0], lists.Weights...)
		e.times = append(e.times[:0], lists.Times...)
		if len(s.union.last) > 0 {
			s.leaveOut(&e, first, lists, dir)
		}
		s.full <- e
		return nil
	})
}

// leaveOut leaves out the entries that a later level takes away.
func (s *entryStream) leaveOut(e *entries, first layout.NodeID, lists *listfile.Lists,
	dir layout.Direction) {
	of := func(v layout.NodeID) layout.NodeID {
		if s.level.of == nil {
			return v
		}
		return layout.NodeID(s.level.of[v])
	}
	to := uint64(0)
	for i := range len(lists.Off) - 1 {
		v := of(first + layout.NodeID(i))
		for k := lists.Off[i]; k < lists.Off[i+1]; k++ {
			key := layout.EdgeKey{Src: of(lists.Nbrs[k]), Dst: v}
			if dir == layout.Out {
				key.Src, key.Dst = v, key.Src
			}
			if lists.Types != nil {
				key.Type = lists.Types[k]
			}
			if lists.Times != nil {
				key.Time = lists.Times[k]
			}
			if by, is := s.union.last[key]; !is || by <= s.level.at {
				e.move(to, k)
				to++
			}
		}
	}
	s.removed += uint64(len(e.keys)) - to
	e.cut(to)
}

// move copies entry from to entry to.
func (e *entries) move(to, from uint64) {
	e.keys[to] = e.keys[from]
	if len(e.types) > 0 {
		e.types[to] = e.types[from]
	}
	if len(e.weights) > 0 {
		e.weights[to] = e.weights[from]
	}
	if len(e.times) > 0 {
		e.times[to] = e.times[from]
	}
}

// cut drops all but the first n entries.
func (e *entries) cut(n uint64) {
	e.keys = e.keys[:n]
	e.types = e.types[:min(n, uint64(len(e.types)))]
	e.weights = e.weights[:min(n, uint64(len(e.weights)))]
	e.times = e.times[:min(n, uint64(len(e.times)))]
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

// take moves entries to a chunk: the next one, and those after it in the run up to a key.
func (s *entryStream) take(c *source.EdgeChunk, dir layout.Direction, most uint64) {
	from, end, keys := s.i, s.i+1, s.run.keys
	for end < len(keys) && keys[end] <= most {
		end++
	}
	nodes, nbrs := &c.DstInt, &c.SrcInt
	if dir == layout.Out {
		nodes, nbrs = nbrs, nodes
	}
	for _, key := range keys[from:end] {
		*nodes, *nbrs = append(*nodes, key>>32), append(*nbrs, key&absent)
	}
	if len(s.run.types) > 0 {
		for _, t := range s.run.types[from:end] {
			c.TypeInt = append(c.TypeInt, uint32(t))
		}
	}
	if len(s.run.weights) > 0 {
		c.Weight = append(c.Weight, s.run.weights[from:end]...)
	}
	if len(s.run.times) > 0 {
		c.Time = append(c.Time, s.run.times[from:end]...)
	}
	s.i = end
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
	all := &united{dev: w.dev, union: u, levels: []unitedLevel{
		{Level: &layout.Level{Store: w.store.Base()}, at: -1}}}
	for i, l := range levels {
		if !l.Of.Gone {
			all.levels = append(all.levels, unitedLevel{l, i, of[i], of[i]})
		}
	}
	return all, nil
}
