package partbuffer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/stages"
)

// turn is a set with training nodes, and those whose turn it is while the set is in memory.
type turn struct {
	set     int
	seeds   []sample.NodeID
	batches uint64
}

// turns are those of an epoch. Memory: 4 bytes a training node. A training node is in one of them;
// one that no set has is an error.
func (b *Buffer) turns(o Order) (all []turn, err error) {
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
		if len(seeds) > 0 {
			all = append(all, turn{set, seeds, (uint64(len(seeds)) + size - 1) / size})
		}
	}
	return all, nil
}

// Batches is how many batches an epoch has: those of a set end with it.
func (b *Buffer) Batches(epoch uint64) (n uint64, err error) {
	all, err := b.turns(b.cfg.Order(epoch))
	for _, t := range all {
		n += t.batches
	}
	return n, err
}

// Epoch starts the batches of an epoch, from one on. Lists are read from the reader given. pipeline
// says how batches of a set are made; its order, features and first batch are filled in here.
func (b *Buffer) Epoch(ctx context.Context, lists topology.Reader, epoch, first uint64,
	pipeline sample.PipelineConfig) (sample.Batches, error) {
	o := b.cfg.Order(epoch)
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
	e.cfg.StartBatch, e.cfg.Features = first, b.Features()
	return e, e.next(ctx)
}

// batches are those of an epoch, set by set.
type batches struct {
	b     *Buffer
	order Order
	lists topology.Reader
	epoch uint64
	cfg   sample.PipelineConfig

	left []turn           // the first is in memory
	base uint64           // batches of the sets before it
	now  *sample.Pipeline // nil at the end
	past sample.PipelineStats
	load stages.Clock
}

// next puts the next set in memory and starts its batches. Each set has an order of its own: that
// of the first is the order of the epoch, so that where all partitions are in memory batches are as
// without a buffer.
func (e *batches) next(ctx context.Context) error {
	if len(e.left) == 0 {
		return nil
	}
	t := &e.left[0]
	begun := time.Now()
	if err := e.b.load(ctx, e.lists, e.order.Partitions(t.set)); err != nil {
		return err
	}
	e.load.Ran(begun)
	order, err := sample.EpochOrder(t.seeds, e.b.cfg.Seed, e.epoch|uint64(t.set)<<32,
		e.b.cfg.Batch)
	if err != nil {
		return err
	}
	e.cfg.Order = order
	e.now, err = sample.NewPipeline(ctx, e.cfg)
	return err
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

// end ends the batches of the set in memory.
func (e *batches) end() error {
	if e.now == nil {
		return nil
	}
	e.past = added(e.past, e.now.Stats())
	now := e.now
	e.now = nil
	return now.Close()
}

// Stats are those of all sets so far, for the goroutine that calls Next. Stage "load" is what
// putting them in memory took, for which the step waited.
func (e *batches) Stats() sample.PipelineStats {
	s := e.past
	if e.now != nil {
		s = added(s, e.now.Stats())
	}
	load := e.load.Stats("load", 1)
	s.Stages = append([]stages.StageStats{load}, s.Stages...)
	for i := range s.Stages {
		if s.Stages[i].Name == "step" {
			s.Stages[i].Starved += load.Busy
		}
	}
	return s
}

// added is the sum of two, of which the first may be of no stages yet.
func added(a, b sample.PipelineStats) sample.PipelineStats {
	sum := sample.PipelineStats{Nodes: a.Nodes + b.Nodes, Edges: a.Edges + b.Edges}
	for i, st := range b.Stages {
		if len(a.Stages) > 0 {
			was := a.Stages[i]
			st.Done += was.Done
			st.Busy += was.Busy
			st.Starved += was.Starved
			st.Blocked += was.Blocked
		}
		sum.Stages = append(sum.Stages, st)
	}
	return sum
}

// Close ends the work on batches.
func (e *batches) Close() error { return e.end() }
