package draw

import (
	"math/bits"

	"gdb/internal/rng"
)

// scanMax is the largest choice for which scanning the positions drawn so far is faster than a set
// of them.
const scanMax = 32

// ChooseSlots returns how many entries of scratch memory a choice of k positions needs.
func ChooseSlots(k int) int {
	if k <= scanMax {
		return 0
	}
	return 1 << bits.Len(uint(2*k-1))
}

// Choose writes len(take) of d positions, at most d, to take, as the key determines. If all are
// taken, they are in order. slots has ChooseSlots(len(take)) entries, whose contents do not matter.
//
// Floyd's algorithm draws k of d positions with k draws: for each limit m of d-k+1 … d it draws
// below m, and takes m-1 if it already has that position. The draw must be able to give m-1 itself;
// a variant that draws below m-1 is in use elsewhere, and is biased against late positions.
func Choose(key uint64, d uint32, take, slots []uint32) {
	if uint32(len(take)) == d {
		for j := range take {
			take[j] = uint32(j)
		}
		return
	}
	draw := drawer{stream: rng.NewStream(key)}
	if len(take) <= scanMax {
		floydScan(&draw, d, take)
		return
	}
	floydSet(&draw, d, take, slots)
}

// drawer gives bounded 32-bit draws, two from each draw of the stream, the low half first. It uses
// Lemire's multiplication with rejection, which is exactly uniform.
type drawer struct {
	stream rng.Stream
	bits   uint64
	halves int
}

// below returns a uniform draw of [0, n); n > 0.
func (w *drawer) below(n uint32) uint32 {
	m := uint64(w.next()) * uint64(n)
	if uint32(m) < n {
		m = w.redraw(m, n)
	}
	return uint32(m >> 32)
}

func (w *drawer) next() uint32 {
	if w.halves == 0 {
		w.bits, w.halves = w.stream.Uint64(), 2
	}
	half := uint32(w.bits)
	w.bits >>= 32
	w.halves--
	return half
}

// redraw rejects the 2^32 mod n lowest products, which would favor some results.
func (w *drawer) redraw(m uint64, n uint32) uint64 {
	for least := -n % n; uint32(m) < least; {
		m = uint64(w.next()) * uint64(n)
	}
	return m
}

// floydScan chooses len(take) of d positions. A 64-bit filter of the positions drawn, exact for d
// up to 64, avoids most scans.
func floydScan(draw *drawer, d uint32, take []uint32) {
	seen := uint64(0)
	limit := d - uint32(len(take))
	for j := range take {
		limit++
		p := draw.below(limit)
		if seen>>(p&63)&1 != 0 {
			for _, q := range take[:j] {
				if q == p {
					p = limit - 1
					break
				}
			}
		}
		seen |= 1 << (p & 63)
		take[j] = p
	}
}

// floydSet does what floydScan does, with the positions drawn so far in an open-addressing set of
// positions plus one. len(slots) must be a power of two of at least twice len(take).
func floydSet(draw *drawer, d uint32, take, slots []uint32) {
	clear(slots)
	mask := uint32(len(slots) - 1)
	limit := d - uint32(len(take))
	for j := range take {
		limit++
		p := draw.below(limit)
		if !addPosition(slots, mask, p) {
			p = limit - 1
			addPosition(slots, mask, p)
		}
		take[j] = p
	}
}

// addPosition adds p and reports whether it was new. Positions and degrees are below 2^32-1.
func addPosition(slots []uint32, mask, p uint32) bool {
	for h := p * 0x9e3779b1 >> 7; ; h++ {
		switch slots[h&mask] {
		case 0:
			slots[h&mask] = p + 1
			return true
		case p + 1:
			return false
		}
	}
}
