package topology

import (
	"context"
	"fmt"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listfile"
)

// Lists copies whole lists, block by block. Memory: the lists themselves.
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

// wantLists notes every block of every list: refs hold the index of the node and, for a hub, the
// position of the block's first entry, else that of the list's first entry in the block.
func (s *pagedSession) wantLists(ctx context.Context) error {
	s.refs = s.refs[:0]
	s.want.Reset(0)
	want := func(block, to, at uint32) {
		s.want.Keys = append(s.want.Keys, uint64(block)<<32|uint64(len(s.refs)))
		s.refs = append(s.refs, ref{to: to, at: at})
	}
	room := s.p.f.Shape.HubCapacity
	var steps pace.Steps
	for i, p := range s.list {
		if err := steps.Took(ctx, 1+int(s.deg[i])/blockEntries); err != nil {
			return err
		}
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
	return nil
}

// blockEntries is about how many entries of a hub a block holds.
const blockEntries = 1 << 10

// ListPart copies entries from … to-1 of a list, reading only the blocks that hold them. Memory:
// the entries.
func (s *pagedSession) ListPart(ctx context.Context, node layout.NodeID, from,
	to uint32) (*listfile.Lists,
	error) {
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
		s.wantPart(from, to)
	}
	err := s.each(ctx, func(b *listfile.Block, keys []uint64) error {
		return s.copyPart(b, s.refs[uint32(keys[0])].at, from, to)
	})
	if err != nil {
		return nil, err
	}
	return l, ctx.Err()
}

// wantPart notes the blocks with entries from … to-1 of the list of the only node.
func (s *pagedSession) wantPart(from, to uint32) {
	p := s.list[0]
	h, n := &s.held[p.block], s.need[p.block]
	if !h.hub {
		s.want.Keys = append(s.want.Keys, uint64(n)<<32)
		s.refs = append(s.refs, ref{at: p.at})
		return
	}
	room := s.p.f.Shape.HubCapacity
	for k := from / room; k <= (to-1)/room; k++ {
		b := uint64(n - h.start/room + k)
		s.want.Keys = append(s.want.Keys, b<<32|uint64(len(s.refs)))
		s.refs = append(s.refs, ref{at: k * room})
	}
}

// copyPart copies what block b holds of entries from … to-1. at is, of a hub, the position of the
// block's first entry, else where the list is in the block.
func (s *pagedSession) copyPart(b *listfile.Block, at, from, to uint32) error {
	lo, hi, first := from, to, uint32(0) // first: the index in the block of entry lo
	if b.Hub {
		lo, hi = max(from, at), min(to, at+s.p.f.Shape.HubCapacity)
		first = lo - at
		if b.Start != at || first+hi-lo > b.Entries {
			return damagedRun(b)
		}
	} else {
		first = (at-uint32(b.IDsAt))/listfile.IDBytes + from
	}
	n := hi - lo
	copy(s.lists.Nbrs[lo-from:hi-from], mem.View[layout.NodeID](b.Bytes[b.IDsAt:])[first:first+n])
	s.p.f.Shape.CopyAttributes(b, int(first), int(first+n), &s.lists, uint64(lo-from))
	return nil
}

// copyList copies the part of a list that a block holds.
func (s *pagedSession) copyList(b *listfile.Block, r ref) error {
	l := &s.lists
	to, n := l.Off[r.to], uint64(s.deg[r.to])
	from := uint64(0)
	if b.Hub {
		to += uint64(r.at)
		n = uint64(b.Entries)
		if b.Start != r.at || to+n > l.Off[r.to+1] {
			return damagedRun(b)
		}
	} else {
		from = uint64(r.at-uint32(b.IDsAt)) / listfile.IDBytes
	}
	copy(l.Nbrs[to:to+n], mem.View[layout.NodeID](b.Bytes[b.IDsAt:])[from:])
	s.p.f.Shape.CopyAttributes(b, int(from), int(from+n), l, to)
	return nil
}

// damagedRun is the error of a block in the run of a hub that is not what its neighbors say.
func damagedRun(b *listfile.Block) error {
	return fmt.Errorf("%w has %d entries from position %d of node %d's list, not those that "+
		"the last block of the list speaks of", listfile.ErrBlock, b.Entries, b.Start, b.First)
}
