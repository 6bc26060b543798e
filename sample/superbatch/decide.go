package superbatch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gdb/internal/bug"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/sample"
)

// decider runs the forward pass of planning. Three goroutines hand frames on: one reads batches and
// their next uses, one decides what the cache keeps, and one writes the changes.
type decider struct {
	cfg     *Config
	s       *superbatch // its index and readsMost are filled in
	cache   *cacheState
	next    *nextReader
	nodes   *readAhead // records of batches
	due     int        // the first batch whose record was not asked for yet
	out     *fileWriter
	enc     codec.Enc
	gaps    []uint32
	frames  [decideFrames]decideFrame
	empty   chan *decideFrame
	full    chan *decideFrame
	decided chan *decideFrame
}

// decideFrame holds a batch, the next uses of its rows, and its changes.
type decideFrame struct {
	batch   sample.Batch
	rows    []sample.NodeID // of its nodes
	pieces  []sample.NodeID // memory of rows, if they are pieces
	i       int
	next    []uint32
	changes changes
}

// decideFrames is the number of frames in memory: one is read, one decided on and one written.
const decideFrames = 3

// decide writes the changes of each batch to the runtime file of plans.
func (b *builder) decide(ctx context.Context, s *superbatch, next *nextUses) (err error) {
	heap := mem.NewAccount(b.cfg.Budget, "superbatch plan")
	defer heap.Release()
	if err := heap.Add(PlanHeap(s.listMost())); err != nil {
		return err
	}
	in, err := next.Read(ctx, b.cfg.Device, b.cfg.Budget)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	w, err := s.id.Create(kindPlan)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Abort()) }()
	d := &decider{cfg: b.cfg, s: s, cache: b.cache, next: in, out: w,
		empty: make(chan *decideFrame, decideFrames), full: make(chan *decideFrame, decideFrames),
		decided: make(chan *decideFrame, decideFrames)}
	for i := range d.frames {
		d.frames[i].next = make([]uint32, s.listMost())
		d.empty <- &d.frames[i]
	}
	defer b.cache.UnpinAll()
	if err := d.resume(ctx); err != nil {
		return err
	}
	d.nodes = newReadAhead(ctx, b.cfg.Budget, d.choose)
	defer func() { err = errors.Join(err, d.nodes.Close()) }()
	if err := d.run(ctx); err != nil {
		return err
	}
	return w.Finish()
}

// resume gives the cache the next uses of the rows that it holds, reading a batch's number of them
// at a time.
func (d *decider) resume(ctx context.Context) error {
	if err := d.cache.Begin(len(d.s.index), d.next.Bits); err != nil {
		return err
	}
	next := d.frames[0].next
	held := d.cache.Rows()
	for slot := 0; slot < len(held); slot += len(next) {
		part := held[slot:min(slot+len(next), len(held))]
		if err := d.next.Of(ctx, 0, part, next); err != nil {
			return err
		}
		d.cache.Resume(slot, next[:len(part)])
	}
	d.cache.Trim(d.cache.Most)
	return nil
}

// choose adds the node records of the next batches to a group of reads.
func (d *decider) choose(g *readGroup) bool {
	for ; d.due < len(d.s.index) && len(g.Records) < batchesAtOnce; d.due++ {
		g.Add(d.s.batches, d.s.index[d.due].nodes, d.due)
	}
	return len(g.Records) > 0
}

// run runs the three goroutines until all batches are decided on, or one of them fails.
func (d *decider) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs [3]error
	var all sync.WaitGroup
	for i, work := range []func(context.Context) error{d.read, d.decideAll, d.write} {
		all.Go(func() {
			defer bug.Catch()
			if errs[i] = work(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	return pace.Cause(errs[:])
}

// read fills frames with batches and the next uses of their nodes.
func (d *decider) read(ctx context.Context) error {
	defer close(d.full)
	for {
		g, err := d.nodes.Next(ctx)
		if g == nil || err != nil {
			return err
		}
		for k, i := range g.Parts {
			var f *decideFrame
			select {
			case f = <-d.empty:
			case <-ctx.Done():
				return ctx.Err()
			}
			f.i = i
			if err := d.s.decodeNodes(g.Payloads[k], i, &f.batch); err != nil {
				return err
			}
			f.rows = d.cfg.rowsOf(&f.batch, &f.pieces)
			if err := d.next.Of(ctx, uint32(i+1), f.rows, f.next); err != nil {
				return err
			}
			d.full <- f // never blocks: there is a place for each
		}
	}
}

// decideAll computes the changes of each batch that was read.
func (d *decider) decideAll(context.Context) error {
	defer close(d.decided)
	for f := range d.full {
		turn, rows := uint32(f.i+1), f.rows
		err := d.cache.Step(turn, rows, f.next[:len(rows)], &f.changes)
		if errors.Is(err, errNoSlot) {
			return fmt.Errorf("batch %d of %d nodes: %w", f.i, len(rows), err)
		}
		if err != nil {
			return d.next.In.Damage(0, "batch %d: %v", f.i, err)
		}
		d.s.index[f.i].reads = uint32(len(rows) - f.changes.Hits)
		d.s.readsMost = max(d.s.readsMost, int(d.s.index[f.i].reads))
		d.decided <- f // never blocks
	}
	return nil
}

// write writes the changes of each batch that was decided on.
func (d *decider) write(context.Context) (err error) {
	for f := range d.decided {
		d.enc.B = d.enc.B[:0]
		d.gaps = f.changes.Encode(&d.enc, d.gaps)
		if d.s.index[f.i].plan, err = d.out.Append(d.enc.B); err != nil {
			return err
		}
		d.empty <- f // never blocks
	}
	return nil
}
