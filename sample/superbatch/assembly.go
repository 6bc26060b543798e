package superbatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/sample"
	"gdb/sample/rowcache"
)

// assembly assembles consecutive batches of a superbatch, in two stages. A reader runs ahead: for
// each batch it reads the records and the few rows that no slot holds. Then, batch by batch, these
// rows and the rows in slots are copied to the batch's features, and the rows to keep are copied to
// slots. Reading needs nothing from the slots, so it never waits for the second stage. If rows are
// used in place, rows that are read go to slots at once and only a part is copied to the batch: see
// readInPlace.
type assembly struct {
	l      *Loader
	s      *superbatch
	first  uint64 // step
	end    uint64
	stages *sample.StageGroup
	packed *packed     // where a sweep put the missed rows, or nil
	keys   pace.Sorter // scratch of order

	all                []*frame
	empty, read, ready chan *frame
	staged, xs         *sample.Buffers // memory for rows read ahead, and for features of batches

	mu struct {
		sync.Mutex
		held mem.Account // lists of the frames, without features
	}
}

// frame holds one batch while it is read and assembled. Its rows lie in stage and x.
type frame struct {
	batch   sample.Batch
	step    uint64
	stage   *sample.Buffer // rows read ahead, until the batch is assembled
	ahead   int            // number of rows in stage
	records readBuffer     // records in the stage, if the rows were swept
	x       *sample.Buffer // the batch's features
	changes changes
	missed  []sample.NodeID // nodes whose rows are read
	at      []uint32        // row of the features (in place: slot) for each of missed
	pieces  []sample.NodeID // rows of the batch's nodes, if they are pieces
	rows    []uint32        // in place: the slot of each neighbor's row
	counted int64
	lent    bool // guarded by the assembly
}

func newAssembly(l *Loader, s *superbatch, first, end uint64) *assembly {
	t := &assembly{l: l, s: s, first: first, end: end, packed: s.span.rows}
	frames := l.cfg.frames()
	t.empty, t.read = make(chan *frame, frames), make(chan *frame, frames)
	t.ready = make(chan *frame, frames)
	t.mu.held = mem.NewAccount(l.cfg.Budget, "batches")
	for range frames {
		f := &frame{}
		t.all = append(t.all, f)
		t.empty <- f
	}
	t.staged = sample.NewBuffers(Stages, "rows read for a batch", l.cfg.Budget)
	t.xs = sample.NewBuffers(l.cfg.Ready+1, "features of a batch", l.cfg.Budget)
	t.xs.LockIn(l.cfg.Pages)
	t.stages = sample.NewStageGroup(context.Background())
	t.stages.Start(func() error { return t.readAll(first) })
	t.stages.Start(func() error { return t.assembleAll(first) })
	return t
}

// next waits for the next batch.
func (t *assembly) next(ctx context.Context) (*sample.Batch, error) {
	if err := t.stages.Err(); err != nil {
		return nil, err
	}
	select {
	case f := <-t.ready:
		t.xs.Lend(f.x)
		t.mu.Lock()
		f.lent = true
		t.mu.Unlock()
		t.l.slots.lend()
		f.batch.Lend(func(*sample.Batch) { t.recycle(f) })
		return &f.batch, nil
	case <-t.stages.Done():
		return nil, t.stages.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// recycle takes a batch back from the consumer.
func (t *assembly) recycle(f *frame) {
	defer t.l.slots.giveBack()
	x := f.x
	f.x, f.batch.X = nil, nil
	f.batch.Table, f.batch.TableRows, f.batch.TablePieces = nil, nil, nil
	t.dropPrepared(f)
	if t.xs.Return(x) {
		t.empty <- f
	} else {
		f.drop()
	}
}

// drop gives up the memory of a frame whose batch is not lent. Who computed on the batch last may
// refer to it until the next one, and a sweep before that needs the memory.
func (f *frame) drop() {
	f.batch.Free()
	*f = frame{}
}

// dropPrepared gives up what was prepared of a batch that comes back from the consumer.
func (t *assembly) dropPrepared(f *frame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.lent = false
	if p := f.batch.Prepared; p != nil {
		p.Drop()
	}
}

// rowBytes returns the bytes of rows feature rows as floats; below one row it counts one.
func (t *assembly) rowBytes(rows int) int64 { return 4 * int64(max(rows, 1)) * int64(t.l.dim) }

// featureBytes returns the bytes of the features of the largest batch.
func (t *assembly) featureBytes() int64 {
	switch s := t.l.cfg.Split; {
	case t.l.cfg.InPlace && s != nil:
		return 4 * int64(max(1, t.s.innerMost)) * int64(s.Wide)
	case t.l.cfg.InPlace:
		return t.rowBytes(t.s.innerMost)
	case t.l.cfg.Cut:
		return 4 * int64(sample.PieceFloats(s, t.s.rowsMost, t.s.innerMost))
	case s != nil:
		return 4 * int64(s.Floats(t.s.nodesMost))
	}
	return t.rowBytes(t.s.nodesMost)
}

// readAll is the first stage: for each batch it reads the records and the rows that no slot holds.
func (t *assembly) readAll(first uint64) (err error) {
	buf := readBuffer{Budget: t.l.cfg.Budget}
	defer func() { err = errors.Join(err, buf.Free()) }()
	stageRows := t.s.readsMost
	if most := t.l.cfg.StageRows; most > 0 {
		stageRows = min(stageRows, most)
	}
	for step := first; step < t.end; step++ {
		f, ok := sample.Receive(t.stages, t.empty, &t.l.reading.Blocked)
		if !ok {
			return nil
		}
		if !t.l.cfg.InPlace {
			f.stage, err = t.staged.TakeMade(t.stages, t.rowBytes(stageRows),
				&t.l.reading.Blocked)
			if err != nil || f.stage == nil {
				return err
			}
		}
		begun := time.Now()
		f.step = step
		if err := t.load(f, &buf); err != nil {
			return t.at(step, err)
		}
		t.l.reading.Ran(begun)
		t.read <- f
	}
	return nil
}

// at wraps an error of reading with the batch and epoch at step, counted from 1.
func (t *assembly) at(step uint64, err error) error {
	per := t.l.builder.perEpoch
	return fmt.Errorf("superbatch: read batch %d of epoch %d: %w", step%per+1, step/per+1, err)
}

// load reads the records of a frame's batch, and ahead of its assembly the rows that it misses.
func (t *assembly) load(f *frame, buf *readBuffer) error {
	i, b, l := int(f.step-t.s.first), &f.batch, t.l
	payloads, err := buf.Read(t.stages.Context(), t.s.parts(i)...)
	if err != nil {
		return err
	}
	if err := t.s.decodeNodes(payloads[0], i, b); err != nil {
		return err
	}
	if err := t.s.decodeEdges(payloads[1], i, b); err != nil {
		return err
	}
	rows := l.cfg.rowsOf(b, &f.pieces)
	if err := t.s.decodeChanges(payloads[2], i, len(rows), &f.changes); err != nil {
		return err
	}
	if l.cfg.Labels != nil {
		if err := l.cfg.Labels.Fill(t.stages.Context(), b); err != nil {
			return err
		}
	}
	if l.cfg.Prepare != nil {
		if err := l.cfg.Prepare(b); err != nil {
			return fmt.Errorf("prepare a batch: %w", err)
		}
	}
	if l.cfg.InPlace {
		return t.readInPlace(f, rows, buf)
	}
	f.missed, f.at, f.ahead = f.missed[:0], f.at[:0], 0
	for i, s := range f.changes.From {
		if s == 0 {
			f.missed, f.at = append(f.missed, rows[i]), append(f.at, uint32(i))
		}
	}
	if err := t.count(f); err != nil || len(f.missed) == 0 {
		return err
	}
	if err := t.order(f); err != nil {
		return err
	}
	return t.readStage(f, buf)
}

// readStage reads missed rows to the frame's stage and sets f.ahead to their number. It reads as
// many as the stage has room for; rows that were swept are read in whole records.
func (t *assembly) readStage(f *frame, buf *readBuffer) (err error) {
	if t.packed != nil {
		f.records.Arena = f.stage.Arena()
		f.ahead, err = t.packed.readFirst(t.stages.Context(), t.batchOf(f), &f.records)
		return err
	}
	f.ahead = len(f.missed)
	if most := t.l.cfg.StageRows; most > 0 {
		f.ahead = min(f.ahead, most)
	}
	return t.fetch(f, 0, f.ahead, nil, f.stage.Floats(), buf)
}

// batchOf returns the index of a frame's batch in the span.
func (t *assembly) batchOf(f *frame) int { return int(f.step-t.s.first) - t.s.span.first }

// count adds the memory of a frame's lists to the budget, where they have grown.
func (t *assembly) count(f *frame) error {
	c := &f.changes
	now := f.batch.HeapBytes() + 4*int64(cap(f.missed)+cap(f.at)+cap(f.rows)+cap(f.pieces)+
		cap(c.From)+cap(c.Keep)+cap(c.Slots))
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.mu.held.Add(max(0, now-f.counted)); err != nil {
		return err
	}
	f.counted = max(f.counted, now)
	return nil
}

// assembleAll is the second stage: it assembles the batches that were read, in order.
func (t *assembly) assembleAll(first uint64) (err error) {
	buf := readBuffer{Budget: t.l.cfg.Budget}
	defer func() { err = errors.Join(err, buf.Free()) }()
	for step := first; step < t.end; step++ {
		f, ok := sample.Receive(t.stages, t.read, &t.l.gathering.Starved)
		if !ok {
			return nil
		}
		x, err := t.xs.TakeMade(t.stages, t.featureBytes(), &t.l.gathering.Blocked)
		if err != nil || x == nil {
			return err
		}
		begun := time.Now()
		f.x = x
		if t.l.cfg.InPlace {
			if err := t.assembleInPlace(f); err != nil {
				return err
			}
		} else if err := t.assemble(f, &buf); err != nil {
			return t.at(step, err)
		}
		if finish := t.l.cfg.Finish; finish != nil {
			if err := finish(&f.batch); err != nil {
				return t.at(step, err)
			}
		}
		if f.stage != nil {
			t.staged.Put(f.stage)
			f.stage = nil
		}
		t.l.gathering.Ran(begun)
		t.ready <- f
	}
	return nil
}

// assemble copies rows from the stage and from slots to the batch's features, reads those that the
// stage had no room for, and then copies the rows to keep to slots.
func (t *assembly) assemble(f *frame, buf *readBuffer) error {
	l, c, d := t.l, &f.changes, uint64(t.l.dim)
	x := f.x.Floats()
	slots, nodes, split := l.slots.rows, f.batch.Dense.NodeIDs, l.cfg.Split
	if split != nil && !l.cfg.Cut {
		x = split.Packed(x[:split.Floats(len(nodes))], len(c.From))
	} else {
		x = x[:len(c.From)*l.dim]
	}
	var late error
	var reading sync.WaitGroup
	if end := len(f.missed); f.ahead < end { // read the rest while the others are copied
		reading.Go(func() {
			defer bug.Catch()
			late = t.fetch(f, f.ahead, end, f.at[f.ahead:], x, buf)
		})
	}
	err := t.placeStage(f, x)
	rowcache.Parallel(len(c.From), l.cfg.Threads, c.Hits*l.dim*4, func(first, end int) {
		for i := first; i < end; i++ {
			if s := c.From[i]; s != 0 {
				from, to := uint64(s-1)*d, uint64(i)*d
				copy(x[to:to+d], slots[from:from+d])
			}
		}
	})
	reading.Wait()
	if err = errors.Join(err, late); err != nil {
		return err
	}
	rowcache.Parallel(len(c.Keep), l.cfg.Threads, len(c.Keep)*l.dim*4, func(first, end int) {
		for k := first; k < end; k++ {
			from, to := uint64(c.Keep[k])*d, uint64(c.Slots[k])*d
			copy(slots[to:to+d], x[from:from+d])
		}
	})
	l.slots.count(c)
	if l.cfg.Cut {
		end := max(1, len(c.From)) * l.dim
		all := f.x.Floats()
		f.batch.HoldPieces(split, all[:end:end], all[end:], func(i int) uint32 { return uint32(i) })
		return t.count(f)
	}
	if f.batch.X, f.batch.Dim = x[:len(x):len(x)], l.dim; split != nil {
		all := f.x.Floats()[:split.Floats(len(nodes))]
		f.batch.X, f.batch.Dim = split.Unpack(nodes, all, len(c.From)), split.Wide
	}
	return nil
}

// placeStage copies the rows that were read ahead from the stage to the batch's features.
func (t *assembly) placeStage(f *frame, x []float32) error {
	d, bytes := t.l.dim, f.ahead*t.l.dim*4
	if t.packed == nil {
		read := f.stage.Floats()
		rowcache.Parallel(f.ahead, t.l.cfg.Threads, bytes, func(first, end int) {
			for k := first; k < end; k++ {
				copy(x[int(f.at[k])*d:][:d], read[k*d:][:d])
			}
		})
		return nil
	}
	var failed atomic.Pointer[error]
	rowcache.Parallel(f.ahead, t.l.cfg.Threads, bytes, func(first, end int) {
		if err := t.decodeStage(f, x, first, end); err != nil {
			failed.Store(&err)
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// decodeStage decodes the swept rows first … end-1 of a frame's stage to the batch's features.
func (t *assembly) decodeStage(f *frame, x []float32, first, end int) error {
	for k, d := first, t.l.dim; k < end; k++ {
		err := t.l.cfg.Rows.Decode(x[int(f.at[k])*d:][:d], t.packed.row(&f.records, k))
		if err != nil {
			return err
		}
	}
	return nil
}

// close stops the stages, waits for them and frees the memory, except that of batches still lent.
func (t *assembly) close() error {
	t.stages.Stop(errClosed)
	t.mu.Lock()
	t.mu.held.Release()
	for _, f := range t.all {
		if !f.lent {
			f.drop()
		}
	}
	t.mu.Unlock()
	return errors.Join(t.staged.Close(), t.xs.Close())
}

// order sorts the rows that a batch misses by node, which is the order in which a sweep packed
// them.
func (t *assembly) order(f *frame) error {
	if t.packed == nil {
		return nil
	}
	before := t.keys.Bytes()
	t.keys.Reset(len(f.missed))
	for k, v := range f.missed {
		t.keys.Keys = append(t.keys.Keys, uint64(v)<<32|uint64(f.at[k]))
	}
	if err := t.keys.Sort(t.stages.Context()); err != nil {
		return err
	}
	for k, key := range t.keys.Keys {
		f.missed[k], f.at[k] = sample.NodeID(key>>32), uint32(key)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.held.Add(t.keys.Bytes() - before)
}

// fetch reads the missed rows first … end-1 of a batch to out: the k-th of them to row at[k], or to
// row k if at is nil. They come from the file of features or, if they were swept, from the packed
// rows; then at must not be nil.
func (t *assembly) fetch(f *frame, first, end int, at []uint32, out []float32,
	buf *readBuffer) error {
	c, dim := &t.l.cfg, t.l.dim
	if t.packed == nil {
		return c.Rows.GatherParts(t.stages.Context(), f.missed[first:end], at, out, nil)
	}
	width := t.packed.rowBytes
	return t.packed.read(t.stages.Context(), t.batchOf(f), first, end, buf, func(k int,
		rows []byte) error {
		k -= first
		for ; len(rows) > 0; k, rows = k+1, rows[width:] {
			to := int(at[k]) * dim
			if err := c.Rows.Decode(out[to:to+dim], rows[:width]); err != nil {
				return err
			}
		}
		return nil
	})
}

// readInPlace reads the rows that a batch misses to their slots, and unless they are pieces sets
// f.rows to the slots of its neighbors. No batch still in use has a row in these slots: see
// changes.Alone.
func (t *assembly) readInPlace(f *frame, rows []sample.NodeID, buf *readBuffer) error {
	c := &f.changes
	f.missed, f.at = f.missed[:0], f.at[:0]
	for k, i := range c.Keep {
		if c.From[i] != 0 {
			return t.s.plans.Damage(t.s.index[f.step-t.s.first].plan.Off(),
				"row %d is in two slots", i)
		}
		c.From[i] = c.Slots[k] + 1
		f.missed, f.at = append(f.missed, rows[i]), append(f.at, c.Slots[k])
	}
	if c.Hits+len(c.Keep) != len(c.From) {
		return t.s.plans.Damage(t.s.index[f.step-t.s.first].plan.Off(),
			"%d rows of %d have no slot", len(c.From)-c.Hits-len(c.Keep), len(c.From))
	}
	if t.l.cfg.Split == nil {
		f.listSlots()
	}
	if err := t.count(f); err != nil || len(f.missed) == 0 {
		return err
	}
	if c.Alone { // wait until the previous batch's frame was returned
		other, ok := sample.Receive(t.stages, t.empty, &t.l.reading.Blocked)
		if !ok {
			return t.stages.Err()
		}
		t.empty <- other
	}
	if err := t.order(f); err != nil {
		return err
	}
	return t.fetch(f, 0, len(f.missed), f.at, t.l.slots.rows, buf)
}

// listSlots sets f.rows to the slots of the neighbors' rows.
func (f *frame) listSlots() {
	d := &f.batch.Dense
	if cap(f.rows) < len(d.ReprMap) {
		f.rows = make([]uint32, 0, cap(d.ReprMap))
	}
	f.rows = f.rows[:len(d.ReprMap)]
	for e, r := range d.ReprMap {
		f.rows[e] = f.changes.From[r] - 1
	}
}

// assembleInPlace copies the rows to the batch, except those of the outermost delta, which stay in
// slots.
func (t *assembly) assembleInPlace(f *frame) error {
	l, b := t.l, &f.batch
	if s := l.cfg.Split; s != nil {
		b.HoldPieces(s, l.slots.rows, f.x.Floats(), func(i int) uint32 {
			return f.changes.From[i] - 1
		})
		l.slots.count(&f.changes)
		return t.count(f)
	}
	from := f.changes.From[b.Dense.NodeIDOffsets[1]:]
	n := len(from) * l.dim
	x := f.x.Floats()[:n:n]
	rowcache.Parallel(len(from), l.cfg.Threads, n*4, func(first, end int) {
		rowcache.CopyEach(x[first*l.dim:], l.slots.rows, l.dim, end-first, n*4, func(i int) uint32 {
			return from[first+i] - 1
		})
	})
	b.X, b.Dim, b.Table, b.TableRows = x, l.dim, l.slots.rows, f.rows
	l.slots.count(&f.changes)
	return nil
}
