package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/rowcache"
	"gdb/train"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/probe"
)

// epochOf is the batches of an epoch, and what they took: a loader.Epoch, or the like.
type epochOf interface {
	sample.Batches
	Lap(s *loader.Sums)
}

// feed is what feeds a system: batches, and where there is a model the steps on them.
type feed struct {
	plan  *plan.Plan // nil for the mmap baseline
	epoch func(ctx context.Context) (epochOf, error)
	step  func(b *sample.Batch) (loss float64, err error) // nil without a model
	close func() error
}

// openFeed opens the batches that a training would have, with or without a model.
func openFeed(ctx context.Context, store *layout.Store, dev blockdev.Device, cfg train.Config,
	withModel bool) (*feed, error) {
	if !withModel {
		return openBatches(ctx, store, dev, cfg)
	}
	t, err := train.Open(ctx, store, dev, cfg)
	if err != nil {
		return nil, err
	}
	return &feed{plan: t.Plan(), step: t.Step, close: t.Close,
		epoch: func(ctx context.Context) (epochOf, error) { return t.Epoch(ctx) }}, nil
}

// openBatches opens batches that no step follows. Rows that the first layer of the model would read
// where they are kept stay there.
func openBatches(ctx context.Context, store *layout.Store, dev blockdev.Device,
	cfg train.Config) (f *feed, err error) {
	if cfg.Threads == 0 {
		cfg.Threads = runtime.NumCPU()
	}
	if cfg.Memory == 0 {
		cfg.Memory = mem.Available() / 2
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := store.Meta()
	if len(m.Features) == 0 || m.Labels == nil {
		return nil, fmt.Errorf("bench: %s has no features or no labels: there is nothing to load",
			store.Path())
	}
	dims := model.Of(&cfg).Dims(m.Features[0].Dim, len(m.Labels.Classes))
	src := loader.NewSource(store, dev, mem.NewProcessBudget(cfg.Memory))
	defer func() {
		if err != nil {
			err = errors.Join(err, src.Close())
		}
	}()
	src.LayerSize, src.PackRows = cfg.LayerSize, cfg.PacksFeatures()
	c := probe.Config{Fanout: cfg.Fanout, Seed: cfg.Seed, Remeasure: cfg.Remeasure,
		Profiles: cfg.Profiles,
		StepName: fmt.Sprint("none", cfg.Fanout, cfg.LayerSize, dims,
			cfg.Batch, cfg.Threads, cfg.Split, cfg.Precision)}
	c.Memory, c.Settings = cfg.Memory, plan.SettingsOf(&cfg)
	c.EntryBytes, c.InPlaceResident = src.EntryBytes(), model.Of(&cfg).InPlaceResident(dims)
	opened, p, err := probe.Open(ctx, src, cfg.Split, c)
	if err != nil {
		return nil, err
	}
	epoch := uint64(0)
	return &feed{plan: p,
		epoch: func(ctx context.Context) (epochOf, error) {
			epoch++
			return opened.Epoch(ctx, epoch-1, 0)
		},
		close: func() error { return errors.Join(opened.Close(), src.Close()) }}, nil
}

// openMappedFeed opens batches of mapped files, whose memory is not bounded. Features are gathered
// when a batch is asked for, into one buffer, so that the page cache has all that is left.
func openMappedFeed(ctx context.Context, store *layout.Store, dev blockdev.Device, g *mapped,
	cfg train.Config, withModel bool) (f *feed, err error) {
	src := loader.NewSource(store, dev, mem.NewBudget(0))
	src.Topology, src.Features, src.LayerSize = g, mappedRows{g}, cfg.LayerSize
	r := &gatherer{rows: src.Features, budget: src.Budget}
	f = &feed{}
	steps := func() error { return nil }
	f.close = func() error { return errors.Join(steps(), r.free(), src.Close()) }
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	seeds, err := loader.TrainNodes(ctx, store, cfg.Split, src.Budget)
	if err != nil {
		return nil, err
	}
	if err := src.OpenLabels(ctx); err != nil {
		return nil, err
	}
	if withModel {
		src.Extras = model.Of(&cfg).Spec(model.Of(&cfg).Dims(store.Meta().Features[0].Dim,
			1)).Extras()
		s, err := train.NewStepper(cfg, store.Meta(), src.Budget)
		if err != nil {
			return nil, err
		}
		steps, f.step = s.Close, s.Step
	}
	batches := loader.New(src, loader.Config{Seeds: seeds, Batch: cfg.Batch, Fanout: cfg.Fanout,
		Seed: cfg.Seed, Ready: plan.ReadyLeast, Later: true})
	epoch := uint64(0)
	f.epoch = func(ctx context.Context) (epochOf, error) {
		epoch++
		e, err := batches.Epoch(ctx, epoch-1, 0)
		return &gathered{Epoch: e, by: r}, err
	}
	return f, nil
}

// gatherer gathers the features of batches into one buffer.
type gatherer struct {
	rows   rowcache.Features
	budget *mem.Budget
	arena  *mem.Arena
	took   time.Duration // since the last lap
}

// gather fills in the features of a batch that came without.
func (r *gatherer) gather(ctx context.Context, b *sample.Batch) error {
	begun, n := time.Now(), len(b.Dense.NodeIDs)*r.rows.Dim()
	if r.arena == nil || len(r.arena.Bytes()) < 4*n {
		err := r.free()
		if err == nil {
			r.arena, err = mem.NewArena(r.budget, "features of a batch", int64(4*n+n/2))
		}
		if err != nil {
			return err
		}
	}
	b.Dim, b.X = r.rows.Dim(), mem.View[float32](r.arena.Bytes())[:n:n]
	err := r.rows.Gather(ctx, b.Dense.NodeIDs, b.X)
	r.took += time.Since(begun)
	return err
}

func (r *gatherer) free() error {
	a := r.arena
	if r.arena = nil; a == nil {
		return nil
	}
	return a.Free()
}

// gathered is an epoch whose batches are gathered when they are asked for.
type gathered struct {
	*loader.Epoch
	by *gatherer
}

// Next returns the next batch with its features.
func (g *gathered) Next(ctx context.Context) (*sample.Batch, error) {
	b, err := g.Epoch.Next(ctx)
	if err != nil {
		return nil, err
	}
	return b, g.by.gather(ctx, b)
}

// Lap counts the time of gathering as such: the loader takes it for the consumer's.
func (g *gathered) Lap(s *loader.Sums) {
	g.Epoch.Lap(s)
	s.Gather, s.Compute = s.Gather+g.by.took, s.Compute-g.by.took
	g.by.took = 0
}
