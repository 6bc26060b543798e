package rowcache

import (
	"math/bits"

	"gdb/layout"
	"gdb/sample/draw"
)

// slotIndex finds the slot of a node. It uses open addressing with linear probing over entries of
// node<<32 | slot+1, at most half full: 16 to 32 bytes per cached row, whatever the size of the
// graph. A slot may have the bit slotPending, which is up to the user. Deleting moves later entries
// of the run back, so that there are no tombstones.
type slotIndex struct {
	entries []uint64
	shift   int
}

const (
	// slotPending marks a slot to which its row was not copied yet.
	slotPending = 1 << 31
	// slotMost is the largest number of slots, which leaves slotPending free.
	slotMost = slotPending - 1
)

// slotIndexBytes returns the memory of an index of this number of rows, in bytes.
func slotIndexBytes(rows int) int64 { return int64(slotIndexSize(rows)) * 8 }

// slotIndexSize returns the number of entries of an index of this number of rows.
func slotIndexSize(rows int) int { return 1 << bits.Len(uint(max(2*rows, 2)-1)) }

// newSlotIndex returns an empty index over zeroed memory of slotIndexSize entries.
func newSlotIndex(entries []uint64) slotIndex {
	return slotIndex{entries: entries, shift: 64 - bits.TrailingZeros(uint(len(entries)))}
}

func (x *slotIndex) home(v layout.NodeID) uint64 {
	return uint64(v) * draw.Golden64 >> (x.shift & 63)
}

// Find returns the slot of v. It may have the bit slotPending.
func (x *slotIndex) Find(v layout.NodeID) (slot uint32, ok bool) {
	mask := uint64(len(x.entries) - 1)
	for h := x.home(v); ; h++ {
		e := x.entries[h&mask]
		if e == 0 {
			return 0, false
		}
		if layout.NodeID(e>>32) == v {
			return uint32(e) - 1, true
		}
	}
}

// Put enters v, which must not be in the index.
func (x *slotIndex) Put(v layout.NodeID, slot uint32) {
	mask := uint64(len(x.entries) - 1)
	h := x.home(v)
	for x.entries[h&mask] != 0 {
		h++
	}
	x.entries[h&mask] = uint64(v)<<32 | uint64(slot+1)
}

// Fill clears slotPending of v's slot, if v is in this slot and it is pending. It returns whether
// it did.
func (x *slotIndex) Fill(v layout.NodeID, slot uint32) bool {
	mask := uint64(len(x.entries) - 1)
	want := uint64(v)<<32 | uint64(slot|slotPending+1)
	for h := x.home(v); ; h++ {
		switch e := &x.entries[h&mask]; {
		case *e == want:
			*e &^= slotPending
			return true
		case *e == 0 || layout.NodeID(*e>>32) == v:
			return false
		}
	}
}

// Remove deletes v, which must be in the index.
func (x *slotIndex) Remove(v layout.NodeID) {
	mask := uint64(len(x.entries) - 1)
	h := x.home(v)
	for layout.NodeID(x.entries[h&mask]>>32) != v || x.entries[h&mask] == 0 {
		h++
	}
	gap := h & mask
	for h = gap + 1; ; h++ {
		e := x.entries[h&mask]
		if e == 0 {
			break
		}
		// An entry may move to the gap unless its home lies behind it.
		if (h-x.home(layout.NodeID(e>>32)))&mask >= (h-gap)&mask {
			x.entries[gap] = e
			gap = h & mask
		}
	}
	x.entries[gap] = 0
}
