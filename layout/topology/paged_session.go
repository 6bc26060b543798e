package topology

import (
	"context"
	"fmt"
	"sort"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/neighborcache"
)

// pagedSession reads a frontier in three steps: it sorts it, so that the blocks needed ascend;
// reads those that are not cached in one batch; and decodes block by block. Blocks stay pinned
// until the next Degrees, so that Gather finds them. If a frontier needs more blocks than the cache
// holds, they are read in several batches through the session's overflow buffers, and Gather reads
// blocks again that did not stay. It takes 20 bytes per node of the frontier, 48 per block, and 28
// per position that Gather takes from blocks that are not pinned.
type pagedSession struct {
	p     *paged
	get   *fetcher
	count mem.Account

	// These describe the frontier of the last Degrees.
	nodes []layout.NodeID
	order pace.Sorter // node<<32 | index in the frontier
	list  []place     // where each node's list ends
	need  []uint32    // blocks needed, counted from 0, ascending
	first []uint32    // index in order of each block's first key, then the number of keys
	held  []held      // parallel to need

	// These are entries to fetch by block. want's keys are block<<32 | index in refs.
	want  pace.Sorter
	refs  []ref
	batch []uint32
	got   []held
	now   listfile.Block // block that is being read
	found listfile.Part  // part of a list in it

	chunk   []uint32 // part of a cached list, if not all of it is wanted
	deg     []uint32 // scratch of Lists and Columns
	columns columnBuffer
	here    []uint64        // scratch of Columns: keys of lists wholly in a block
	ids     []layout.NodeID // scratch of ListPart
	lists   listfile.Lists
	single  [1]layout.NodeID // node of ListPart
	one     [1]uint32        // one position
}

// heldBytes bounds the memory of a held and of the reads of a block, in bytes.
const heldBytes = 40

// place says where the list of a node ends: in block need[block], which has its entries from
// position at on.
type place struct {
	block, at uint32
}

// These stand for no block: nowhere for a node without neighbors, cached for list number at of the
// neighbor cache.
const (
	nowhere = 1<<32 - 1
	cached  = 1<<32 - 2
)

// ref is what is wanted from a block of the list of a node: the entry at position pos, for place
// to, or all entries, for list to.
type ref struct {
	node    layout.NodeID
	to, pos uint32
}

// Degrees finds the lists, and pins the blocks of those that the neighbor cache does not have.
func (s *pagedSession) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	return s.find(ctx, nodes, deg, s.p.nbrs)
}

// find finds the lists, first in c unless it is nil.
func (s *pagedSession) find(ctx context.Context, nodes []layout.NodeID, deg []uint32,
	c *neighborcache.Cache) error {
	if s.get == nil {
		s.get = &fetcher{p: s.p}
	}
	s.get.unpin(0)
	s.nodes, s.list = nodes, mem.Resize(s.list[:0], len(nodes))
	s.order.Reset(len(nodes))
	err := s.inCache(ctx, nodes, deg, c)
	if err == nil {
		err = s.locate(ctx, deg)
	}
	if err != nil {
		s.list = s.list[:0]
		return err
	}
	s.held = mem.Resize(s.held, len(s.need))
	var steps pace.Steps
	for done := 0; done < len(s.need); {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := s.get.fetch(ctx, s.need[done:], s.held[done:])
		if err != nil {
			s.list = s.list[:0]
			return err
		}
		for k := done; k < done+n; k++ {
			if err := s.decode(k, deg); err != nil {
				return s.damage(s.need[k], err)
			}
			work := pace.Block + int(s.first[k+1]-s.first[k])
			if err := steps.Took(ctx, work); err != nil {
				s.list = s.list[:0]
				return err
			}
		}
		done += n
	}
	if err := s.count.AtLeast(s.bytes()); err != nil {
		return err
	}
	return ctx.Err()
}

// bytes returns the scratch memory held, in bytes.
func (s *pagedSession) bytes() int64 {
	words := 2*cap(s.list) + cap(s.need) + cap(s.first) + 3*cap(s.refs) + cap(s.batch) +
		cap(s.ids)
	return s.order.Bytes() + s.want.Bytes() + s.columns.bytes() + 4*int64(words) +
		heldBytes*int64(cap(s.held)+cap(s.got)+cap(s.get.pins))
}

// inCache finds the lists that c has, and gives order the keys of the other nodes.
func (s *pagedSession) inCache(ctx context.Context, nodes []layout.NodeID, deg []uint32,
	c *neighborcache.Cache) error {
	for i, v := range nodes {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if uint64(v) >= s.p.f.Lists {
			return layout.OutOfRange(v, s.p.f.Lists)
		}
		if c != nil {
			if k, ok := c.Find(v); ok {
				s.list[i] = place{block: cached, at: k}
				continue
			}
		}
		s.order.Keys = append(s.order.Keys, uint64(v)<<32|uint64(i))
	}
	if c == nil {
		return nil
	}
	// The lists are spread over the cache: in a loop that does nothing else, the CPU reads several
	// at once.
	for i, p := range s.list {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if p.block != cached {
			continue
		}
		l, err := c.List(p.at)
		if err != nil {
			return neighborcache.Damaged(s.p.dir, nodes[i], err)
		}
		deg[i] = l.Entries
	}
	s.p.asked.Add(uint64(len(nodes)))
	s.p.found.Add(uint64(len(nodes) - len(s.order.Keys)))
	return nil
}

// locate sorts the other nodes and finds the blocks they need by walking the index: a node's list
// ends in the last block whose first node is not above it.
func (s *pagedSession) locate(ctx context.Context, deg []uint32) error {
	if err := s.order.Sort(ctx); err != nil {
		return err
	}
	s.need, s.first = s.need[:0], s.first[:0]
	keys, at := s.p.ix.Keys, -1 // at is the block of the node before
	for k, key := range s.order.Keys {
		if k%pace.Every == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		v, i := uint32(key>>32), uint32(key)
		next := at + listfile.Upper(keys[at+1:], listfile.Key(layout.NodeID(v), 1<<32-1))
		if next < 0 {
			s.list[i], deg[i] = place{block: nowhere}, 0
			continue
		}
		if next != at {
			at = next
			s.need = append(s.need, uint32(at))
			s.first = append(s.first, uint32(k))
		}
		s.list[i].block = uint32(len(s.need) - 1)
	}
	s.first = append(s.first, uint32(len(s.order.Keys)))
	return nil
}

// decode finds the lists of the nodes whose last block is need[k].
func (s *pagedSession) decode(k int, deg []uint32) error {
	h := &s.held[k]
	b, err := s.get.parse(s.need[k], h.data)
	if err != nil {
		return err
	}
	for _, key := range s.order.Keys[s.first[k]:s.first[k+1]] {
		i, slot := uint32(key), uint32(key>>32)-uint32(b.First)
		if slot >= b.Slots {
			s.list[i].block, deg[i] = nowhere, 0
			continue
		}
		p, err := s.p.f.Shape.Part(&b, slot)
		if err != nil {
			return err
		}
		s.list[i].at, deg[i] = p.Start, p.Start+p.Count
	}
	if h.frame < 0 {
		h.data = nil // the next fetch reuses the buffer
	}
	return nil
}

// Gather takes entries from the pinned blocks. Then it reads the other blocks, of long lists and
// those that did not stay, in one batch, each block once.
func (s *pagedSession) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	var steps pace.Steps
	for i, p := range s.list {
		lo, hi := off[i], off[i+1]
		if p.block != cached || lo == hi {
			continue
		}
		if err := steps.Took(ctx, 1+int(hi-lo)); err != nil {
			return err
		}
		if err := s.gatherCached(p.at, pos[lo:hi], out[lo:hi]); err != nil {
			return err
		}
	}
	shape := &s.p.f.Shape
	return s.gather(ctx, off, pos, func(_ *listfile.Block, p *listfile.Part, pos []uint32,
		to uint32) error {
		return p.Gather(shape, pos, out[to:])
	})
}

// takeEntries takes the entries at positions of a list, for places from to on, from the part of the
// list that a block has.
type takeEntries func(b *listfile.Block, p *listfile.Part, pos []uint32, to uint32) error

// gather calls take with all entries that are not in the neighbor cache.
func (s *pagedSession) gather(ctx context.Context, off, pos []uint32, take takeEntries) error {
	// Make room for all first: growing by millions of entries may copy them for a second.
	if err := s.roomFor(ctx, off); err != nil {
		return err
	}
	var steps pace.Steps
	for k := range s.need {
		first, end := s.first[k], s.first[k+1]
		if err := steps.Took(ctx, pace.Block+int(end-first)); err != nil {
			return err
		}
		if err := s.gatherHeld(ctx, k, off, pos, take); err != nil {
			return err
		}
	}
	if len(s.refs) == 0 {
		return ctx.Err()
	}
	if err := s.count.AtLeast(s.bytes()); err != nil {
		return err
	}
	return s.each(ctx, func(b *listfile.Block, keys []uint64) error {
		node := layout.NodeID(0)
		for i, key := range keys {
			r := &s.refs[uint32(key)]
			if i == 0 || r.node != node {
				var err error
				if s.found, err = s.part(b, r.node); err != nil {
					return err
				}
				node = r.node
			}
			s.one[0] = r.pos
			if err := take(b, &s.found, s.one[:], r.to); err != nil {
				return err
			}
		}
		return nil
	})
}

// roomFor makes room for the entries that are taken from blocks that are not pinned.
func (s *pagedSession) roomFor(ctx context.Context, off []uint32) error {
	n := 0
	for i, p := range s.list {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if off[i] == off[i+1] || p.block == cached || p.block == nowhere {
			continue
		}
		if p.at > 0 || s.held[p.block].data == nil {
			n += int(off[i+1] - off[i])
		}
	}
	s.want.Reset(n)
	s.refs = mem.Resize(s.refs, n)[:0]
	return nil
}

// part returns the part of a node's list in a block, or an error if the block has no slot for it.
func (s *pagedSession) part(b *listfile.Block, node layout.NodeID) (listfile.Part, error) {
	slot := uint32(node) - uint32(b.First)
	if slot >= b.Slots {
		return listfile.Part{}, fmt.Errorf("%w has no list of node %d, which the blocks beside it "+
			"speak of", listfile.ErrBlock, node)
	}
	return s.p.f.Shape.Part(b, slot)
}

// gatherHeld takes the entries that block need[k] has, and notes the others, or all if it is not
// pinned.
func (s *pagedSession) gatherHeld(ctx context.Context, k int, off, pos []uint32,
	take takeEntries) error {
	data := s.held[k].data
	if data != nil {
		var err error
		if s.now, err = s.get.parse(s.need[k], data); err != nil {
			return s.damage(s.need[k], err)
		}
	}
	for _, key := range s.order.Keys[s.first[k]:s.first[k+1]] {
		i, v := uint32(key), layout.NodeID(key>>32)
		lo, hi := off[i], off[i+1]
		if lo == hi {
			continue
		}
		if data == nil {
			s.wantEntries(k, v, lo, pos[lo:hi])
			continue
		}
		var err error
		if s.found, err = s.part(&s.now, v); err == nil {
			err = s.gatherPart(k, v, lo, pos[lo:hi], take)
		}
		if err != nil {
			return s.damage(s.need[k], err)
		}
	}
	return nil
}

// gatherPart takes the entries that s.found has, and notes those before it.
func (s *pagedSession) gatherPart(k int, v layout.NodeID, to uint32, pos []uint32,
	take takeEntries) error {
	b, p := &s.now, &s.found
	if p.Start == 0 {
		return take(b, p, pos, to)
	}
	for j := range pos {
		if pos[j] < p.Start {
			s.wantEntries(k, v, to+uint32(j), pos[j:j+1])
		} else if err := take(b, p, pos[j:j+1], to+uint32(j)); err != nil {
			return err
		}
	}
	return nil
}

// gatherCached takes entries of list number i of the neighbor cache.
func (s *pagedSession) gatherCached(i uint32, pos []uint32, out []layout.NodeID) error {
	if s.chunk == nil {
		s.chunk = make([]uint32, neighborcache.ChunkEntries)
	}
	c := s.p.nbrs
	if err := c.Gather(i, pos, s.chunk, s.p.f.Nodes, out); err != nil {
		return neighborcache.Damaged(s.p.dir, c.Node(i), err)
	}
	return nil
}

// wantEntries notes entries of a list that ends in block need[k].
func (s *pagedSession) wantEntries(k int, v layout.NodeID, to uint32, pos []uint32) {
	last := s.need[k]
	for j, x := range pos {
		s.wantAt(s.blockOf(v, x, last), ref{node: v, to: to + uint32(j), pos: x})
	}
}

// blockOf returns the block of a position of a node's list, which ends in block last.
func (s *pagedSession) blockOf(v layout.NodeID, pos, last uint32) uint32 {
	keys, key := s.p.ix.Keys[:last+1], listfile.Key(v, pos)
	if keys[last] <= key {
		return last
	}
	return uint32(sort.Search(len(keys), func(i int) bool { return keys[i] > key }) - 1)
}

// wantAt notes that a block, counted from 0, is wanted for r.
func (s *pagedSession) wantAt(block uint32, r ref) {
	s.want.Keys = append(s.want.Keys, uint64(block)<<32|uint64(len(s.refs)))
	s.refs = append(s.refs, r)
}

// each fetches the wanted blocks, in order, and calls fn with each and its keys.
func (s *pagedSession) each(ctx context.Context, fn func(b *listfile.Block,
	keys []uint64) error) error {
	if err := s.want.Sort(ctx); err != nil {
		return err
	}
	keys := s.want.Keys
	s.batch = s.batch[:0]
	for i, key := range keys {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if b := uint32(key >> 32); i == 0 || b != s.batch[len(s.batch)-1] {
			s.batch = append(s.batch, b)
		}
	}
	s.got = mem.Resize(s.got, len(s.batch))
	mark := len(s.get.pins)
	defer func() { s.get.unpin(mark) }()
	var steps pace.Steps
	for done := 0; done < len(s.batch); {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := s.get.fetch(ctx, s.batch[done:], s.got[done:])
		if err != nil {
			return err
		}
		for k := done; k < done+n; k++ {
			end := 0
			for end < len(keys) && uint32(keys[end]>>32) == s.batch[k] {
				end++
			}
			if err := steps.Took(ctx, pace.Block+end); err != nil {
				return err
			}
			var err error
			if s.now, err = s.get.parse(s.batch[k], s.got[k].data); err == nil {
				err = fn(&s.now, keys[:end])
			}
			if err != nil {
				return s.damage(s.batch[k], err)
			}
			keys = keys[end:]
		}
		done += n
		s.get.unpin(mark)
	}
	return nil
}

// damage returns err as damage of a block, counted from 0.
func (s *pagedSession) damage(block uint32, err error) error {
	return s.p.f.DamageBlock(int64(block)+1, err)
}

// Release unpins all blocks and frees the memory.
func (s *pagedSession) Release() {
	if s.get != nil {
		s.get.release()
		s.get = nil
	}
	s.count.Release()
	s.p.sessions.Add(-1)
}
