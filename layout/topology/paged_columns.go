package topology

import (
	"context"
	"errors"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout/listfile"
)

// Columns decodes what the lists of the last Degrees have, block by block: first those of blocks
// that are pinned, then those of hubs, and of blocks that did not stay, which are read in one
// batch, each block once. The neighbor cache has neighbors only; with it, the blocks of the lists
// that it had are read here. Memory: the columns of one list, or of one block of a hub, and 24
// bytes per list and block that are not at hand.
func (s *pagedSession) Columns(ctx context.Context, columns Columns,
	fn func(p Part) error) error {
	if err := columns.lacks(s.p.f); err != nil {
		return err
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
		if err := s.columnsPinned(k, &columns, fn); err != nil {
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
			r := s.refs[uint32(key)]
			if b.Hub && b.Start != r.at {
				return damagedRun(b)
			}
			var err error
			stop, err = s.columnsOf(b, s.order.Keys[r.to], &columns, fn)
			if stop != nil || err != nil {
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

// columnsPinned gives the lists in block need[k] if it is at hand, and else notes them: refs then
// hold which key of order a list has and, for a hub, the position of the block's first entry.
func (s *pagedSession) columnsPinned(k int, columns *Columns, fn func(p Part) error) error {
	h, n, first := &s.held[k], s.need[k], s.first[k]
	keys := s.order.Keys[first:s.first[k+1]]
	want := func(block, key, at uint32) {
		s.want.Keys = append(s.want.Keys, uint64(block)<<32|uint64(len(s.refs)))
		s.refs = append(s.refs, ref{to: key, at: at})
	}
	if h.hub {
		room := s.p.f.Shape.HubCapacity
		for j := range keys {
			i := uint32(keys[j])
			if s.list[i].block == nowhere {
				continue
			}
			for b := uint32(0); b <= h.start/room; b++ {
				if !columns.skips(i, b*room) {
					want(n-h.start/room+b, first+uint32(j), b*room)
				}
			}
		}
		return nil
	}
	if h.data == nil {
		for j := range keys {
			if !columns.skips(uint32(keys[j]), 0) {
				want(n, first+uint32(j), 0)
			}
		}
		return nil
	}
	b, err := s.get.parse(n, h.data)
	for j := 0; j < len(keys) && err == nil; j++ {
		if columns.skips(uint32(keys[j]), 0) {
			continue
		}
		var stop error
		if stop, err = s.columnsOf(&b, keys[j], columns, fn); stop != nil {
			return stop
		}
	}
	if err != nil {
		return s.damage(n, err)
	}
	return nil
}

// columnsOf gives fn what block b holds of the list of a key of order. stop is fn's error, err that
// of the block.
func (s *pagedSession) columnsOf(b *listfile.Block, key uint64, columns *Columns,
	fn func(p Part) error) (stop, err error) {
	slot, from, to := uint32(key>>32)-uint32(b.First), uint32(0), b.Entries
	if slot >= b.Slots {
		return nil, nil // no neighbors
	}
	if !b.Hub {
		if from, to, err = s.p.f.Shape.List(b, slot); err != nil || from == to {
			return nil, err
		}
	}
	part := Part{List: int(uint32(key)), From: b.Start}
	if columns.Weights {
		s.weight = mem.Resize(s.weight, int(to-from))
		s.p.f.Shape.CopyWeights(b, int(from), s.weight)
		part.Weights = s.weight
	}
	if columns.Times {
		s.times = mem.Resize(s.times, int(to-from))
		s.p.f.Shape.CopyTimes(b, int(from), s.times)
		part.Times = s.times
	}
	return fn(part), nil
}
