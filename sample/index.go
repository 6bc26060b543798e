package sample

import (
	"math/bits"

	"gdb/sample/nodetable"
)

// slotIndex finds the slot of a node: open addressing with linear probing over entries of
// node<<32 | slot+1, at most half full: 16 to 32 bytes per cached row, whatever the size of the
// graph. The slot may have the bit pending, for its user. Deleting moves later entries of the run
// back, so that there are no tombstones.
type slotIndex struct {
	entries []uint64
	shift   int
}

const (
	// pending marks a slot whose row was not copied to it yet.
	pending = 1 << 31
	// slotsMost leaves that bit free.
	slotsMost = pending - 1
)

// indexBytes is the memory of an index of that many rows.
func indexBytes(rows int) int64 { return int64(indexSize(rows)) * 8 }

func indexSize(rows int) int { return 1 << bits.Len(uint(max(2*rows, 2)-1)) }

// newSlotIndex returns an empty index over zeroed memory of indexSize entries.
func newSlotIndex(entries []uint64) slotIndex {
	return slotIndex{entries: entries, shift: 64 - bits.TrailingZeros(uint(len(entries)))}
}

func (x *slotIndex) home(v NodeID) uint64 {
	return uint64(v) * nodetable.Golden64 >> (x.shift & 63)
}

// find returns the slot of v.
func (x *slotIndex) find(v NodeID) (slot uint32, ok bool) {
	mask := uint64(len(x.entries) - 1)
	for h := x.home(v); ; h++ {
		e := x.entries[h&mask]
		if e == 0 {
			return 0, false
		}
		if NodeID(e>>32) == v {
			return uint32(e) - 1, true
		}
	}
}

// put enters v, which is not there.
func (x *slotIndex) put(v NodeID, slot uint32) {
	mask := uint64(len(x.entries) - 1)
	h := x.home(v)
	for x.entries[h&mask] != 0 {
		h++
	}
	x.entries[h&mask] = uint64(v)<<32 | uint64(slot+1)
}

// fill takes the mark pending from the slot of v, if that is the one and has it.
func (x *slotIndex) fill(v NodeID, slot uint32) bool {
	mask := uint64(len(x.entries) - 1)
	want := uint64(v)<<32 | uint64(slot|pending+1)
	for h := x.home(v); ; h++ {
		switch e := &x.entries[h&mask]; {
		case *e == want:
			*e &^= pending
			return true
		case *e == 0 || NodeID(*e>>32) == v:
			return false
		}
	}
}

// remove deletes v, which is there.
func (x *slotIndex) remove(v NodeID) {
	mask := uint64(len(x.entries) - 1)
	h := x.home(v)
	for NodeID(x.entries[h&mask]>>32) != v || x.entries[h&mask] == 0 {
		h++
	}
	gap := h & mask
	for h = gap + 1; ; h++ {
		e := x.entries[h&mask]
		if e == 0 {
			break
		}
		// An entry may move to the gap unless its home lies behind it.
		if (h-x.home(NodeID(e>>32)))&mask >= (h-gap)&mask {
			x.entries[gap] = e
			gap = h & mask
		}
	}
	x.entries[gap] = 0
}
