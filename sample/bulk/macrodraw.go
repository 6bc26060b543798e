package bulk

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/sample"

	"golang.org/x/sync/errgroup"
)

// partLeast is the least number of frontier nodes for which another worker is worth it.
const partLeast = 256

// drawer draws macro-batches, one after the other.
type drawer struct {
	samplers []*sample.Sampler // one per worker
	all      sample.Drawn      // what was drawn of a whole frontier
}

// close frees the samplers and the memory.
func (w *drawer) close() {
	for _, s := range w.samplers {
		s.Close()
	}
	*w = drawer{}
}

// draw draws macro-batch m.
func (w *drawer) draw(ctx context.Context, c *MacroConfig, m *macro) error {
	for len(w.samplers) < max(1, c.Workers) {
		s, err := c.Sampler()
		if err != nil {
			return err
		}
		w.samplers = append(w.samplers, s)
	}
	order, err := c.Order(m.epoch)
	if err != nil {
		return err
	}
	var seeds []sample.NodeID
	m.ends = m.ends[:0]
	first := m.number * c.Batches
	for i := first; i < min(first+c.Batches, c.PerEpoch); i++ {
		seeds = order.Seeds(i, seeds)
		m.ends = append(m.ends, uint32(len(seeds)))
	}
	m.taken = make([]bool, len(m.ends))
	err = w.hops(ctx, m, seeds)
	var full *mem.LimitError
	if errors.As(err, &full) {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	return err
}

// hops draws all hops of m from its seeds.
func (w *drawer) hops(ctx context.Context, m *macro, seeds []sample.NodeID) error {
	first := w.samplers[0]
	var p sample.Partial
	if err := first.Start(ctx, m.epoch, m.number, seeds, &p); err != nil {
		return err
	}
	hops, last := first.Hops()
	if last {
		hops++
	}
	for range hops {
		if err := w.frontier(ctx, &p); err != nil {
			return err
		}
		if err := first.Extend(ctx, &p, &w.all); err != nil {
			return err
		}
		if err := m.held.AtLeast(p.Bytes() + w.all.Bytes()); err != nil {
			return err
		}
	}
	if err := m.held.AtLeast(p.Bytes() + w.all.Bytes() + denseBytes(&p)); err != nil {
		return err
	}
	return p.Write(ctx, &m.dense)
}

// denseBytes bounds the memory of the Dense that a Partial is written to, which has neighbors both
// by node and by number.
func denseBytes(p *sample.Partial) int64 { return 2 * p.Bytes() }

// frontier draws the neighbors of the whole frontier; each worker draws for a part of it.
func (w *drawer) frontier(ctx context.Context, p *sample.Partial) error {
	nodes := p.Frontier()
	count := min(len(w.samplers), max(1, len(nodes)/partLeast))
	parts := make([]sample.Drawn, count)
	group, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		part := nodes[i*len(nodes)/count : (i+1)*len(nodes)/count]
		group.Go(func() (err error) {
			defer bug.Catch()
			parts[i], err = w.samplers[i].Draw(ctx, p, part)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	w.join(parts)
	return nil
}

// join joins what was drawn of the parts of a frontier, in their order.
func (w *drawer) join(parts []sample.Drawn) {
	a := &w.all
	*a = sample.Drawn{Off: append(a.Off[:0], 0), Nbrs: a.Nbrs[:0], Weights: a.Weights[:0],
		Types: a.Types[:0], Degrees: a.Degrees[:0], Sums: a.Sums[:0]}
	for _, d := range parts {
		base := a.Off[len(a.Off)-1]
		for _, o := range d.Off[min(1, len(d.Off)):] {
			a.Off = append(a.Off, base+o)
		}
		a.Nbrs = append(a.Nbrs, d.Nbrs...)
		a.Weights, a.Types = append(a.Weights, d.Weights...), append(a.Types, d.Types...)
		a.Degrees, a.Sums = append(a.Degrees, d.Degrees...), append(a.Sums, d.Sums...)
	}
}
