package superbatch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout/rowfile"
	"gdb/sample"
)

// span is consecutive batches of a superbatch whose missing rows are read in the same way.
type span struct {
	first   int    // index of its first batch in the superbatch
	end     uint64 // the step after the last
	rows    *packed
	reading Reading
}

// bytes returns the size of the rows that were swept for the span, 0 if none were.
func (p *span) bytes() int64 {
	if p.rows == nil {
		return 0
	}
	return p.reading.PackedBytes
}

func (p *span) close() {
	if p != nil && p.rows != nil {
		p.rows.close()
	}
}

// endSpan removes the rows of the current span.
func (s *superbatch) endSpan() {
	s.span.close()
	s.span = nil
}

// alongside says what goes on while a span is made: training on the span before, or nothing.
type alongside struct {
	free  float64 // seconds of a sweep that training hides
	bytes int64   // bytes of the same storage that the span in training takes
}

// spanAhead is a span that a goroutine decides on and, where that is worth it, sweeps for.
type spanAhead struct {
	*job[*span]
	fitted chan struct{} // closed when it takes no more memory
}

// beginSpan starts a goroutine that makes the span of s whose first batch is at step. Only one may
// be under way at a time.
func (b *builder) beginSpan(s *superbatch, step uint64, m alongside) *spanAhead {
	a := &spanAhead{fitted: make(chan struct{})}
	fitted := sync.OnceFunc(func() { close(a.fitted) })
	a.job = begin(func(ctx context.Context) (*span, error) {
		defer fitted()
		return b.makeSpan(ctx, s, step, m, fitted)
	})
	return a
}

// makeSpan takes as many batches from step on as memory and storage have room for, decides how the
// rows that they miss are read and, if that is by a sweep, sweeps. It calls fitted once it will
// take no more memory.
func (b *builder) makeSpan(ctx context.Context, s *superbatch, step uint64, m alongside,
	fitted func()) (*span, error) {
	begun := time.Now()
	w := &sweep{b: b, s: s, first: int(step - s.first), beside: m,
		rowBytes: b.cfg.Rows.Meta().RowBytes, fitted: fitted,
		held: mem.NewAccount(b.cfg.Budget, "superbatch rows"),
		buf:  readBuffer{Budget: b.cfg.Budget}}
	w.reading = Reading{Epoch: step / b.perEpoch, Batch: step % b.perEpoch}
	rows, err := w.run(ctx)
	if err = errors.Join(err, w.release()); err != nil {
		if rows != nil {
			rows.close()
		}
		return nil, fmt.Errorf("superbatch: sweep rows for batches from step %d: %w", step, err)
	}
	b.sweeping.Busy.Add(int64(time.Since(begun)))
	return &span{first: w.first, end: s.first + uint64(w.end), rows: rows, reading: w.reading}, nil
}

// sweeps reports whether a sweep may be made at all.
func (c *Config) sweeps() bool { return c.Costs != (Costs{}) }

const (
	// bufferLeast and bufferMost bound the bytes of a batch's rows that are collected before they
	// are written as a record. A disk reads 64 KiB at random as fast as in sequence.
	bufferLeast, bufferMost = 64 << 10, 1 << 20
	// readMost bounds the memory that a sweep reads to, in bytes.
	readMost = 8 << 20
	// keysMost bounds the memory of the keys that are swept for, in bytes: keyBytesAtOnce for each
	// of those that are used at once.
	keysMost = 4 << 20
	// keyBytes is the size of a key. While some are used, others are read, and each has as much
	// memory again to be sorted in.
	keyBytes       = 8
	keysAhead      = 2
	keyBytesAtOnce = keysAhead * 2 * keyBytes
	// recordsAhead is how many records may wait for being written while rows are collected, if the
	// memory has room for them.
	recordsAhead = 4
	// collectBytesPerNode is the memory to find what a batch misses, per node of the largest batch.
	// Collected rows take its place later.
	collectBytesPerNode = 24
	// collectLeast is the least memory for the keys that are collected while that is found.
	collectLeast = 64 << 10
	// collectReadPerNode is the memory of the records that are read to find this: two records of 4
	// bytes per node for each batch read at once, a quarter to spare, and all twice since the next
	// ones are read meanwhile.
	collectReadPerNode = 2 * 2 * 4 * batchesAtOnce * 5 / 4
	// weighBytesPerBatch is the memory per batch, in bytes, of the costs of its reads and of where
	// it stands, twice.
	weighBytesPerBatch = 192
	// filesShare says which part of the storage is for batches and their plans if there may be
	// sweeps: one in filesShare. Rows have the rest.
	filesShare = 4
)

// sweep holds the memory of deciding on a span and of sweeping for it.
type sweep struct {
	b          *builder
	s          *superbatch
	beside     alongside
	first, end int // indexes of batches in the superbatch
	misses     uint64
	rowBytes   int
	perRecord  int // rows
	ahead      int // records that may wait for being written
	reading    Reading
	fitted     func()

	arena     *mem.Arena
	missing   *missing
	buf       readBuffer             // records of batches, then of what they miss
	keys      [keysAhead]pace.Sorter // node<<32 | batch of the span, for parts of the missed rows
	read      []byte                 // memory that rows are read to
	collected []byte                 // rows that are not written yet, a part for each batch

	out    *fileWriter
	buffer []uint32 // for each batch: its buffer among collected, and (fill) the bytes there
	fill   []uint32
	next   []uint32 // the record of each batch that comes next
	full   chan fullBuffer
	empty  chan uint32 // buffers
	packed packed
	held   mem.Account
}

// run decides, and returns the rows if they were swept, else nil.
func (w *sweep) run(ctx context.Context) (*packed, error) {
	if !w.extend() {
		return nil, nil
	}
	if err := w.collect(ctx); err != nil {
		return nil, err
	}
	if worth, err := w.weigh(ctx); err != nil || !worth {
		return nil, err
	}
	if err := w.scatter(ctx); err != nil {
		return nil, err
	}
	w.b.sweeping.Done.Add(uint64(w.end - w.first))
	return &w.packed, nil
}

// weigh decides for how many of the span's batches a sweep is made, and reports whether for any.
func (w *sweep) weigh(ctx context.Context) (bool, error) {
	n := w.end - w.first
	if err := w.held.Add(weighBytesPerBatch * int64(n)); err != nil {
		return false, err
	}
	defer w.held.Release()
	packed := make([]rowfile.ReadCost, n)
	for i, r := range w.s.index[w.first:w.end] {
		packed[i] = rowfile.ReadCost{Reads: uint64(w.records(r.reads)),
			Bytes: w.recordBytes(r.reads)}
	}
	reading := map[int]Reading{}
	whole := load{packed: packed, free: w.beside.free}
	least := math.Inf(1) // of all
	part := func(batches float64) Weighed {
		k := int(batches)
		l := load{packed: packed[:k], free: w.beside.free}
		if k < n && w.b.cfg.Costs.leastWith(whole, k, w.b.cfg.SweepAhead) >= least {
			return Weighed{Packed: math.Inf(1)} // it need not be known how much more
		}
		l.once, l.apart = w.b.cfg.Rows.SweepCost(w.chunks(ctx, k), k)
		r := w.reading
		r.Batches, r.Rows = k, 0
		for _, refs := range w.s.index[w.first : w.first+k] {
			r.Rows += uint64(refs.reads)
		}
		weighed := w.b.cfg.Costs.weigh(l, &r)
		if reading[k] = r; k == n {
			whole, least = l, weighed.Once(w.beside.free)
		}
		return weighed
	}
	best := int(Part(float64(n), w.beside.free, w.b.cfg.SweepAhead, part))
	if w.missing.err != nil {
		return false, w.missing.err
	}
	if best == 0 {
		w.reading = reading[n]
		return false, nil
	}
	w.reading, w.end = reading[best], w.first+best
	return true, nil
}

// chunks yields the sorted keys of the span's first batches, some at a time.
func (w *sweep) chunks(ctx context.Context, batches int) iter.Seq[[]uint64] {
	return w.missing.chunks(ctx, batches, w.keys[:])
}

// extend sets the end of the span. It returns false if there is no room to sweep even for one
// batch, whose rows are then read one by one.
func (w *sweep) extend() bool {
	w.perRecord = rowsPerRecord(bufferLeast, w.rowBytes)
	room := w.room()
	disk := int64(0)
	for i := w.first; i < len(w.s.index); i++ {
		reads := w.s.index[i].reads
		misses, bytes := w.misses+uint64(reads), disk+w.storedBytes(reads)
		short := ""
		switch n := i + 1 - w.first; {
		case max(int64(n*w.perRecord*w.rowBytes), w.b.cfg.finding(w.s.listMost())) >
			collectBytes(w.b.cfg.SweepBytes):
			short = "memory"
		case bytes > room:
			short = "storage"
		}
		if short != "" && i > w.first {
			break
		}
		w.misses, disk, w.end = misses, bytes, i+1
		if short != "" {
			w.reading.Batches, w.reading.Rows = 1, w.misses
			w.reading.Why = "no " + short + " to sweep for a batch"
			return false
		}
	}
	n := w.end - w.first
	w.reading.Batches, w.reading.Rows = n, w.misses
	bytes := collectBytes(w.b.cfg.SweepBytes)
	most := min(bufferMost, bytes/int64(n+recordsAhead))
	w.perRecord = max(w.perRecord, rowsPerRecord(int(most), w.rowBytes))
	w.ahead = max(0, min(recordsAhead, int(bytes/int64(w.perRecord*w.rowBytes))-n))
	return true
}

// room returns how many bytes the rows of a span may take. Where the next span is swept for while
// these are still stored, that is half of the storage, unless all rows that are left fit beside the
// span before.
func (w *sweep) room() int64 {
	room := w.s.want.storage - w.s.batches.File.Size() - w.s.plans.File.Size()
	if !w.b.cfg.SweepAhead {
		return room
	}
	room -= w.beside.bytes
	left := int64(0)
	for _, r := range w.s.index[w.first:] {
		left += w.storedBytes(r.reads)
	}
	if left <= room {
		return room
	}
	return min(room, (room+w.beside.bytes)/2)
}

// rowsPerRecord returns how many rows a record of this many bytes holds, at least one.
func rowsPerRecord(bytes, rowBytes int) int {
	return max(1,
		(bytes-recordHead)/rowBytes)
}

// finding returns the memory to find what batches of this many nodes miss, in bytes.
func finding(nodes int) int64 { return collectBytesPerNode*int64(nodes) + collectLeast }

// finding does the same for batches of this many rows.
func (c *Config) finding(rows int) int64 {
	if c.Split == nil {
		return finding(rows)
	}
	return finding(rows) + 4*int64(rows)
}

// readBytes returns how much of a sweep's memory it reads to. Small reads are no better: the fewer
// are under way, the longer the disk waits while the processor has other work.
func readBytes(memory int64) int64 { return min(readMost, memory/4) &^ 4095 }

// keysBytes returns how much of a sweep's memory is for the keys that are swept for.
func keysBytes(memory int64) int64 { return min(keysMost, memory/8) &^ (keyBytesAtOnce - 1) }

// collectBytes returns how much of a sweep's memory is left for collecting rows.
func collectBytes(memory int64) int64 { return memory - readBytes(memory) - keysBytes(memory) }

// recordBytes returns the bytes on disk of the records of this many rows of a batch.
func (w *sweep) recordBytes(rows uint32) int64 {
	n := int64(rows)
	full, last := n/int64(w.perRecord), n%int64(w.perRecord)
	bytes := full * ref{Bytes: uint32(w.perRecord * w.rowBytes)}.DiskBytes()
	if last > 0 {
		bytes += ref{Bytes: uint32(int(last) * w.rowBytes)}.DiskBytes()
	}
	return bytes
}

// storedBytes returns recordBytes, and the bytes that the keys of these rows take on disk.
func (w *sweep) storedBytes(rows uint32) int64 {
	return w.recordBytes(rows) + missingBytes*int64(rows)
}

// records returns how many records this many rows of a batch take.
func (w *sweep) records(rows uint32) int { return (int(rows) + w.perRecord - 1) / w.perRecord }

// collect takes the sweep's memory and finds the rows that the batches miss.
func (w *sweep) collect(ctx context.Context) (err error) {
	n := w.end - w.first
	keys := max(keyBytesAtOnce*int64(n), min(keysBytes(w.b.cfg.SweepBytes),
		keyBytesAtOnce*int64(w.misses)))
	read := readBytes(w.b.cfg.SweepBytes)
	w.arena, err = mem.NewArena(w.b.cfg.Budget, "superbatch rows", read+keys+
		max(w.b.cfg.finding(w.s.listMost()), int64(n+w.ahead)*int64(w.perRecord*w.rowBytes)))
	if err != nil {
		return err
	}
	b := w.arena.Bytes()
	w.read = carve[uint8](&b, int(read)) // aligned as the arena is
	for i := range w.keys {
		w.keys[i] = pace.SorterIn(carve[uint64](&b, int(keys/keyBytesAtOnce)*2))
	}
	w.collected = b
	f := w.newFinder(b)
	id := w.s.id
	id.Seq = w.s.first + uint64(w.first)
	w.missing, err = newMissing(id, w.b.cfg.rowCount(), w.misses, cap(w.keys[0].Keys), f.room,
		w.b.cfg.Budget)
	if err != nil {
		return err
	}
	if err := w.missedAll(ctx, f); err != nil {
		return err
	}
	return w.missing.finish(ctx, w.b.cfg, &w.buf)
}

// missedAll notes the nodes whose rows the batches miss. The records of the next batches are read
// while those before are worked on.
func (w *sweep) missedAll(ctx context.Context, f *finder) (err error) {
	due := w.first
	ahead := newReadAhead(ctx, w.b.cfg.Budget, func(g *readGroup) bool {
		for ; due < w.end && len(g.Records) < 2*batchesAtOnce; due++ {
			g.Add(w.s.batches, w.s.index[due].nodes, due)
			g.Add(w.s.plans, w.s.index[due].plan, due)
		}
		return len(g.Records) > 0
	})
	defer func() { err = errors.Join(err, ahead.Close()) }()
	for {
		g, err := ahead.Next(ctx)
		if g == nil || err != nil {
			return err
		}
		for k := 0; k < len(g.Parts); k += 2 {
			if err := w.missed(g.Parts[k], g.Payloads[k], g.Payloads[k+1], f); err != nil {
				return err
			}
		}
	}
}

// finder holds the memory to find what batches miss. Collected rows take its place later.
type finder struct {
	batch   sample.Batch
	changes changes
	rows    []sample.NodeID // of a batch, if they are pieces
	nodes   []uint64        // rows that a batch misses
	room    []uint64        // for missing.room
}

func (w *sweep) newFinder(b []byte) *finder {
	n := w.s.listMost()
	f := &finder{nodes: carve[uint64](&b, n)}
	f.batch.Dense.NodeIDs = carve[sample.NodeID](&b, n)
	if w.b.cfg.Split != nil {
		f.rows = carve[sample.NodeID](&b, n)
	}
	c := &f.changes
	c.From, c.Keep = carve[uint32](&b, n), carve[uint32](&b, n)
	c.Slots = carve[uint32](&b, n)
	f.room = carve[uint64](&b, len(b)/8)
	return f
}

// missed notes the nodes whose rows batch i misses.
func (w *sweep) missed(i int, nodes, plan []byte, f *finder) error {
	if err := w.s.decodeNodes(nodes, i, &f.batch); err != nil {
		return err
	}
	ids, c := w.b.cfg.rowsOf(&f.batch, &f.rows), &f.changes
	if err := w.s.decodeChanges(plan, i, len(ids), c); err != nil {
		return err
	}
	if n := len(ids) - c.Hits; n != int(w.s.index[i].reads) {
		return w.s.plans.Damage(w.s.index[i].plan.Off(), "batch %d reads %d rows, not %d", i, n,
			w.s.index[i].reads)
	}
	missed := f.nodes[:0]
	for k, from := range c.From {
		if from == 0 {
			missed = append(missed, uint64(ids[k]))
		}
	}
	return w.missing.add(missed)
}

// scatter sweeps, and writes each row once for each batch that misses it.
func (w *sweep) scatter(ctx context.Context) (err error) {
	id, n, records := w.s.id, w.end-w.first, 0
	id.Seq = w.s.first + uint64(w.first)
	p := &w.packed
	*p = packed{rowBytes: w.rowBytes, perRecord: w.perRecord, starts: make([]uint32, n+1),
		held: mem.NewAccount(w.b.cfg.Budget, "superbatch index"), gone: &w.b.gone}
	for i, r := range w.s.index[w.first:w.end] {
		records += w.records(r.reads)
		p.starts[i+1] = uint32(records)
	}
	err = errors.Join(p.held.Add(8*int64(records)+4*int64(n+1)), w.held.Add(12*int64(n)))
	if err != nil {
		p.held.Release()
		return err
	}
	p.refs = make([]ref, records)
	w.fill, w.next, w.buffer = make([]uint32, n), make([]uint32, n), make([]uint32, n)
	copy(w.next, p.starts)
	if err = w.b.gone.Wait(); err == nil {
		w.out, err = id.Create(kindRows)
	}
	if err != nil {
		p.held.Release()
		return err
	}
	w.fitted()
	err = w.write(ctx)
	if err == nil {
		p.file, err = id.Open(ctx, w.b.cfg.Device, kindRows)
	}
	if err != nil {
		p.held.Release()
		return errors.Join(err, w.out.Abort(), id.Remove(kindRows))
	}
	return nil
}

// fullBuffer is collected rows of a batch that are to be written as a record.
type fullBuffer struct {
	list   int
	buffer uint32
	bytes  uint32
}

// write sweeps for all keys and writes the rows by batch. A goroutine writes full buffers while
// others are filled.
func (w *sweep) write(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.full, w.empty = make(chan fullBuffer, w.ahead), make(chan uint32, w.ahead)
	for i := range w.buffer {
		w.buffer[i] = uint32(i)
	}
	for i := range w.ahead {
		w.empty <- uint32(len(w.buffer) + i)
	}
	var errs [2]error
	var writing sync.WaitGroup
	writing.Go(func() {
		defer bug.Catch()
		for f := range w.full {
			if errs[1] == nil {
				if errs[1] = w.append(f); errs[1] != nil {
					cancel()
				}
			}
			w.empty <- f.buffer // flush waits for it, or there is room
		}
	})
	errs[0] = w.sweepAll(ctx)
	close(w.full)
	writing.Wait()
	if err := pace.Cause(errs[:]); err != nil {
		return err
	}
	return w.out.Finish()
}

// sweepAll reads the rows of all keys and hands those of each batch to be written.
func (w *sweep) sweepAll(ctx context.Context) error {
	for keys := range w.chunks(ctx, w.end-w.first) {
		if err := w.b.cfg.Rows.Sweep(ctx, keys, w.read, w.put); err != nil {
			return err
		}
	}
	for list := range w.fill {
		w.flush(list)
	}
	return w.missing.err
}

// put collects a row for a batch, and hands the batch's rows on once they fill a record.
func (w *sweep) put(list uint32, row []byte) error {
	size := w.perRecord * w.rowBytes
	at := int(w.buffer[list])*size + int(w.fill[list])
	copy(w.collected[at:at+w.rowBytes], row)
	if w.fill[list] += uint32(w.rowBytes); int(w.fill[list]) == size {
		w.flush(int(list))
	}
	return nil
}

// flush hands the collected rows of a batch on to be written, and waits for an empty buffer.
func (w *sweep) flush(list int) {
	if w.fill[list] > 0 {
		w.full <- fullBuffer{list, w.buffer[list], w.fill[list]}
		w.buffer[list], w.fill[list] = <-w.empty, 0
	}
}

// append writes the rows of a full buffer as a record.
func (w *sweep) append(f fullBuffer) (err error) {
	begin := int(f.buffer) * w.perRecord * w.rowBytes
	w.packed.refs[w.next[f.list]], err = w.out.Append(w.collected[begin : begin+int(f.bytes)])
	w.next[f.list]++
	return err
}

// release gives the memory back, except that of the packed rows.
func (w *sweep) release() error {
	w.held.Release()
	err := errors.Join(w.missing.close(), w.buf.Free())
	if a := w.arena; a != nil {
		w.arena = nil
		err = errors.Join(err, a.Free())
	}
	return err
}
