package topology

import (
	"context"
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
