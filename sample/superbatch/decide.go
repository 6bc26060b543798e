package superbatch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gdb/internal/codec"
	"gdb/sample"
)

// decider is the memory of the forward pass. A goroutine reads the batches and their next uses, so
// that the next batch is read while it is decided for one.
type decider struct {
	*builder
	*superbatch
	next    *nextReader
	turns   uint32
	out     *writer
	changes Changes
	enc     codec.Enc
	gaps    []uint32
	buf     buffer

	frames      [decideFrames]decideFrame
	empty, full chan *decideFrame
}

// decideFrame is a batch and the next uses of its nodes.
type decideFrame struct {
	batch     sample.Batch
	i         int
	after, at []uint32
	err       error // of reading it; it is the last then
}

// decideFrames are in memory: it is decided for one, and one is read.
const decideFrames = 2

// decide writes the changes of each batch.
func (b *builder) decide(ctx context.Context, s *superbatch, next *nextUses, turns uint32) (
	err error) {
	heap := ledger{budget: b.cfg.Budget, what: "superbatch plan"}
	defer heap.release()
	if err := heap.add(PlanHeap(s.nodesMost)); err != nil {
		return err
	}
	in, err := next.read(ctx, b.cfg.Device, b.cfg.Budget)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	w, err := s.id.create(kindPlan)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.abort()) }()
	d := &decider{builder: b, superbatch: s, next: in, turns: turns, out: w,
		empty: make(chan *decideFrame, decideFrames), full: make(chan *decideFrame, decideFrames)}
	for i := range d.frames {
		f := &d.frames[i]
		f.after, f.at = make([]uint32, s.nodesMost), make([]uint32, s.nodesMost)
		d.empty <- f
	}
	defer func() { err = errors.Join(err, d.buf.free()) }()
	defer b.cache.unpinAll()
	if err := d.resume(ctx); err != nil {
		return err
	}
	if err := d.run(ctx); err != nil {
		return err
	}
	return w.finish()
}

// resume begins with the rows that the cache holds, a batch's number of them at a time.
func (d *decider) resume(ctx context.Context) error {
	if err := d.cache.begin(int(d.turns)); err != nil {
		return err
	}
	f := &d.frames[0]
	held := d.cache.rows()
	for slot := 0; slot < len(held); slot += len(f.at) {
		part := held[slot:min(slot+len(f.at), len(held))]
		if err := d.next.of(ctx, part, d.turns, f.after, f.at); err != nil {
			return err
		}
		d.cache.resume(slot, f.after[:len(part)], f.at[:len(part)])
	}
	return nil
}

// run decides for all batches.
func (d *decider) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer cancel()
	reader.Go(func() {
		defer close(d.full)
		for i := 0; i < len(d.index); i += batchesAtOnce {
			if !d.readSome(ctx, i, min(i+batchesAtOnce, len(d.index))) {
				return
			}
		}
	})
	for f := range d.full {
		if f.err != nil {
			return f.err
		}
		if err := d.step(f); err != nil {
			return err
		}
		d.empty <- f // never blocks: there is a place for each
	}
	return ctx.Err()
}

// readSome reads the nodes of some batches at once. It is false after the first error.
func (d *decider) readSome(ctx context.Context, first, end int) bool {
	var records [batchesAtOnce]record
	for i := first; i < end; i++ {
		records[i-first] = record{d.batches, d.index[i].nodes}
	}
	payloads, err := d.buf.read(ctx, records[:end-first]...)
	for i := first; i < end; i++ {
		var f *decideFrame
		select {
		case f = <-d.empty:
		case <-ctx.Done():
			return false
		}
		if f.i, f.err = i, err; err == nil {
			f.err = d.read(ctx, payloads[i-first], f)
		}
		d.full <- f // never blocks
		if f.err != nil {
			return false
		}
	}
	return true
}

// read takes a batch from its record, and its next uses.
func (d *decider) read(ctx context.Context, payload []byte, f *decideFrame) error {
	if err := d.decodeNodes(payload, f.i, d.builder, &f.batch); err != nil {
		return err
	}
	return d.next.of(ctx, f.batch.Dense.NodeIDs, d.turns-uint32(f.i+1), f.after, f.at)
}

// step decides for a batch.
func (d *decider) step(f *decideFrame) (err error) {
	nodes := f.batch.Dense.NodeIDs
	err = d.cache.step(uint32(f.i+1), nodes, f.after, f.at, &d.changes)
	if errors.Is(err, errNoSlot) {
		return fmt.Errorf("batch %d of %d nodes: %w", f.i, len(nodes), err)
	}
	if err != nil {
		return d.next.in.damage(0, "batch %d: %v", f.i, err)
	}
	d.index[f.i].reads = uint32(len(nodes) - d.changes.Hits)
	d.readsMost = max(d.readsMost, int(d.index[f.i].reads))
	d.enc.B = d.enc.B[:0]
	d.gaps = d.changes.encode(&d.enc, d.gaps)
	d.index[f.i].plan, err = d.out.append(d.enc.B)
	return err
}
