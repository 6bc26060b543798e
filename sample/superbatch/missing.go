package superbatch

import (
	"context"
	"errors"
	"iter"
	"math/bits"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/internal/pace"
)

// missing collects which nodes each batch of a span misses, as keys node<<32 | list, where list is
// the batch's index in the span. The keys are written to disk, dealt out by node range, so that
// memory does not grow with their number; those of a range are later read at once and sorted.
// Ranges are cut so that each has about the same number of nodes of the first list, since batches
// are alike.
type missing struct {
	out   *fileWriter
	file  *fileReader
	nodes uint64   // of the graph
	first []uint32 // first node of each range, ascending from 0
	// place has the range of the first of each 1<<shift nodes.
	place [1 << placeBits]uint16
	shift int
	refs  [][]ref // records of each range
	held  mem.Account
	lists uint32

	room []uint64 // collected keys, a part of equal length for each range
	fill []int    // number of collected keys of each range

	reads *readBuffer
	err   error // the first error of reading
}

const (
	// missingRecord bounds the keys of a range that are collected before they are written, and
	// missingRecordLeast is the least number, a page of them.
	missingRecord, missingRecordLeast = 8 << 10, 512
	// missingRangesMost bounds the number of ranges.
	missingRangesMost = 1 << 10
	// placeBits is the logarithm of the number of places at which a node's range is looked up.
	placeBits = 12
	// missingReads is the number of records that are read at once.
	missingReads = 16
	// missingBytes bounds the bytes on disk that a missed row takes besides the row itself: its
	// key, and its part of records that are not full.
	missingBytes = 9
	// missingPerRange is the memory of a range, in bytes.
	missingPerRange = 4 + 24 + 8
)

// newMissing begins to collect the given number of keys of a graph of some nodes. As many as atOnce
// fit in memory when they are read. It collects them in room.
func newMissing(id identity, nodes, keys uint64, atOnce int, room []uint64,
	budget *mem.Budget) (*missing, error) {
	m := &missing{room: room, nodes: nodes, held: mem.NewAccount(budget, "superbatch rows")}
	ranges := 1
	if keys > uint64(atOnce) { // half of what fits is wanted: ranges are not equal
		ranges = int(min(2*keys/uint64(max(1, atOnce))+1, missingRangesMost,
			uint64(max(1, len(room)/missingRecordLeast))))
	}
	if err := m.held.Add(missingPerRange * int64(ranges)); err != nil {
		return nil, err
	}
	m.refs, m.fill = make([][]ref, ranges), make([]int, ranges)
	var err error
	if m.out, err = id.Create(kindMissing); err != nil {
		m.held.Release()
		return nil, err
	}
	return m, nil
}

// cut sets where ranges begin, from the nodes of the first list in ascending order.
func (m *missing) cut(nodes []uint64) {
	m.first = make([]uint32, len(m.refs))
	for r := range m.first[1:] {
		m.first[r+1] = uint32(nodes[(r+1)*len(nodes)/len(m.first)])
	}
	m.shift = max(0, bits.Len64(m.nodes-1)-placeBits)
	r := 0
	for p := range m.place {
		r = m.from(r, uint64(p)<<m.shift)
		m.place[p] = uint16(r)
	}
}

// from returns the range of a node, which is r or after it.
func (m *missing) from(r int, node uint64) int {
	for r+1 < len(m.first) && node >= uint64(m.first[r+1]) {
		r++
	}
	return r
}

// perRange returns how many keys of a range are collected before they are written.
func (m *missing) perRange() int { return min(missingRecord, len(m.room)/len(m.refs)) }

// add adds the nodes that the next batch misses. It may change their order.
func (m *missing) add(nodes []uint64) error {
	if m.first == nil && len(nodes) > 0 {
		pace.RadixSort(nodes)
		m.cut(nodes)
	}
	per := m.perRange()
	for _, v := range nodes {
		r := m.from(int(m.place[v>>m.shift]), v)
		m.room[r*per+m.fill[r]] = v<<32 | uint64(m.lists)
		if m.fill[r]++; m.fill[r] == per {
			if err := m.flush(r); err != nil {
				return err
			}
		}
	}
	m.lists++
	return nil
}

// flush writes the collected keys of range r.
func (m *missing) flush(r int) (err error) {
	begin := r * m.perRange()
	keys := m.room[begin : begin+m.fill[r]]
	if len(keys) == 0 {
		return nil
	}
	m.fill[r] = 0
	at, err := m.out.Append(mem.BytesOf(keys))
	if err == nil {
		m.refs[r], err = push(&m.held, m.refs[r], at)
	}
	return err
}

// finish writes all keys. After it, room is free for other use, and chunks reads with the buffer
// reads.
func (m *missing) finish(ctx context.Context, c *Config, reads *readBuffer) (err error) {
	for r := range m.refs {
		if err := m.flush(r); err != nil {
			return err
		}
	}
	m.room, m.fill, m.reads = nil, nil, reads
	if err := m.out.Finish(); err != nil {
		return err
	}
	m.file, err = m.out.ID.Open(ctx, c.Device, kindMissing)
	return err
}

// close gives the memory back and removes the file. A nil missing has nothing to close.
func (m *missing) close() error {
	if m == nil {
		return nil
	}
	m.held.Release()
	if m.file != nil {
		return m.file.Drop()
	}
	return errors.Join(m.out.Abort(), m.out.ID.Remove(kindMissing))
}

// chunks yields the keys of the first lists, ascending, a range at a time or as much of it as a
// sorter of keys has room for, which must be at least one key per list. While some are used, the
// next are read and sorted. An error of reading ends it early and is left in m.err. Time: O(1) per
// key.
func (m *missing) chunks(ctx context.Context, lists int, keys []pace.Sorter) iter.Seq[[]uint64] {
	return func(yield func([]uint64) bool) {
		if m.err != nil {
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		full, empty := make(chan *pace.Sorter), make(chan *pace.Sorter, len(keys))
		for i := range keys {
			empty <- &keys[i]
		}
		done := make(chan struct{})
		var err error
		go func() {
			defer bug.Catch()
			defer close(done)
			defer close(full)
			err = m.readAll(ctx, lists, empty, full)
		}()
		for some := range full {
			if !yield(some.Keys) {
				cancel()
				<-done
				return
			}
			empty <- some // never blocks
		}
		cancel()
		m.err = err
	}
}

// readAll sends the keys of the first lists, range after range, with sorters from empty.
func (m *missing) readAll(ctx context.Context, lists int, empty <-chan *pace.Sorter,
	full chan<- *pace.Sorter) error {
	var keys *pace.Sorter
	for r := range m.first {
		first, end := uint64(m.first[r]), m.nodes
		if r+1 < len(m.first) {
			end = uint64(m.first[r+1])
		}
		for width := end - first; first < end; {
			if keys == nil {
				select {
				case keys = <-empty:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			fits, err := m.window(ctx, r, lists, first, min(end, first+width), keys)
			switch {
			case err != nil:
				return err
			case !fits:
				width = max(1, width/2)
				continue
			}
			first = min(end, first+width)
			if 2*len(keys.Keys) < cap(keys.Keys) {
				width *= 2
			}
			if err := keys.Sort(ctx); err != nil {
				return err
			}
			if len(keys.Keys) == 0 {
				continue
			}
			select {
			case full <- keys:
				keys = nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// window reads the keys of range r whose nodes are first … end-1, those of a node ascending. It
// returns fits false if keys has no room for them.
func (m *missing) window(ctx context.Context, r, lists int, first, end uint64,
	keys *pace.Sorter) (fits bool, err error) {
	got := keys.Keys[:0]
	for refs := m.refs[r]; len(refs) > 0; {
		var records [missingReads]record
		n := min(len(refs), len(records))
		for i, at := range refs[:n] {
			records[i] = record{File: m.file, At: at}
		}
		payloads, err := m.reads.Read(ctx, records[:n]...)
		if err != nil {
			return false, err
		}
		refs = refs[n:]
		for _, p := range payloads {
			for _, key := range mem.View[uint64](p) {
				if v := key >> 32; v < first || v >= end || int(uint32(key)) >= lists {
					continue
				}
				if len(got) == cap(got) {
					return false, nil
				}
				got = append(got, key)
			}
		}
	}
	keys.Keys = got
	return true, nil
}
