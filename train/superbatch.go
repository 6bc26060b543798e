package train

import (
	"cmp"
	"context"

	"gdb/layout"
	"gdb/sample"
	"gdb/sample/superbatch"
)

// batches starts what is left of the epoch in which the run stands.
func (t *trainer) batches(ctx context.Context, order *sample.Order) (sample.Batches, error) {
	if t.plan.Superbatch == nil {
		return t.in.pipeline(ctx, &t.cfg, order, t.pos.Batch, t.plan)
	}
	if t.loader == nil {
		l, err := superbatch.Open(t.superbatches())
		if err != nil {
			return nil, err
		}
		t.loader = l
		t.closers = append(t.closers, l)
	}
	return t.loader.Epoch(t.pos.Epoch)
}

// superbatches are the batches from where the run stands to its end. Unless their number is given,
// they end where the run evaluates: after that it may end too.
func (t *trainer) superbatches() superbatch.Config {
	s, in := t.plan.Superbatch, t.in
	c := superbatch.Config{
		Graph: in.useGraph,
		Sampler: func() (*sample.Sampler, error) {
			return sample.NewSampler([]layout.Topology{in.topology},
				sample.Config{Fanout: t.cfg.Fanout, Seed: t.cfg.Seed, Budget: in.budget})
		},
		Order: func(epoch uint64) (*sample.Order, error) {
			return sample.EpochOrder(t.train, t.cfg.Seed, epoch, t.cfg.Batch)
		},
		Epoch: t.pos.Epoch, StartBatch: t.pos.Batch, Epochs: uint64(t.cfg.Epochs),
		Nodes: in.meta.Nodes, Rows: in.rows, Labels: in.labels, FS: in.store.FS(),
		Prep: in.store.Path("prep"), Name: cmp.Or(t.dir.Name(), newToken()), UUID: in.meta.UUID,
		Device:  in.dev,
		Batches: s.Batches, StorageBytes: s.Storage, Overlap: s.Overlap,
		Planned: superbatch.Sizes{Nodes: t.plan.BatchNodes, Inner: t.plan.BatchInner,
			Edges: t.plan.BatchEdges, StepBytes: t.plan.Step},
		Slots: s.Slots, SlotsKept: s.Kept, InPlace: s.InPlace, StageRows: s.StageRows,
		PlanBytes: s.Planning, AccessBytes: s.Accesses, NextBytes: s.NextUses,
		Workers: t.cfg.Threads, Threads: ioThreads(t.cfg.Threads), Ready: t.plan.Ready,
		Budget: in.budget,
	}
	if s.Batches == 0 && !t.cfg.LoadOnly {
		c.Until = t.certain
	}
	if s.Kept < s.Slots && !t.cfg.LoadOnly { // evaluation takes their memory
		if s.spill(t.dims[0]) > s.Storage/spillShare {
			c.Until = t.nextEvaluation // the superbatch has ended then
		} else if !t.loading {
			c.Spill = func(epoch uint64) bool { return t.evaluates(int(epoch) + 1) }
		}
	}
	if t.device != nil {
		c.Sweeper, c.SweepBytes, c.Costs = in.reader, s.Sweep, t.readCosts()
		c.SweepAhead = s.SweepAhead
		c.Decided = func(r superbatch.Reading) {
			t.reads = append(t.reads, r)
			t.obs(Event{Reading: &r})
		}
	}
	return c
}

// nextEvaluation is the epoch before which the run evaluates after one.
func (t *trainer) nextEvaluation(epoch uint64) uint64 {
	every := uint64(t.cfg.EvalEvery)
	return (epoch/every + 1) * every
}

// certain is the first epoch that the run may end before, if a superbatch begins in epoch: when
// evaluations from now on do not improve. No batch is sampled that may not be trained on.
func (t *trainer) certain(epoch uint64) uint64 {
	every := uint64(t.cfg.EvalEvery)
	next := t.nextEvaluation(epoch)
	if t.cfg.Patience == 0 {
		return max(next, epoch+epochsAhead)
	}
	left := uint64(max(0, t.cfg.Patience-t.pos.SinceBest))
	return max(next, min((t.pos.Epoch/every+left)*every, epoch+epochsAhead))
}

// epochsAhead are sampled before the first of them is trained on, if the storage has room: with
// more, a sweep for all of them would not cost much less.
const epochsAhead = 8

// readCosts are what reading and writing cost on this device, and a step besides.
func (t *trainer) readCosts() superbatch.Costs {
	d := t.device
	c := superbatch.Costs{Read: d.ReadSeconds, Byte: d.ByteSeconds, Written: d.Write.Seconds}
	if f := t.plan.Forecast; f != nil {
		c.Step = f.Step
	}
	return c
}

// cacheStats are those of the cache that the run's batches come through.
func (t *trainer) cacheStats() sample.CacheStats {
	if t.loader != nil {
		return t.loader.CacheStats()
	}
	return t.in.features.Stats()
}
