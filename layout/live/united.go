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
	"gdb/layout/ingest/steps"
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
	var heap []*entryStream
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
	removed := &u.union.removed
	if dir == layout.Out {
		removed = new(uint64) // in-lists have counted
	}
	for _, l := range u.levels {
		s := newEntryStream(l, u.union)
		all = append(all, s)
		work.Go(func() {
			defer bug.Catch()
			s.read(ctx, u.dev, dir)
		})
	}
	for _, s := range all {
		if s.next(removed) {
			heap = append(heap, s)
		}
	}
	for i := len(heap) / 2; i >= 0; i-- {
		sift(heap, i)
	}
	c := &source.EdgeChunk{Where: source.Where{File: "levels", Unit: "edge"}}
	nodes, nbrs := &c.DstInt, &c.SrcInt
	if dir == layout.Out {
		nodes, nbrs = nbrs, nodes
	}
	for len(heap) > 0 {
		s := heap[0]
		*nodes, *nbrs = append(*nodes, s.key>>32), append(*nbrs, s.key&absent)
		s.run.attributes(s.i, c)
		if !s.next(removed) {
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
	return ctx.Err()
}

// sift moves stream i of a heap down to its place.
func sift(heap []*entryStream, i int) {
	for {
		least := i
		for _, k := range [2]int{2*i + 1, 2*i + 2} {
			if k < len(heap) && heap[k].key < heap[least].key {
				least = k
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

// entries are some entries of lists of a level: a node and a neighbor each, by the numbers that
// they get, and what they carry.
type entries struct {
	keys    []uint64
	by      []layout.EdgeKey // where levels take edges away
	types   []uint16
	weights []float32
	times   []int64
}

// attributes adds what entry i carries to a chunk.
func (e *entries) attributes(i int, c *source.EdgeChunk) {
	if e.types != nil {
		c.TypeInt = append(c.TypeInt, uint32(e.types[i]))
	}
	if e.weights != nil {
		c.Weight = append(c.Weight, e.weights[i])
	}
	if e.times != nil {
		c.Time = append(c.Time, e.times[i])
	}
}

// entryStream hands the entries of a level on, from a goroutine that reads them.
type entryStream struct {
	level unitedLevel
	union *union
	full  chan entries
	free  chan entries
	err   error // of reading; read after full is closed

	run entries // the entries that are handed on
	i   int     // the next of them
	key uint64  // and its key
}

// streamRuns is how many runs of entries a stream has, so that one is read while another is merged.
const streamRuns = 2

func newEntryStream(l unitedLevel, u *union) *entryStream {
	s := &entryStream{level: l, union: u, full: make(chan entries, streamRuns),
		free: make(chan entries, streamRuns), i: -1}
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
		e.keys, e.by = e.keys[:0], e.by[:0]
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
			s.keysOf(&e, first, lists, dir)
		}
		s.full <- e
		return nil
	})
}

// keysOf notes what tells the entries from others.
func (s *entryStream) keysOf(e *entries, first layout.NodeID, lists *listfile.Lists,
	dir layout.Direction) {
	of := func(v layout.NodeID) layout.NodeID {
		if s.level.of == nil {
			return v
		}
		return layout.NodeID(s.level.of[v])
	}
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
			e.by = append(e.by, key)
		}
	}
}

// next goes to the next entry that no later level takes away, and returns whether there is one. It
// counts those that are left out off removed.
func (s *entryStream) next(removed *uint64) bool {
	for {
		if s.i++; s.i >= len(s.run.keys) {
			if s.run.keys != nil {
				s.free <- s.run
			}
			run, more := <-s.full
			if !more {
				s.run.keys = nil
				return false
			}
			s.run, s.i = run, 0
		}
		if s.key = s.run.keys[s.i]; len(s.run.by) == 0 {
			return true
		}
		if by, is := s.union.last[s.run.by[s.i]]; !is || by <= s.level.at {
			return true
		}
		*removed--
	}
}

// whole returns the base and all levels of a store as one, and how much memory it takes beside
// that of streams; nil if all take more than some bytes. The caller frees its union.
func whole(ctx context.Context, w *work, most int64) (all *united, held int64, err error) {
	levels, streams := w.store.Lists(), int64(streamBytes)
	for _, l := range levels {
		if l.Held != nil {
			return nil, 0, nil
		}
		streams += levelBytes(l)
		if held += 4 * int64(l.Meta().Nodes); l.Of.Gone {
			held += int64(l.Meta().Edges) * unitedBytes
		}
	}
	if held+streams > most {
		return nil, 0, nil
	}
	u, of, err := unite(ctx, w.dev, 0, levels)
	if err != nil {
		return nil, 0, err
	}
	all = &united{dev: w.dev, union: u, levels: []unitedLevel{
		{Level: &layout.Level{Store: w.store.Base()}, at: -1}}}
	for i, l := range levels {
		if !l.Of.Gone {
			all.levels = append(all.levels, unitedLevel{l, i, of[i], of[i]})
		}
	}
	return all, max(held, held+streams-steps.BufferBytesMin), nil
}
