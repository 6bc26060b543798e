package probe

import (
	"context"
	"fmt"
	"os"

	"gdb/sample/loader"
	"gdb/train/plan"
)

// Open opens a loader of batches for callers that train no model themselves. The seeds are
// cfg.Seeds or, if there are none, the nodes of the training split. It loads the seeds, plans the
// memory, and opens what the plan says. Where batches are lent the caller gathers their features,
// and of superbatches copies them. The caller closes the loader, then the source.
func Open(ctx context.Context, src *loader.Source, split string,
	cfg Config) (l *loader.Loader, p *plan.Plan, err error) {
	if err := CheckLeast(src, cfg.Memory, 0); err != nil {
		return nil, nil, fmt.Errorf("probe: %w", err)
	}
	if cfg.Seeds == nil {
		cfg.Seeds, err = loader.TrainNodes(ctx, src.Store, split, src.Budget)
		if err != nil {
			return nil, nil, err
		}
	}
	if err := src.OpenRows(ctx); err != nil {
		return nil, nil, err
	}
	if src.Meta.Labels != nil {
		if err := src.OpenLabels(ctx); err != nil {
			return nil, nil, err
		}
	}
	m, err := New(src, cfg, nil)
	if err != nil {
		return nil, nil, err
	}
	best, err := m.best(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !src.InTurns {
		if err := src.ChangeGraph(ctx, src.Graph); err != nil {
			return nil, nil, err
		}
	}
	c := loader.Config{Seeds: cfg.Seeds, Batch: cfg.Batch, Fanout: cfg.Fanout,
		ByRelation: cfg.ByRelation, Seed: cfg.Seed, Workers: best.Samplers,
		PassWorkers: cfg.Threads, Ready: best.Ready, InTurn: best.InTurn, RowBytes: best.RowBytes(),
		Later: cfg.Lent > 0, Places: cfg.Places}
	cache := loader.Cache{Policy: best.Cache, Bytes: best.Features,
		Threads: plan.CopyThreads(cfg.Threads), Staged: best.Staged(),
		Lend: cfg.InPlaceResident}
	if best.GivesBack() {
		cache.Bytes += cfg.Spare
		best.Features, best.Memory = best.Features+cfg.Spare, best.Memory+cfg.Spare
	}
	if best.Superbatch != nil {
		device, err := m.Profile(ctx)
		if err != nil {
			return nil, nil, err
		}
		cache.Policy, c.Superbatch = "none", best.SuperbatchConfig(device, cfg.Threads)
		c.Superbatch.Epochs = uint64(cfg.Epochs)
		c.Superbatch.Name = fmt.Sprint("batches-", os.Getpid())
	}
	if err := src.OpenFeatures(ctx, cache); err != nil {
		return nil, nil, err
	}
	return loader.New(src, c), best, nil
}

// best returns the split that was chosen before for the same settings, or else chooses one.
func (m *Probe) best(ctx context.Context) (*plan.Plan, error) {
	best, err := m.Kept(ctx)
	if err != nil || best != nil {
		return best, err
	}
	splits, _, err := m.Plans(ctx)
	if err != nil {
		return nil, err
	}
	return m.Choose(ctx, splits, nil)
}
