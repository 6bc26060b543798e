package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
	"gdb/train/backend"
)

// Loader is a training without its run: the batches that Run would train on, made by the same
// readers, caches and pipeline out of the same split of the memory, and on request the same steps.
// Nothing is evaluated, and no file is left. It is for one goroutine.
type Loader struct {
	t        *trainer
	replaced bool // readers are the caller's, features are gathered here
	rows     *mem.Arena
	gathered time.Duration // in this epoch, here

	pipe  sample.Batches
	meter *meter
	last  LoaderStats
}

// LoaderStats are the figures of one epoch. Stages overlap, so their times add up to more than
// Time; Wait is the consumer's for batches, IOWait the part of it while reads were under way.
type LoaderStats struct {
	Batches                                              int
	Nodes, Edges                                         uint64
	Time, Sample, Gather, Compute, Wait, IOWait, Reading time.Duration
	Read                                                 uint64 // bytes, by the device
	Requests, Hits                                       uint64 // of feature rows
}

// Readers take the place of a store's own readers, for comparisons. They are closed by their owner.
type Readers struct {
	Topology layout.Topology
	Features sample.Features
}

// OpenLoader opens what Run would open, weights included: the memory is split in the same way, so
// that an epoch here tells what a faster model, or another machine's, would be fed at. It has
// cfg.Epochs epochs.
func OpenLoader(ctx context.Context, store *layout.Store, dev blockdev.Device,
	cfg Config) (*Loader, error) {
	t := &trainer{cfg: cfg, obs: func(Event) {}, loading: true}
	err := t.prepare(ctx, store)
	if err == nil {
		err = t.open(ctx, store, dev)
	}
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	t.model.Params().Init(t.be, t.cfg.Seed)
	return &Loader{t: t}, nil
}

// OpenLoaderFrom is OpenLoader with other readers, whose memory is not bounded. Features are
// gathered when a batch is asked for, into one buffer, so that what they keep in memory, such as a
// page cache, has all that is left.
func OpenLoaderFrom(ctx context.Context, store *layout.Store, dev blockdev.Device, cfg Config,
	r Readers) (*Loader, error) {
	t := &trainer{cfg: cfg, obs: func(Event) {}, loading: true}
	err := t.prepare(ctx, store)
	if err == nil {
		err = t.openReplaced(ctx, store, dev, r)
	}
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	t.model.Params().Init(t.be, t.cfg.Seed)
	return &Loader{t: t, replaced: true}, nil
}

// openReplaced opens labels, backend and model beside the readers of another.
func (t *trainer) openReplaced(ctx context.Context, store *layout.Store, dev blockdev.Device,
	r Readers) (err error) {
	m := store.Meta()
	t.in = &inputs{store: store, dev: dev, meta: m, budget: mem.NewBudget(0), topology: r.Topology,
		features: r.Features}
	t.closers = append(t.closers, t.in)
	if err := t.loadSplits(ctx, store); err != nil {
		return err
	}
	if err := t.in.openLabels(ctx); err != nil {
		return err
	}
	t.dims = modelDims(&t.cfg, r.Features.Dim(), t.in.classes)
	t.be, err = backend.Open(t.cfg.Backend, backend.Options{Workers: t.cfg.Threads,
		Budget: t.in.budget})
	if err != nil {
		return err
	}
	t.closers = append(t.closers, t.be)
	t.plan = &Plan{Memory: t.cfg.Memory, Ready: readyLeast, Cache: "none"}
	if t.model, err = t.cfg.Architecture().New(t.be, t.dims, true, t.in.budget); err != nil {
		return err
	}
	t.opt, err = newOptimizer(t.be, &t.cfg, t.model.Params())
	return err
}

// Plan is how the memory was split; it is not of those of OpenLoaderFrom.
func (l *Loader) Plan() *Plan { return l.t.plan }

// Next returns the next batch, or io.EOF at the end of each epoch; the call after that begins the
// next one. The caller releases the batch before the next call.
func (l *Loader) Next(ctx context.Context) (*sample.Batch, error) {
	if l.pipe == nil {
		if err := l.begin(ctx); err != nil {
			return nil, err
		}
	}
	b, err := l.pipe.Next(ctx)
	if errors.Is(err, io.EOF) {
		if err := l.end(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	if err == nil && l.replaced {
		err = l.gather(ctx, b)
	}
	if err != nil {
		return nil, fmt.Errorf("train: epoch %d, batch %d: %w", l.t.pos.Epoch+1,
			l.t.pos.Sums.Batches+1, err)
	}
	l.t.pos.Sums.Batches++
	l.t.pos.Sums.Edges += uint64(len(b.Dense.Nbrs))
	l.t.pos.Sums.Nodes += uint64(len(b.Dense.NodeIDs))
	return b, nil
}

// begin starts the pipeline of an epoch.
func (l *Loader) begin(ctx context.Context) error {
	t := l.t
	order, err := sample.EpochOrder(t.train, t.cfg.Seed, t.pos.Epoch, t.cfg.Batch)
	if err != nil {
		return err
	}
	meter := t.startMeter()
	if l.replaced {
		l.pipe, err = sample.NewPipeline(ctx, sample.PipelineConfig{
			Sampler: func() (*sample.Sampler, error) {
				return sample.NewSampler([]layout.Topology{t.in.topology},
					sample.Config{Fanout: t.cfg.Fanout, Seed: t.cfg.Seed})
			},
			Order: order, Labels: t.in.labels, Ready: readyLeast})
	} else {
		l.pipe, err = t.batches(ctx, order)
	}
	if err != nil {
		return err
	}
	meter.follow(l.pipe)
	l.meter = meter
	return nil
}

// gather fills in the features of a batch that came without.
func (l *Loader) gather(ctx context.Context, b *sample.Batch) error {
	begun, f := time.Now(), l.t.in.features
	n := len(b.Dense.NodeIDs) * f.Dim()
	if l.rows == nil || len(l.rows.Bytes()) < 4*n {
		err := l.freeRows()
		if err == nil {
			l.rows, err = mem.NewArena(l.t.in.budget, "features of a batch", int64(4*n+n/2))
		}
		if err != nil {
			return err
		}
	}
	b.Dim, b.X = f.Dim(), mem.View[float32](l.rows.Bytes())[:n:n]
	err := f.Gather(ctx, b.Dense.NodeIDs, b.X)
	l.gathered += time.Since(begun)
	return err
}

func (l *Loader) freeRows() error {
	if l.rows == nil {
		return nil
	}
	a := l.rows
	l.rows = nil
	return a.Free()
}

// Step trains on a batch as Run does, and returns its mean loss.
func (l *Loader) Step(b *sample.Batch) (float64, error) { return l.t.step(b) }

// end closes the pipeline of an epoch and keeps its figures.
func (l *Loader) end() error {
	s := &l.t.pos.Sums
	l.meter.stop(s)
	l.last = LoaderStats{Batches: s.Batches, Nodes: s.Nodes, Edges: s.Edges, Time: s.Time,
		Sample: s.Sample, Gather: s.Gather + l.gathered, Compute: s.Compute - l.gathered,
		Wait: s.Wait, IOWait: s.IOWait, Reading: s.IO, Read: s.Read, Requests: s.Requests,
		Hits: s.Hits}
	l.gathered, l.t.reads = 0, nil
	l.t.pos.Epoch, l.t.pos.Sums = l.t.pos.Epoch+1, epochSums{}
	pipe := l.pipe
	l.pipe, l.meter = nil, nil
	return pipe.Close()
}

// Stats are the figures of the epoch that ended last.
func (l *Loader) Stats() LoaderStats { return l.last }

// Close ends the epoch at hand and frees all.
func (l *Loader) Close() error {
	var err error
	if l.pipe != nil {
		err = l.pipe.Close()
		l.pipe = nil
	}
	return errors.Join(err, l.freeRows(), l.t.close())
}
