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
	refresh bool // of Macro.Refresh, after those of training nodes
	seeds   []sample.NodeID
	batches uint64
}

// turns returns the turns of an epoch that have nodes. Each training node is in those of one set;
// one that is in no set is an error. It takes 4 bytes of memory per node.
func (b *Buffer) turns(epoch uint64) (all []turn, err error) {
	o := b.cfg.Order.Epoch(int(epoch))
	of, err := b.bySet(o, b.cfg.Train)
	if err != nil {
		return nil, err
	}
	refresh, err := b.bySet(o, b.cfg.refreshed(epoch))
	if err != nil {
		return nil, err
	}
	size := uint64(b.cfg.Batch)
	add := func(t turn) {
		if t.batches = (uint64(len(t.seeds)) + size - 1) / size; t.batches > 0 {
			all = append(all, t)
		}
	}
	for set, seeds := range of {
		for again := range b.cfg.reuse() {
			add(turn{set: set, again: again, seeds: seeds})
		}
		add(turn{set: set, again: b.cfg.reuse(), refresh: true, seeds: refresh[set]})
	}
	return all, nil
}

// bySet returns the nodes of the turn of each set.
func (b *Buffer) bySet(o *partition.Epoch, nodes []sample.NodeID) ([][]sample.NodeID, error) {
	of := make([][]sample.NodeID, o.Sets())
	for _, v := range nodes {
		set := o.SetOf(b.cfg.Deal.Part(v), uint32(v))
		if set < 0 {
			return nil, fmt.Errorf("sample: training node %d is in partition %d, which is in no "+
				"set", v, b.cfg.Deal.Part(v))
		}
		of[set] = append(of[set], v)
	}
	return of, nil
}

// Batches returns how many batches an epoch has. A batch has seeds of one set only.
func (b *Buffer) Batches(epoch uint64) (n uint64, err error) {
	all, err := b.turns(epoch)
	for _, t := range all {
		n += t.batches
	}
	return n, err
}

// Pipelines say how batches of a set are made. Orders, features and first batches are filled in by
// Epoch.
type Pipelines struct {
	sample.PipelineConfig
	// Refresher draws the batches of Macro.Refresh.
	Refresher func(workers int) (sample.Drawer, error)
}

// Epoch starts the batches of an epoch, from batch first on. Lists are read from the given reader.
func (b *Buffer) Epoch(ctx context.Context, lists topology.Reader, epoch, first uint64,
	pipelines Pipelines) (sample.Batches, error) {
	if err := b.wake(); err != nil {
		return nil, err
	}
	left, err := b.turns(epoch)
	if err != nil {
		return nil, err
	}
	e := &batches{b: b, order: b.cfg.Order.Epoch(int(epoch)), lists: lists, epoch: epoch,
		left: left, cfg: pipelines.PipelineConfig, refresher: pipelines.Refresher}
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

	refresher func(workers int) (sample.Drawer, error)

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
	cfg := e.cfg
	if t.refresh {
		cfg.Drawer = e.refresher
	}
	e.now, err = sample.NewPipeline(ctx, cfg)
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
	first := next.Sets()
	for _, nodes := range [][]sample.NodeID{e.b.cfg.Train,
		e.b.cfg.refreshed(e.epoch + 1)} {
		for _, v := range nodes {
			first = min(first, next.SetOf(e.b.cfg.Deal.Part(v), uint32(v)))
		}
	}
	if first < 0 || first == next.Sets() {
		return nil
	}
	return next.Set(first)
}

// Next returns the next batch, with its number in the epoch.
func (e *batches) Next(ctx context.Context) (*sample.Batch, error) {
	for e.now != nil {
		batch, err := e.now.Next(ctx)
		if err == nil {
			batch.Epoch, batch.Index = e.epoch, e.base+batch.Index
			batch.Refresh = e.left[0].refresh
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
