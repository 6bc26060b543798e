package topology

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listfile"
)

// Weights decodes the weights of the lists of the last Degrees, block by block: first those of
// blocks that are pinned, then those of hubs, and of blocks that did not stay, which are read in
// one batch, each block once. The neighbor cache has no weights; with it, the blocks of the lists
// that it had are read here. Memory: the weights of one list, or of one block of a hub, and 24
// bytes per list and block that are not at hand.
func (s *pagedSession) Weights(ctx context.Context,
	fn func(i int, from uint32, w []float32) error) error {
	if !s.p.f.Shape.Weights {
		return fmt.Errorf("layout: read weights of %s: %w", s.p.f.Path, ErrNoWeights)
	}
	if err := s.findUncached(ctx); err != nil {
		return err
	}
	if len(s.list) == 0 {
		return ctx.Err() // Degrees failed, or there are no nodes
	}
	s.refs = s.refs[:0]
	s.want.Reset(0)
	var steps pace.Steps
	for k := range s.need {
		work := pace.Block + int(s.first[k+1]-s.first[k])
		if err := steps.Took(ctx, work); err != nil {
			return err
		}
		if err := s.weighPinned(k, fn); err != nil {
			return err
		}
	}
	if len(s.refs) == 0 {
		return ctx.Err()
	}
	if err := s.count.AtLeast(s.bytes()); err != nil {
		return err
	}
	var stop error // of fn: no damage of the block
	err := s.each(ctx, func(b *listfile.Block, keys []uint64) error {
		for _, key := range keys {
			var err error
			list := s.order.Keys[s.refs[uint32(key)].to]
			if stop, err = s.weigh(b, list, fn); stop != nil || err != nil {
				return errors.Join(stop, err)
			}
		}
		return nil
	})
	if stop != nil {
		return stop
	}
	return err
}

// findUncached finds the lists of the last Degrees in blocks if the neighbor cache had some. They
// are no longer hits of it then.
func (s *pagedSession) findUncached(ctx context.Context) error {
	hits := uint64(0)
	for _, p := range s.list {
		if p.block == cached {
			hits++
		}
	}
	if hits == 0 {
		return nil
	}
	s.p.found.Add(-hits)
	s.deg = mem.Resize(s.deg, len(s.nodes))
	return s.find(ctx, s.nodes, s.deg, nil)
}

// weighPinned gives the lists that are in block need[k] as a whole if it is at hand, and notes the
// blocks of the others: to of a ref is then the number of the list's key in order.
func (s *pagedSession) weighPinned(k int, fn func(int, uint32, []float32) error) error {
	n, first, data := s.need[k], s.first[k], s.held[k].data
	keys, here := s.order.Keys[first:s.first[k+1]], s.here[:0]
	for j, key := range keys {
		v := layout.NodeID(key >> 32)
		if s.list[uint32(key)].block == nowhere {
			continue
		}
		b := s.blockOf(v, 0, n)
		if b == n && data != nil {
			here = append(here, key)
			continue
		}
		for ; b <= n; b++ {
			s.wantAt(b, ref{node: v, to: first + uint32(j)})
		}
	}
	s.here = here
	if len(here) == 0 {
		return nil
	}
	b, err := s.get.parse(n, data)
	for j := 0; j < len(here) && err == nil; j++ {
		var stop error
		if stop, err = s.weigh(&b, here[j], fn); stop != nil {
			return stop
		}
	}
	if err != nil {
		return s.damage(n, err)
	}
	return nil
}

// weigh gives fn what block b holds of the weights of the list of a key of order. stop is fn's
// error, err that of the block.
func (s *pagedSession) weigh(b *listfile.Block, key uint64,
	fn func(int, uint32, []float32) error) (stop, err error) {
	slot := uint32(key>>32) - uint32(b.First)
	if slot >= b.Slots {
		return nil, nil // no neighbors
	}
	p, err := s.p.f.Shape.Part(b, slot)
	if err != nil || p.Count == 0 {
		return nil, err
	}
	s.weight = mem.Resize(s.weight, int(p.Count))
	s.p.f.Shape.CopyWeights(b, int(p.Entry), s.weight)
	return fn(int(uint32(key)), p.Start, s.weight), nil
}
