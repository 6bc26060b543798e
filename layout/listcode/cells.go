package listcode

import (
	"math"
	"math/bits"
	"sort"
)

// cells are short runs of entries, each coded by itself as Elias-Fano in the same number of bits.
// So the place of an entry follows from its number alone, and reading it touches one place of
// memory, or two neighboring ones. Elias-Fano of a whole list takes about half a bit less per
// entry, but needs a sample before the place of the upper bits is known. A list in cells has, after
// the way:
//
//	low    5 bits: l, low bits of an entry
//	per    6 bits: entries of a cell, but the last
//	upper  6 bits: of a cell, at most 57, so that they are one load
//	base   5 bits: of a cell
//	cells  one after the other
//
// and a cell, with h the high bits of an entry (less a) beyond l:
//
//	base   h of its first entry
//	upper  of each entry a one at place h - base + its number in the cell
//	low    l bits of each
//
// The last cell has the low bits of its own entries only.
type cells struct {
	low, per, upper, base uint8
}

const (
	cellsHead = 5 + 6 + 6 + 5
	upperMost = 57
	perLeast  = 2
	// cellsMore says how much more than other forms cells may take, one part in cellsMore: they are
	// read faster.
	cellsMore = 3
)

// head returns the fields of a list in cells as one word.
func (k cells) head() uint64 {
	return uint64(k.low) | uint64(k.per)<<5 | uint64(k.upper)<<11 | uint64(k.base)<<17
}

// cellsOf returns the cells whose head is this word.
func cellsOf(head uint64) cells {
	return cells{low: uint8(head & 31), per: uint8(head >> 5 & 63), upper: uint8(head >> 11 & 63),
		base: uint8(head >> 17 & 31)}
}

// valid reports whether such cells can exist.
func (k cells) valid() bool { return k.per >= perLeast && k.per <= k.upper && k.upper <= upperMost }

// stride returns the bits of a cell, except the last.
func (k cells) stride() uint64 { return k.ahead() + uint64(k.per)*uint64(k.low) }

// ahead returns the bits of a cell before its low bits.
func (k cells) ahead() uint64 { return uint64(k.base) + uint64(k.upper) }

// size returns the bits of n entries, without the head.
func (k cells) size(n uint64) uint64 {
	full := (n - 1) / uint64(k.per)
	return full*k.stride() + k.ahead() + (n-full*uint64(k.per))*uint64(k.low)
}

// fitCells returns the cells of sorted entries that take fewest bits, and these bits with the head.
func fitCells(list []uint32, first uint32) (best cells, size int) {
	n := len(list)
	least, size := lowBits(n, list[n-1]-first), math.MaxInt
	late := list[max(0, n-upperMost)] - first // not above the first entry of the last cell
	for l := least; l <= min(least+lowTried, lowMost); l++ {
		// An entry has at least one upper bit, and a cell has a base.
		bases := (n + upperMost - 1) / upperMost * bits.Len32(late>>l)
		if cellsHead+n*(l+1)+bases >= size {
			break
		}
		k, ok := cellsWith(list, first, l)
		if bits := cellsHead + int(k.size(uint64(n))); ok && bits < size {
			best, size = k, bits
		}
	}
	return best, size
}

const (
	// lowTried is how many more low bits are tried than Elias-Fano of the whole list has: where ids
	// are in clusters, cells that span the gaps between clusters are the widest.
	lowTried = 2
	lowMost  = 30
)

// cellsWith returns the widest cells with l low bits.
func cellsWith(list []uint32, first uint32, l int) (k cells, ok bool) {
	// More entries need more upper bits: nearly always, so it is looked at in the end.
	n := len(list)
	if k, ok := oneCell(list, first, l); ok {
		return k, true
	}
	held, wide := 0, 0 // the last entries per cell that were found to hold, and their upper bits
	hold := func(per int) bool {
		w := widest(list, first, per, l, upperMost)
		if per > upperMost || w > upperMost {
			return false
		}
		held, wide = per, w
		return true
	}
	per := sort.Search(min(n, upperMost)-1, func(i int) bool { return !hold(i + 2) }) + 1
	per = max(perLeast, per)
	whole := (n + per - 1) / per
	if even := max(perLeast, (n+whole-1)/whole); even == held || hold(even) {
		per = even
	}
	upper := max(per, wide)
	if per != held {
		upper = max(per, widest(list, first, per, l, math.MaxInt))
	}
	last := (list[(n-1)/per*per] - first) >> l
	k = cells{uint8(l), uint8(per), uint8(upper), uint8(bits.Len32(last))}
	return k, upper <= upperMost && last < 1<<31
}

// oneCell returns the cell with l low bits that has all entries; not ok if they do not fit in one.
func oneCell(list []uint32, first uint32, l int) (k cells, ok bool) {
	n := len(list)
	base := (list[0] - first) >> l
	upper := n + int((list[n-1]-first)>>l-base)
	if n < perLeast || upper > upperMost || base >= 1<<31 {
		return k, false
	}
	return cells{uint8(l), uint8(n), uint8(upper), uint8(bits.Len32(base))}, true
}

// widestPlain returns how many upper bits the widest cell needs, but for unused places of the last
// one. It may return those of the first cell that needs more than most.
func widestPlain(list []uint32, first uint32, per, l, most int) (wide int) {
	for from := 0; from < len(list) && wide <= most; from += per {
		last := min(from+per, len(list)) - 1
		wide = max(wide, last-from+1+int((list[last]-first)>>l-(list[from]-first)>>l))
	}
	return wide
}

// append writes the entries of a list whose first id is first.
func (k cells) append(w *Writer, list []uint32, first uint32) {
	w.Add(k.head(), cellsHead)
	w.addCells(k, list, first)
}

// addCellsPlain appends cells without their head.
func (w *Writer) addCellsPlain(k cells, list []uint32, first uint32) {
	for len(list) > 0 {
		cell := list[:min(int(k.per), len(list))]
		list = list[len(cell):]
		base, upper := (cell[0]-first)>>k.low, uint64(0)
		for i, v := range cell {
			upper |= 1 << ((int((v-first)>>k.low-base) + i) & 63)
		}
		w.Add(uint64(base), int(k.base))
		w.Add(upper, int(k.upper))
		w.addLowPlain(cell, first, int(k.low))
	}
}

// at returns entry i of the cells at a place, minus the first id, and false if the cell is damaged.
func (k cells) at(b []byte, at, i uint64) (v uint32, ok bool) {
	cell := i / uint64(k.per)
	i -= cell * uint64(k.per)
	at += cell * k.stride()
	base := Field(b, at, int(k.base))
	one := selectBit(load(b, at+uint64(k.base)), i)
	low := Field(b, at+k.ahead()+i*uint64(k.low), int(k.low))
	return uint32((base+one-i)<<k.low | low), one < uint64(k.upper)
}

// decode decodes the cells at a place to ids, which are all ids of a list but the first.
func (k cells) decode(b []byte, at uint64, first uint32, ids []uint32) error {
	if readCells(k, b, at, first, ids) {
		return nil
	}
	return k.decodePlain(b, at, first, ids)
}

// decodePlain does what decode does, and tells what is damaged.
func (k cells) decodePlain(b []byte, at uint64, first uint32, ids []uint32) error {
	prev, low := first, uint64(k.low)
	mask := uint64(1)<<low - 1
	for len(ids) > 0 {
		cell := ids[:min(int(k.per), len(ids))]
		ids = ids[len(cell):]
		base := Field(b, at, int(k.base))
		upper := Field(b, at+uint64(k.base), int(k.upper))
		if upper&1 == 0 || bits.OnesCount64(upper) != len(cell) {
			return damage("has a cell with the upper bits %x for %d ids", upper, len(cell))
		}
		at += k.ahead()
		for i := range cell {
			high := base + uint64(bits.TrailingZeros64(upper)-i)
			v := first + uint32(high<<low|load(b, at)&mask)
			if v < prev {
				return damage("has id %d after %d", v, prev)
			}
			cell[i], prev = v, v
			upper &= upper - 1
			at += low
		}
	}
	return nil
}
