package train

import (
	"context"

	"gdb/layout"
	"gdb/sample"
	"gdb/sample/superbatch"
)

// cacheBelady is the policy that needs to know the batches to come: it trains on superbatches.
const cacheBelady = "belady"

// batches starts what is left of the epoch in which the run stands.
func (t *trainer) batches(ctx context.Context, order *sample.Order) (sample.Batches, error) {
	if t.plan.Superbatch == nil {
		return t.in.pipeline(ctx, &t.cfg, order, t.pos.Batch, t.plan.Ready)
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
		Prep: in.store.Path("prep"), Name: t.dir.name, UUID: in.meta.UUID, Device: in.dev,
		Batches: s.Batches, StorageBytes: s.Storage, Overlap: s.Overlap,
		Slots: s.Slots, SlotsKept: s.Kept, InPlace: s.InPlace, StageRows: s.StageRows,
		PlanBytes: s.Planning, AccessBytes: s.Accesses, NextBytes: s.NextUses,
		Workers: t.cfg.Threads, Threads: ioThreads(t.cfg.Threads), Ready: t.plan.Ready,
		Budget: in.budget,
	}
	// Evaluation takes the memory of slots that are not kept: a superbatch has ended then.
	if (s.Batches == 0 || s.Kept < s.Slots) && !t.cfg.LoadOnly {
		c.EpochsMost = uint64(t.cfg.EvalEvery)
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
