// Package slotindex finds where a cache keeps the row of a node, and remembers nodes whose rows it
// kept before.
package slotindex

import (
	"math/bits"

	"gdb/layout"
	"gdb/sample/draw"
)

// Index finds the slot of a node: open addressing with linear probing over entries of
// node<<32 | slot+1, at most half full: 16 to 32 bytes per cached row, whatever the size of the
// graph. The slot may have the bit Pending, for its user. Deleting moves later entries of the run
// back, so that there are no tombstones.
type Index struct {
	entries []uint64
	shift   int
}

const (
	// Pending marks a slot whose row was not copied to it yet.
	Pending = 1 << 31
	// Most leaves that bit free.
	Most = Pending - 1
)

// Bytes is the memory of an index of that many rows.
func Bytes(rows int) int64 { return int64(Size(rows)) * 8 }

// Size is its number of entries.
func Size(rows int) int { return 1 << bits.Len(uint(max(2*rows, 2)-1)) }

// New returns an empty index over zeroed memory of Size entries.
func New(entries []uint64) Index {
	return Index{entries: entries, shift: 64 - bits.TrailingZeros(uint(len(entries)))}
}

func (x *Index) home(v layout.NodeID) uint64 {
	return uint64(v) * draw.Golden64 >> (x.shift & 63)
}

// Find returns the slot of v.
func (x *Index) Find(v layout.NodeID) (slot uint32, ok bool) {
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

// Put enters v, which is not there.
func (x *Index) Put(v layout.NodeID, slot uint32) {
	mask := uint64(len(x.entries) - 1)
	h := x.home(v)
	for x.entries[h&mask] != 0 {
		h++
	}
	x.entries[h&mask] = uint64(v)<<32 | uint64(slot+1)
}

// Fill takes the mark Pending from the slot of v, if that is the one and has it.
func (x *Index) Fill(v layout.NodeID, slot uint32) bool {
	mask := uint64(len(x.entries) - 1)
	want := uint64(v)<<32 | uint64(slot|Pending+1)
	for h := x.home(v); ; h++ {
		switch e := &x.entries[h&mask]; {
		case *e == want:
			*e &^= Pending
			return true
		case *e == 0 || layout.NodeID(*e>>32) == v:
			return false
		}
	}
}

// Remove deletes v, which is there.
func (x *Index) Remove(v layout.NodeID) {
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
