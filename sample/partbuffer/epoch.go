package partbuffer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gdb/layout/partition"
	"gdb/layout/topology"
	"gdb/sample"

	"github.com/RoaringBitmap/roaring/v2"
)

// turn is a set of partitions, and the training nodes that are trained on while it is in memory. A
// set that is used again has several, numbered by again.
type turn struct {
	set     int
	again   int
	seeds   []sample.NodeID
	batches uint64
}

// turns returns the turns of an epoch that have training nodes. Each training node is in one of
// them; one that is in no set is an error. It takes 4 bytes of memory per training node.
func (b *Buffer) turns(o *partition.Epoch) (all []turn, err error) {
	of := make([][]sample.NodeID, o.Sets())
	for _, v := range b.cfg.Train {
		set := o.SetOf(b.cfg.Deal.Part(v), uint32(v))
		if set < 0 {
			return nil, fmt.Errorf("sample: training node %d is in partition %d, which is in no "+
				"set", v, b.cfg.Deal.Part(v))
		}
		of[set] = append(of[set], v)
	}
	size := uint64(b.cfg.Batch)
	for set, seeds := range of {
		for again := range b.cfg.reuse() {
			if len(seeds) > 0 {
				all = append(all, turn{set, again, seeds, (uint64(len(seeds)) + size - 1) / size})
			}
		}
	}
	return all, nil
}

// Batches returns how many batches an epoch has. A batch has seeds of one set only.
func (b *Buffer) Batches(epoch uint64) (n uint64, err error) {
	all, err := b.turns(b.cfg.Order.Epoch(int(epoch)))
	for _, t := range all {
		n += t.batches
	}
	return n, err
}

// Epoch starts the batches of an epoch, from batch first on. Lists are read from the given reader.
// pipeline says how batches of a set are made; its order, features and first batch are filled in
// here.
func (b *Buffer) Epoch(ctx context.Context, lists topology.Reader, epoch, first uint64,
	pipeline sample.PipelineConfig) (sample.Batches, error) {
	if err := b.wake(); err != nil {
		return nil, err
	}
	o := b.cfg.Order.Epoch(int(epoch))
	left, err := b.turns(o)
	if err != nil {
		return nil, err
	}
	e := &batches{b: b, order: o, lists: lists, epoch: epoch, left: left, cfg: pipeline}
	for len(e.left) > 0 && first >= e.left[0].batches {
		first -= e.left[0].batches
		e.base += e.left[0].batches
		e.left = e.left[1:]
	}
	e.cfg.StartBatch, e.cfg.Features, e.cfg.Counters = first, b.Features(), &e.counts
	return e, e.next(ctx)
}

// batches hands out the batches of an epoch, set by set.
type batches struct {
	b     *Buffer
	order *partition.Epoch
	lists topology.Reader
	epoch uint64
	cfg   sample.PipelineConfig

	left   []turn           // turns to come; the first is in memory
	base   uint64           // number of batches of the turns before it
	now    *sample.Pipeline // pipeline of the set in memory; nil at the end
	counts sample.Counters
	load   sample.Clock
}

// next loads the next set to memory and starts its batches. Each set has an order of its own, and
// the first set has the order of the epoch, so that batches are as without a buffer if all
// partitions are in memory.
func (e *batches) next(ctx context.Context) error {
	if len(e.left) == 0 {
		return nil
	}
	t := &e.left[0]
	begun := time.Now()
	if err := e.b.load(ctx, e.lists, e.order.Set(t.set), e.after()); err != nil {
		return err
	}
	e.load.Ran(begun)
	order, err := sample.EpochOrder(t.seeds, e.b.cfg.Seed,
		e.epoch|uint64(t.set)<<32|uint64(t.again)<<48, e.b.cfg.Batch)
	if err != nil {
		return err
	}
	e.cfg.Order = order
	e.now, err = sample.NewPipeline(ctx, e.cfg)
	return err
}

// after returns the set that comes after the one of this turn. At the end of an epoch it is the
// first of the next one for macro-batches, which are read ahead, and nil for others.
func (e *batches) after() *roaring.Bitmap {
	for _, t := range e.left {
		if t.set != e.left[0].set {
			return e.order.Set(t.set)
		}
	}
	if e.b.cfg.Macro == nil {
		return nil
	}
	next := e.b.cfg.Order.Epoch(int(e.epoch) + 1)
	for set := range next.Sets() {
		for _, v := range e.b.cfg.Train {
			if next.SetOf(e.b.cfg.Deal.Part(v), uint32(v)) == set {
				return next.Set(set)
			}
		}
	}
	return nil
}

// Next returns the next batch, with its number in the epoch.
func (e *batches) Next(ctx context.Context) (*sample.Batch, error) {
	for e.now != nil {
		batch, err := e.now.Next(ctx)
		if err == nil {
			batch.Epoch, batch.Index = e.epoch, e.base+batch.Index
			return batch, nil
		}
		if !errors.Is(err, io.EOF) {
			return nil, err
		}
		if err := e.end(); err != nil {
			return nil, err
		}
		e.base += e.left[0].batches
		e.left, e.cfg.StartBatch = e.left[1:], 0
		if err := e.next(ctx); err != nil {
			return nil, err
		}
	}
	return nil, io.EOF
}

// end closes the pipeline of the set in memory.
func (e *batches) end() error {
	if e.now == nil {
		return nil
	}
	now := e.now
	e.now = nil
	return now.Close()
}

// Stats returns the statistics of all sets so far. Its stage "load" is the time of loading sets,
// during which the step waited.
func (e *batches) Stats() sample.PipelineStats {
	s := e.counts.Stats(max(e.cfg.Workers, 1))
	load := e.load.Stats("load", 1)
	s.Stages = append([]sample.StageStats{load}, s.Stages...)
	for i := range s.Stages {
		if s.Stages[i].Name == "step" {
			s.Stages[i].Starved += load.Busy
		}
	}
	return s
}

// Close stops the work on batches.
func (e *batches) Close() error { return e.end() }
