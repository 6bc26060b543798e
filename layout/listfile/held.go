package listfile

import (
	"fmt"
	"math"
	"unsafe"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listcode"
)

// Held holds all coded blocks of a file in memory, one after the other, as they are in the file. An
// index of their lists takes 48 bytes per block, and a directory of where lists begin takes 2 bytes
// per node.
//
// A Drawer reads entries of its lists.
type Held struct {
	Shape Shape
	bytes []byte // the blocks, then space of one block and listcode.Slack
	// index has two words per block, so few that those of all blocks stay in a cache: its key, as
	// in an Index, and the word of its lists' coding, where the bits from listcode.CodingSpare on
	// say in how many more blocks its last list goes on. keysAfter keys follow that are above all
	// others.
	index      []uint64
	firsts     []listcode.Ref // first list of each block
	firstBytes []byte         // the memory of firsts
	blocks     int            // number of blocks so far
	heads      directory
	arena      *mem.Arena
	spare      int64 // bytes of the arena that were given back
	nodes      uint64
}

const (
	indexWords = 2
	keysAfter  = 2
	// runMost bounds the blocks of a list: full blocks, as writers make them, never reach it.
	runMost = 1<<(32-listcode.CodingSpare) - 1
)

const _ uint = -(8*indexWords ^ locatorIndexBytes) // locator prefetches this

// HeldBytes returns the memory of a file with this number of blocks, in bytes.
func HeldBytes(blocks int64, f *Fields) int64 {
	s, err := f.Shape()
	if err != nil {
		return 0
	}
	return heldParts(&s, blocks, f.Lists).total()
}

// heldSizes holds the sizes of the parts of Held in bytes. Each part takes whole cache lines.
type heldSizes struct{ heads, index, firsts, bytes int64 }

func heldParts(s *Shape, blocks int64, nodes uint64) heldSizes {
	lines := func(n int64) int64 { return (n + 63) &^ 63 }
	return heldSizes{heads: lines(directoryBytes(s.endBits, nodes)),
		index:  lines(8 * indexWords * (blocks + keysAfter)),
		firsts: lines(listcode.RefBytes * blocks),
		bytes:  lines(heldBlocksBytes(s, blocks))}
}

// heldBlocksBytes returns the bytes of a number of blocks with the space after them.
func heldBlocksBytes(s *Shape, blocks int64) int64 {
	return (blocks+1)*int64(s.BlockBytes) + listcode.Slack
}

func (h heldSizes) total() int64 { return h.heads + h.index + h.firsts + h.bytes }

// NewHeld makes room for a number of blocks of a file with these fields, which Add or a Filler then
// adds in order. The caller calls Free.
func NewHeld(f *Fields, blocks int64, budget *mem.Budget) (*Held, error) {
	shape, err := f.Shape()
	if err != nil {
		return nil, err
	}
	n := heldParts(&shape, blocks, f.Lists)
	arena, err := mem.NewArena(budget, "compact topology", n.total())
	if err != nil {
		return nil, err
	}
	h := &Held{Shape: shape, arena: arena, nodes: f.Lists}
	b := arena.Bytes()
	cut := func(size int64) (part []byte) {
		part, b = b[:size:size], b[size:]
		return part
	}
	h.heads = newDirectory(shape.endBits, cut(n.heads))
	h.index = mem.View[uint64](cut(n.index))
	firsts := cut(n.firsts)
	h.firstBytes = firsts
	h.firsts = unsafe.Slice((*listcode.Ref)(unsafe.Pointer(unsafe.SliceData(firsts))), blocks)
	h.bytes = b
	return h, nil
}

// Bytes returns the memory held, in bytes.
func (h *Held) Bytes() int64 { return int64(len(h.arena.Bytes())) - h.spare }

// Populate starts to give pages to the memory of the blocks: see mem.Arena.Populate.
func (h *Held) Populate() (stop func()) { return h.arena.Populate() }

// Free gives the memory back.
func (h *Held) Free() error { return h.arena.Free() }

// Add adds the next block, and checks all of it except ids; l is scratch. The caller must have
// checked that the block may come there, as Each does.
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
		if i == 0 {
			before := 8 * uint64(h.blocks) * uint64(h.Shape.BlockBytes)
			h.firsts[h.blocks] = p.list.Ref().Moved(before)
			h.firsts[h.blocks].From = k.Start
		}
		if entries += uint64(p.Count); p.Count == 0 || i == 0 && k.Start > 0 {
			continue
		}
		at := k.listsAt / unitBits
		if i > 0 {
			at += uint64(ends[i-1])
		}
		h.heads.Add(uint64(k.First)+uint64(i), h.blocks, at)
	}
	if entries != uint64(k.Entries) {
		return fmt.Errorf("%w has %d of its %d entries", ErrBlock, entries, k.Entries)
	}
	copy(h.bytes[h.blocks*h.Shape.BlockBytes:], k.Bytes)
	h.index[indexWords*h.blocks] = Key(k.First, k.Start)
	h.index[indexWords*h.blocks+1] = k.coding.CodingWord()
	h.blocks++
	return nil
}

// Finish completes the index after all blocks were added. It returns an error if a list is in too
// many blocks.
func (h *Held) Finish() error {
	h.heads.Finish(h.nodes)
	for i := range keysAfter {
		h.index[indexWords*(h.blocks+i)] = math.MaxUint64
	}
	run := 0
	for n := h.blocks - 2; n >= 0; n-- {
		switch v := layout.NodeID(h.Key(n+1) >> 32); {
		case !h.goesOn(v, n):
			run = 0
		case h.goesOn(v, n+1):
			run++
		default:
			run = 1
		}
		if run > runMost {
			return fmt.Errorf("%w %d and %d more are one list", ErrBlock, n+1, run)
		}
		h.index[indexWords*n+1] |= uint64(run) << listcode.CodingSpare
	}
	return nil
}

// trim gives back the memory behind the last block.
func (h *Held) trim() error {
	all := int64(len(h.arena.Bytes()))
	end := all - int64(len(h.bytes)) + heldBlocksBytes(&h.Shape, int64(h.blocks))
	h.spare = max(0, all-end)
	return h.arena.Discard(int(end), int(all))
}

// Key returns the key of a block, counted from 0: see Index.
func (h *Held) Key(block int) uint64 { return h.index[indexWords*block] }

// Block returns block n, counted from 0. It shares the memory of Held.
func (h *Held) Block(n int) (Block, error) {
	size := h.Shape.BlockBytes
	return ParseBlock(&h.Shape, h.bytes[n*size:(n+1)*size:(n+1)*size])
}

// Head returns the block where the list of a node begins, counted from 0, and false if the list is
// empty.
func (h *Held) Head(v layout.NodeID) (block int, ok bool) {
	block, _, ok = h.head(v, h.heads.At(uint64(v)))
	return block, ok
}

// head returns the block where a list begins, and where in the block, in units, given what the
// directory holds for its node.
func (h *Held) head(v layout.NodeID, d directoryPlace) (block int, at uint64, ok bool) {
	if d.Known() {
		return d.Block(), d.Unit(), true
	}
	if d.Empty() {
		return 0, 0, false
	}
	return h.seek(v, d.Block()), d.Unit(), true
}

// seek returns the block where the list of v begins, searching from block n on, which must be
// before it. It gallops: the answer is nearly always a few blocks further on.
func (h *Held) seek(v layout.NodeID, n int) int {
	return n + upper(h.index[indexWords*n:indexWords*h.blocks], indexWords, Key(v, 0)) - 1
}

// goesOn reports whether the list of v, of which a block has a part, goes on in the next block.
func (h *Held) goesOn(v layout.NodeID, block int) bool {
	key := h.Key(block + 1)
	return key>>32 == uint64(v) && uint32(key) > 0
}

// Last returns the block where the list of v ends, given the block where it begins.
func (h *Held) Last(v layout.NodeID, first int) int {
	if !h.goesOn(v, first) {
		return first
	}
	return first + h.runAfter(first)
}

// runAfter returns in how many more blocks the last list of a block goes on.
func (h *Held) runAfter(block int) int {
	return int(uint32(h.index[indexWords*block+1]) >> listcode.CodingSpare)
}

// end returns the position after a block's last entry of its first list.
func (h *Held) end(block int) uint32 {
	r := &h.firsts[block]
	return r.From + r.Count
}
