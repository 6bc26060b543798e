package topology

import (
	"context"
	"errors"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listfile"
)

// Columns decodes columns of the lists of the last Degrees, block by block: first those of lists
// that are wholly in a pinned block, then those of other lists, whose blocks are read in one batch,
// each once. The neighbor cache has neighbors only, so the blocks of lists found there are read
// here. It takes the columns of a block's part of a list, and 24 bytes per list and block that is
// not pinned.
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
	var stop error // error of fn, which is no damage of a block
	err := s.each(ctx, func(b *listfile.Block, keys []uint64) error {
		for _, key := range keys {
			var err error
			list := s.order.Keys[s.refs[uint32(key)].to]
			if stop, err = s.columnsOf(b, list, &columns, fn); stop != nil || err != nil {
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

// findUncached finds the lists of the last Degrees in blocks if the neighbor cache had some of
// them. These no longer count as its hits.
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

// columnsPinned passes the lists that are wholly in block need[k], if that is pinned, and notes the
// blocks of the others. A ref's to is then the index of the list's key in order.
func (s *pagedSession) columnsPinned(k int, columns *Columns, fn func(p Part) error) error {
	n, first, data := s.need[k], s.first[k], s.held[k].data
	keys, here := s.order.Keys[first:s.first[k+1]], s.here[:0]
	for j, key := range keys {
		v, i := layout.NodeID(key>>32), uint32(key)
		if s.list[i].block == nowhere {
			continue
		}
		b := s.blockOf(v, 0, n)
		if b == n && data != nil {
			if !columns.skips(i, 0) {
				here = append(here, key)
			}
			continue
		}
		for ; b <= n; b++ {
			if !columns.skips(i, s.startIn(v, b)) {
				s.wantAt(b, ref{node: v, to: first + uint32(j)})
			}
		}
	}
	s.here = here
	if len(here) == 0 {
		return nil
	}
	b, err := s.get.parse(n, data)
	for j := 0; j < len(here) && err == nil; j++ {
		var stop error
		if stop, err = s.columnsOf(&b, here[j], columns, fn); stop != nil {
			return stop
		}
	}
	if err != nil {
		return s.damage(n, err)
	}
	return nil
}

// startIn returns the position in the list of v of the first entry that a block has of it.
func (s *pagedSession) startIn(v layout.NodeID, block uint32) uint32 {
	if key := s.p.ix.Keys[block]; layout.NodeID(key>>32) == v {
		return uint32(key)
	}
	return 0
}

// columnsOf passes to fn what block b has of the list of a key of order. stop is fn's error, and
// err is an error of the block.
func (s *pagedSession) columnsOf(b *listfile.Block, key uint64, columns *Columns,
	fn func(p Part) error) (stop, err error) {
	slot := uint32(key>>32) - uint32(b.First)
	if slot >= b.Slots {
		return nil, nil // no neighbors
	}
	p, err := s.p.f.Shape.Part(b, slot)
	if err != nil || p.Count == 0 {
		return nil, err
	}
	return fn(s.columns.part(&s.p.f.Shape, b, &p, int(uint32(key)), columns)), nil
}
