package listfile

import (
	"encoding/binary"
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listcode"
)

// Held are all coded blocks of a file in memory, one after the other, as they are in the file, and
// an index of their lists: where each block begins and what lists in it have in common, 16 bytes a
// block; for every skipNodes nodes their block; and where the list of each node ends in its last
// block, Shape.endBits a node, which is 13 for blocks of 4 KiB: 1.625 bytes.
//
// A Drawer reads entries of lists.
type Held struct {
	Shape Shape
	bytes []byte // and, after the blocks, as many as a block has, and listcode.Slack
	// index has two words of each block: its key, as an Index has it, and its blockHead, so that
	// both are in one line of a cache. keysAfter more keys follow, which are above all others.
	index  []uint64
	blocks int    // so far
	ends   []byte // and 8 more
	skip   []uint32
	arena  *mem.Arena
	next   uint64 // the first node without an end so far
	nodes  uint64
}

const (
	indexWords = 2
	keysAfter  = 2
)

// blockHead is what the lists of a block have in common: from the low bits on 6 bits of the width
// of a first id, 26 of where the lists begin, in bytes, and 32 of the least first id.
func blockHead(k *Block) uint64 {
	return uint64(k.coding.Base)<<32 | k.listsAt/8<<6 | uint64(k.coding.FirstBits)
}

// skipNodes is for how many nodes the index has one block: an eighth of a byte a node. A block of 4
// KiB has the lists of some hundred nodes, but long lists have many blocks each.
const skipNodes = 32

// HeldBytes is the memory of the blocks of a file with so many nodes.
func HeldBytes(blocks int64, f *Fields) int64 {
	s, err := f.Shape()
	if err != nil {
		return 0
	}
	return heldParts(&s, blocks, f.Nodes).total()
}

// heldSizes are the sizes of the parts of Held, in bytes.
type heldSizes struct{ bytes, index, ends, skip int64 }

func heldParts(s *Shape, blocks int64, nodes uint64) heldSizes {
	whole := func(n int64) int64 { return (n + 7) &^ 7 }
	return heldSizes{bytes: whole((blocks+1)*int64(s.BlockBytes) + listcode.Slack),
		index: 8 * indexWords * (blocks + keysAfter),
		ends:  whole(int64(nodes)*int64(s.endBits)/8 + 16),
		skip:  whole(4 * int64(nodes/skipNodes+1))}
}

func (h heldSizes) total() int64 { return h.bytes + h.index + h.ends + h.skip }

// NewHeld makes room for the blocks of a file, which Add adds in their order.
func NewHeld(f *File, budget *mem.Budget) (*Held, error) {
	n := heldParts(&f.Shape, f.Blocks, f.Nodes)
	arena, err := mem.NewArena(budget, "compact topology", n.total())
	if err != nil {
		return nil, err
	}
	h := &Held{Shape: f.Shape, arena: arena, nodes: f.Nodes}
	b := arena.Bytes()
	cut := func(size int64) (part []byte) {
		part, b = b[:size:size], b[size:]
		return part
	}
	h.bytes = cut(n.bytes)
	h.index = mem.View[uint64](cut(n.index))
	h.ends = cut(n.ends)
	h.skip = mem.View[uint32](cut(n.skip))
	return h, nil
}

// Bytes is the memory held.
func (h *Held) Bytes() int64 { return int64(len(h.arena.Bytes())) }

// Populate begins to give the memory of the blocks pages: see mem.Arena.
func (h *Held) Populate() (stop func()) { return h.arena.Populate() }

// Free gives the memory back.
func (h *Held) Free() error { return h.arena.Free() }

// Add adds the next block, and checks all of it but the ids; l is scratch.
func (h *Held) Add(k *Block, l *Lists) error {
	if k.raw != nil {
		return fmt.Errorf("%w is of the former layout", ErrBlock)
	}
	ends, err := k.decodeEnds(l)
	if err != nil {
		return err
	}
	entries := uint64(0)
	for i := range k.Slots {
		p, err := h.Shape.partAt(k, i, ends)
		if err != nil {
			return err
		}
		entries += uint64(p.Count)
	}
	if entries != uint64(k.Entries) {
		return fmt.Errorf("%w has %d of its %d entries", ErrBlock, entries, k.Entries)
	}
	copy(h.bytes[h.blocks*h.Shape.BlockBytes:], k.Bytes)
	h.index[indexWords*h.blocks] = Key(k.First, k.Start)
	h.index[indexWords*h.blocks+1] = blockHead(k)
	h.blocks++
	h.addEnds(uint64(k.First), ends)
	return nil
}

// addEnds notes where the lists of nodes from first on end. Those before it without an end yet have
// no neighbors: they end where the one before them does.
func (h *Held) addEnds(first uint64, ends []uint32) {
	for last := h.endOf(h.next); h.next < first; h.next++ {
		h.setEnd(h.next, last)
	}
	for i, end := range ends {
		h.setEnd(first+uint64(i), end)
	}
	h.next = first + uint64(len(ends))
}

// endOf is the end of the node before v, 0 for none.
func (h *Held) endOf(v uint64) uint32 {
	if v == 0 {
		return 0
	}
	_, end := h.span(layout.NodeID(v - 1))
	return end
}

// setEnd writes the end of a node over what is there.
func (h *Held) setEnd(v uint64, end uint32) {
	width := uint64(h.Shape.endBits)
	at := (v + 1) * width // the first field is 0, for the node before the first
	b, mask := h.ends[at>>3:], (uint64(1)<<width-1)<<(at&7)
	word := binary.LittleEndian.Uint64(b)&^mask | uint64(end)<<(at&7)
	binary.LittleEndian.PutUint64(b, word)
}

// span is where the list of a node ends in its last block, and where that of the node before it
// does.
func (h *Held) span(v layout.NodeID) (before, end uint32) {
	width := uint64(h.Shape.endBits)
	at := uint64(v) * width
	word := binary.LittleEndian.Uint64(h.ends[at>>3:]) >> (at & 7)
	mask := uint64(1)<<width - 1
	return uint32(word & mask), uint32(word >> width & mask)
}

// Finish completes the index when all blocks were added.
func (h *Held) Finish() {
	h.addEnds(h.nodes, nil)
	for i := range keysAfter {
		h.index[indexWords*(h.blocks+i)] = math.MaxUint64
	}
	for i, n := 0, 0; i < len(h.skip); i++ {
		n = h.upper(n, Key(layout.NodeID(i*skipNodes), 1<<32-1))
		h.skip[i] = uint32(n)
	}
}

// Key is that of a block, counted from 0: see Index.
func (h *Held) Key(block int) uint64 { return h.index[indexWords*block] }

// upper is how many blocks have keys not above one, as the first n have.
func (h *Held) upper(n int, key uint64) int {
	return n + upper(h.index[indexWords*n:indexWords*h.blocks], indexWords, key)
}

// Block is a block, counted from 0.
func (h *Held) Block(n int) (Block, error) {
	size := h.Shape.BlockBytes
	return ParseBlock(&h.Shape, h.bytes[n*size:(n+1)*size:(n+1)*size])
}

// Last is the last block, counted from 0, that may have some of a node's list; -1 for none.
func (h *Held) Last(v layout.NodeID) int {
	return h.upper(int(h.skip[v/skipNodes]), Key(v, 1<<32-1)) - 1
}

// Head is the block where the list of a node begins that ends in block last.
func (h *Held) Head(v layout.NodeID, last int) int {
	key, at := Key(v, 0), last
	for step := 1; at > 0 && h.Key(at) > key; step *= 2 {
		at = max(at-step, 0)
	}
	return h.upper(at+1, key) - 1
}

// listsAt is where in memory the lists of a block with a blockHead begin, in bits.
func (h *Held) listsAt(block int, head uint64) uint64 {
	return (uint64(block)*uint64(h.Shape.BlockBytes) + uint64(uint32(head)>>6)) * 8
}

// coding is that of the lists of a block with a blockHead.
func (h *Held) coding(head uint64) listcode.Coding {
	return listcode.Coding{Base: uint32(head >> 32), FirstBits: int(head & (1<<6 - 1)),
		PosBits: h.Shape.posBits}
}
