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

// Lists copies the whole lists of nodes, block by block. They are valid until the next call.
func (s *pagedSession) Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists, error) {
	s.deg = mem.Resize(s.deg, len(nodes))
	if err := s.find(ctx, nodes, s.deg, nil); err != nil {
		return nil, err
	}
	l, total := &s.lists, uint64(0)
	l.Off = append(l.Off[:0], 0)
	for i, d := range s.deg {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		total += uint64(d)
		l.Off = append(l.Off, total)
	}
	l.Nbrs = mem.Resize(l.Nbrs, int(total))
	s.p.f.Shape.SizeAttributes(l, int(total))
	if err := s.wantLists(ctx); err != nil {
		return nil, err
	}
	err := s.each(ctx, func(b *listfile.Block, keys []uint64) error {
		for _, key := range keys {
			if err := s.copyList(b, s.refs[uint32(key)]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, ctx.Err()
}

// wantLists notes every block of every list. A ref's to is the index of its node.
func (s *pagedSession) wantLists(ctx context.Context) error {
	s.refs = s.refs[:0]
	s.want.Reset(0)
	var steps pace.Steps
	for k, last := range s.need {
		for _, key := range s.order.Keys[s.first[k]:s.first[k+1]] {
			i, v := uint32(key), layout.NodeID(key>>32)
			if err := steps.Took(ctx, 1+int(s.deg[i])/blockEntries); err != nil {
				return err
			}
			if s.deg[i] == 0 {
				continue
			}
			for b := s.blockOf(v, 0, last); b <= last; b++ {
				s.wantAt(b, ref{node: v, to: i})
			}
		}
	}
	return nil
}

// blockEntries is about how many entries of a long list are in a block.
const blockEntries = 1 << 10

// ListPart copies entries from … to-1 of a list, reading only the blocks that hold them. They are
// valid until the next call.
func (s *pagedSession) ListPart(ctx context.Context, node layout.NodeID, from,
	to uint32) (*listfile.Lists, error) {
	s.deg = mem.Resize(s.deg, 1)
	s.single[0] = node
	if err := s.find(ctx, s.single[:], s.deg, nil); err != nil {
		return nil, err
	}
	if from > to || to > s.deg[0] {
		return nil, fmt.Errorf("layout: entries %d to %d of node %d's list: it has %d", from, to,
			node, s.deg[0])
	}
	l := &s.lists
	l.Off = append(l.Off[:0], 0, uint64(to-from))
	l.Nbrs = mem.Resize(l.Nbrs, int(to-from))
	s.p.f.Shape.SizeAttributes(l, int(to-from))
	s.refs = s.refs[:0]
	s.want.Reset(0)
	if from < to {
		last := s.need[0]
		for b := s.blockOf(node, from, last); b <= s.blockOf(node, to-1, last); b++ {
			s.wantAt(b, ref{node: node})
		}
	}
	err := s.each(ctx, func(b *listfile.Block, _ []uint64) error {
		return s.copyPart(b, node, from, to)
	})
	if err != nil {
		return nil, err
	}
	return l, ctx.Err()
}

// decodePart decodes what a block has of a node's list. The slice is valid until the next call.
func (s *pagedSession) decodePart(b *listfile.Block, node layout.NodeID) (listfile.Part,
	[]layout.NodeID, error) {
	p, err := s.part(b, node)
	if err != nil {
		return p, nil, err
	}
	s.ids = mem.Resize(s.ids, int(p.Count))
	return p, s.ids, p.Decode(&s.p.f.Shape, s.ids)
}

// copyPart copies the entries of from … to-1 that block b has.
func (s *pagedSession) copyPart(b *listfile.Block, node layout.NodeID, from, to uint32) error {
	p, ids, err := s.decodePart(b, node)
	if err != nil {
		return err
	}
	lo, hi := max(from, p.Start), min(to, p.Start+p.Count)
	if lo >= hi {
		return damagedRun(b, &p)
	}
	copy(s.lists.Nbrs[lo-from:hi-from], ids[lo-p.Start:])
	first := int(p.Entry + lo - p.Start)
	s.p.f.Shape.CopyAttributes(b, first, first+int(hi-lo), &s.lists, uint64(lo-from))
	return nil
}

// copyList copies the part of a list that a block has to its place in s.lists.
func (s *pagedSession) copyList(b *listfile.Block, r ref) error {
	l := &s.lists
	p, err := s.part(b, r.node)
	if err != nil {
		return err
	}
	to := l.Off[r.to] + uint64(p.Start)
	end := to + uint64(p.Count)
	if end > l.Off[r.to+1] {
		return damagedRun(b, &p)
	}
	if err := p.Decode(&s.p.f.Shape, l.Nbrs[to:end]); err != nil {
		return err
	}
	s.p.f.Shape.CopyAttributes(b, int(p.Entry), int(p.Entry+p.Count), l, to)
	return nil
}

// damagedRun returns the error of a block that contradicts the other blocks of a list.
func damagedRun(b *listfile.Block, p *listfile.Part) error {
	return fmt.Errorf("%w has %d entries from position %d of a list from node %d on, not those "+
		"that the last block of the list speaks of", listfile.ErrBlock, p.Count, p.Start, b.First)
}

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
