package layout

import (
	"context"
	"fmt"

	"gdb/internal/mem"
)

// Lists copies whole lists, block by block. Memory: the lists themselves.
func (s *pagedSession) Lists(ctx context.Context, nodes []NodeID) (*Lists, error) {
	s.deg = grow(s.deg, len(nodes))
	if err := s.Degrees(ctx, nodes, s.deg); err != nil {
		return nil, err
	}
	l, total := &s.lists, uint64(0)
	l.Off = append(l.Off[:0], 0)
	for _, d := range s.deg {
		total += uint64(d)
		l.Off = append(l.Off, total)
	}
	l.Nbrs = grow(l.Nbrs, int(total))
	s.p.f.shape.sizeAttributes(l, int(total))
	s.wantLists()
	err := s.each(ctx, func(b *block, keys []uint64) error {
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

// wantLists notes every block of every list: refs hold the index of the node and, for a hub, the
// position of the block's first entry, else that of the list's first entry in the block.
func (s *pagedSession) wantLists() {
	s.refs = s.refs[:0]
	s.want.reset(0)
	want := func(block, to, at uint32) {
		s.want.keys = append(s.want.keys, uint64(block)<<32|uint64(len(s.refs)))
		s.refs = append(s.refs, ref{to: to, at: at})
	}
	room := s.p.f.shape.hubCapacity
	for i, p := range s.list {
		if s.deg[i] == 0 {
			continue
		}
		h, n := &s.held[p.block], s.need[p.block]
		if !h.hub {
			want(n, uint32(i), p.at)
			continue
		}
		for k := uint32(0); k <= h.start/room; k++ {
			want(n-h.start/room+k, uint32(i), k*room)
		}
	}
}

// copyList copies the part of a list that a block holds.
func (s *pagedSession) copyList(b *block, r ref) error {
	l := &s.lists
	to, n := l.Off[r.to], uint64(s.deg[r.to])
	from := uint64(0)
	if b.hub {
		to += uint64(r.at)
		n = uint64(b.entries)
		if b.start != r.at || to+n > l.Off[r.to+1] {
			return damagedRun(b)
		}
	} else {
		from = uint64(r.at-uint32(b.ids)) / idBytes
	}
	copy(l.Nbrs[to:to+n], mem.View[NodeID](b.b[b.ids:])[from:])
	s.p.f.shape.attributesOf(b, int(from), int(from+n), l, to)
	return nil
}

// damagedRun is the error of a block in the run of a hub that is not what its neighbors say.
func damagedRun(b *block) error {
	return fmt.Errorf("%w has %d entries from position %d of node %d's list, not those that "+
		"the last block of the list speaks of", errBlock, b.entries, b.start, b.first)
}
