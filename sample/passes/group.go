// Package passes samples many batches at a time from a topology that does not fit in memory. A hop
// of all of them is one pass through the file of lists, in its order: each block is read at most
// once a hop, in large reads, where batches by themselves would read it once for each of them, in
// small ones. Draws are functions of batch, hop and node, so that batches are the same.
package passes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample"

	"golang.org/x/sync/errgroup"
)

// Config says what is sampled.
type Config struct {
	// Windows are what lists are read through. The group has them for itself, and closes them.
	Windows *topology.Windows
	// Sampler makes a sampler that reads from Windows; it is called Workers times.
	Sampler func(t topology.Reader) (*sample.Sampler, error)
	// Order is that of the batches of an epoch, of which each has PerEpoch.
	Order    func(epoch uint64) (*sample.Order, error)
	PerEpoch uint64
	// First is the first step, counted over all epochs, and End the one after the last.
	First, End uint64
	// Workers is the number of goroutines that sample.
	Workers int
	// Room is the memory for batches that were drawn and are not taken yet, and for drawing them:
	// as many are drawn together as it has room for.
	Room int64
	// Budget counts the memory.
	Budget *mem.Budget
}

// Group samples a run of batches, as many at a time as there is room for. It may be used from any
// goroutine.
type Group struct {
	cfg      Config
	samplers []*sample.Sampler

	mu    sync.Mutex
	next  uint64 // the first step that was not drawn
	drawn map[uint64]*sample.Partial
	room  mem.Account
	share []float64 // of a hop: edges over what its fanout allows, in what was drawn last
	alone bool      // there was no room for a single batch
}

// New returns a group. The caller closes it.
func New(cfg Config) (*Group, error) {
	g := &Group{cfg: cfg, next: cfg.First, drawn: map[uint64]*sample.Partial{},
		room: mem.NewAccount(cfg.Budget, "batches drawn in passes")}
	for range max(1, cfg.Workers) {
		s, err := cfg.Sampler(cfg.Windows)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.samplers = append(g.samplers, s)
	}
	return g, nil
}

// Close frees the memory.
func (g *Group) Close() error {
	for _, s := range g.samplers {
		s.Close()
	}
	g.samplers, g.drawn = nil, nil
	g.room.Release()
	return g.cfg.Windows.Close()
}

// Take writes a batch to d, whose memory it reuses, and forgets it. It draws those that follow, if
// the batch was not drawn yet. ok is false if it does not have the batch: it was taken before, or
// there was no room to draw even one.
func (g *Group) Take(ctx context.Context, epoch, batch uint64, d *sample.Dense) (ok bool,
	err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	step := epoch*g.cfg.PerEpoch + batch
	for step >= g.next && step < g.cfg.End && !g.alone {
		if err := g.draw(ctx); err != nil {
			var full *mem.LimitError
			if !errors.As(err, &full) {
				return false, fmt.Errorf("passes: sample from step %d: %w", g.next, err)
			}
			g.alone = true
		}
	}
	p := g.drawn[step]
	if p == nil {
		return false, nil
	}
	if err := g.samplers[0].Finish(ctx, p, d); err != nil {
		return false, err
	}
	delete(g.drawn, step)
	return true, g.room.Add(-p.Bytes())
}

// draw draws the next batches: fewer, as long as there is no room for them.
func (g *Group) draw(ctx context.Context) error {
	for most := g.cfg.End - g.next; ; {
		d := &drawing{Group: g, before: g.room.Bytes()}
		err := d.run(ctx, most)
		if err == nil {
			for _, m := range d.members {
				g.drawn[m.Epoch*g.cfg.PerEpoch+m.Batch] = &m.Partial
			}
			g.next += uint64(len(d.members))
			return nil
		}
		var full *mem.LimitError
		n := uint64(len(d.members))
		if !errors.As(err, &full) || n < 2 {
			return errors.Join(err, d.count(true))
		}
		most = n / 2
		d.members = nil
		if err := d.count(true); err != nil {
			return err
		}
	}
}

// each calls fn with every member, on all workers.
func (d *drawing) each(ctx context.Context, fn func(ctx context.Context, s *sample.Sampler,
	m *member) error) error {
	var next atomic.Int64
	work, ctx := errgroup.WithContext(ctx)
	for _, s := range d.samplers {
		work.Go(func() error {
			defer bug.Catch()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(d.members) || ctx.Err() != nil {
					return ctx.Err()
				}
				if err := fn(ctx, s, d.members[i]); err != nil {
					return err
				}
			}
		})
	}
	return work.Wait()
}
