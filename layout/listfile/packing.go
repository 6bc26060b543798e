package listfile

import (
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/layout"
)

// packing packs lists into blocks, which it hands on as they are full. Lists come in ascending
// order, each sorted by neighbor. What it makes depends on nothing but the entries.
type packing struct {
	shape *Shape
	what  string // is done, for errors
	block *blockBuilder
	full  func(b *blockBuilder) error // takes a block that is not empty

	// These describe the open list, the last one that was begun: what of it is in no block yet.
	any   bool // whether there is an open list
	node  layout.NodeID
	last  layout.NodeID // its last id so far
	start uint32        // position of the first pending entry
	pend  entries
	look  int // number of pending entries at which spill is called
}

// lookEvery is how many entries may come before it is checked again whether they still fit in a
// block.
const lookEvery = 256

func newPacking(s *Shape, what string, full func(b *blockBuilder) error) packing {
	return packing{shape: s, what: what, block: newBlockBuilder(s), full: full, look: lookEvery}
}

// begin closes the open list and opens the list of node.
func (p *packing) begin(node layout.NodeID) error {
	if err := p.closeList(); err != nil {
		return err
	}
	p.any, p.node, p.last = true, node, 0
	return nil
}

// flush closes the open list, and hands on the block with its end.
func (p *packing) flush() error {
	if err := p.closeList(); err != nil || p.block.empty() {
		return err
	}
	return p.fill()
}

// fill hands on the block and starts the next.
func (p *packing) fill() error {
	if err := p.full(p.block); err != nil {
		return err
	}
	p.block.reset()
	return nil
}

// sorted checks that neighbors may follow the last one of the open list.
func (p *packing) sorted(nbrs []layout.NodeID) error {
	last := p.last
	for _, v := range nbrs {
		if v < last {
			return fmt.Errorf("%w of node %d: neighbor %d comes after %d", ErrBlock, p.node, v,
				last)
		}
		last = v
	}
	p.last = last
	return nil
}

// addWhole puts all neighbors of the open list, which carry nothing, into the block at once, if
// they certainly fit. The block then has what add and closeList put there: a list that takes at
// most half of a block, in whichever form, is not cut while it is collected.
func (p *packing) addWhole(nbrs []layout.NodeID) bool {
	ids := mem.View[uint32](mem.BytesOf(nbrs))
	if p.start > 0 || len(p.pend.ids) > 0 || p.shape.HasAttributes() ||
		p.shape.listBitsMost(ids) > 8*p.shape.BlockBytes/2 {
		return false
	}
	form := p.shape.formOf(ids)
	if !p.block.hasRoom(p.node, len(ids), form.Bits()) {
		return false
	}
	p.block.add(p.node, 0, entries{ids: ids}, form)
	p.start = uint32(len(ids))
	return true
}

// add appends entries from … to-1 of l, which are sorted, to the open list.
func (p *packing) add(l *Lists, from, to uint64) error {
	for from < to {
		end := min(to, from+uint64(p.look-len(p.pend.ids)))
		p.pend.ids = append(p.pend.ids, mem.View[uint32](mem.BytesOf(l.Nbrs[from:end]))...)
		v := &p.pend.values
		if p.shape.Types {
			for _, t := range l.Types[from:end] {
				v[typeColumn] = append(v[typeColumn], uint64(t))
			}
		}
		if p.shape.Weights {
			for _, w := range l.Weights[from:end] {
				v[weightColumn] = append(v[weightColumn], uint64(math.Float32bits(w)))
			}
		}
		if p.shape.Times {
			for _, t := range l.Times[from:end] {
				v[timeColumn] = append(v[timeColumn], uint64(t)^1<<63)
			}
		}
		if from = end; len(p.pend.ids) < p.look {
			break
		}
		if err := p.spill(); err != nil {
			return err
		}
	}
	return nil
}

// closeList puts the rest of the open list into blocks.
func (p *packing) closeList() error {
	for len(p.pend.ids) > 0 {
		if err := p.place(); err != nil {
			return err
		}
	}
	p.start, p.look = 0, lookEvery
	return nil
}

// spill puts pending entries into blocks as long as they fill at least one.
func (p *packing) spill() error {
	for {
		if p.alone(p.shape.listBitsMost(p.pend.ids)) || p.alone(p.shape.formOf(p.pend.ids).Bits()) {
			p.look = len(p.pend.ids) + lookEvery
			return nil
		}
		if err := p.place(); err != nil {
			return err
		}
	}
}

// alone reports whether the pending entries, which take listBits, fit in a block of their own.
func (p *packing) alone(listBits int) bool {
	empty := blockBuilder{shape: p.shape}
	return empty.fits(p.node, p.pend, listBits)
}

// wasteMost says how much of a block may stay empty, one part in wasteMost, to avoid cutting a
// list: a list in two blocks may take two reads.
const wasteMost = 16

// place puts as many pending entries as fit into the block, and writes it if that is not all.
func (p *packing) place() error {
	b, n, form := p.block, len(p.pend.ids), p.shape.formOf(p.pend.ids)
	if listBits := form.Bits(); !b.fits(p.node, p.pend, listBits) {
		least, whole := 8*p.shape.BlockBytes/wasteMost, !b.empty() && p.alone(listBits)
		if n = 0; !whole || b.left() >= least {
			n = b.room(p.node, p.pend)
		}
		if n > 0 {
			form = p.shape.formOf(p.pend.ids[:n])
		}
		if n > 0 && whole && form.Bits() < least {
			n = 0
		}
	}
	if n > 0 {
		b.add(p.node, p.start, p.pend.head(n), form)
		if n == len(p.pend.ids) {
			p.pend.drop(n)
			return p.advance(n)
		}
		p.pend.drop(n)
		if err := p.advance(n); err != nil {
			return err
		}
	}
	return p.fill()
}

// advance moves the position of the first pending entry.
func (p *packing) advance(n int) error {
	if uint64(p.start)+uint64(n) > math.MaxUint32-uint64(p.shape.entriesMost()) {
		return fmt.Errorf("layout: %s: node %d has more than %d neighbors", p.what, p.node,
			p.start)
	}
	p.start += uint32(n)
	return nil
}
