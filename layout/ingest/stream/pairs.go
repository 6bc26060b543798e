package stream

import "math/bits"

// pairsMost is the most pairs, and ends, that a PairWatch keeps: below 4 MB.
const pairsMost = 1 << 16

// Roles of the ends, and directions of the pairs, that a PairWatch has seen.
const (
	forward  uint8 = 1 // or: was a source
	backward uint8 = 2 // or: was a destination
)

// PairWatch tells, by a sample of the pairs of nodes, how many edges have their reverse, and by a
// sample of the nodes, whether sources are ever destinations. A pair is in the sample by the hash
// of
// its two ends, so both its edges are, or none. The samples are all there is while they are small;
// each time one is full, half of it is dropped.
type PairWatch struct {
	pairs, ends   map[uint64]uint8 // by hash
	pairsAt, atop uint             // hashes with so many leading zero bits are in it
}

// PairCounts is what a PairWatch has found.
type PairCounts struct {
	Pairs, Both  uint64 // pairs of nodes with an edge, and with edges both ways
	Ends, Shared uint64 // nodes, and those that are sources and destinations
}

// NewPairWatch has seen nothing.
func NewPairWatch() *PairWatch {
	return &PairWatch{pairs: map[uint64]uint8{}, ends: map[uint64]uint8{}}
}

// scatter is a mixing of bits: each of the result depends on all of x.
func scatter(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	hi, lo = bits.Mul64(hi^lo, 0xa0761d6478bd642f)
	return hi ^ lo
}

// Observe takes the ends of some edges, as any unique numbers.
func (w *PairWatch) Observe(src, dst []uint64) {
	for i, a := range src {
		b := dst[i]
		if a == b {
			continue
		}
		ha, hb := scatter(a), scatter(b)
		if ha>>(64-w.atop) == 0 {
			w.atop = keep(w.ends, ha, forward, w.atop)
		}
		if hb>>(64-w.atop) == 0 {
			w.atop = keep(w.ends, hb, backward, w.atop)
		}
		direction := forward
		if a > b {
			direction = backward
		}
		if h := scatter(ha + hb); h>>(64-w.pairsAt) == 0 {
			w.pairsAt = keep(w.pairs, h, direction, w.pairsAt)
		}
	}
}

// keep notes a member of a sample, and halves a full one.
func keep(m map[uint64]uint8, h uint64, what uint8, zeros uint) uint {
	m[h] |= what
	for len(m) > pairsMost {
		zeros++
		for h := range m {
			if h>>(64-zeros) != 0 {
				delete(m, h)
			}
		}
	}
	return zeros
}

// Counts is what was found so far.
func (w *PairWatch) Counts() (c PairCounts) {
	for _, d := range w.pairs {
		c.Pairs++
		c.Both += uint64(d >> 1 & d)
	}
	for _, d := range w.ends {
		c.Ends++
		c.Shared += uint64(d >> 1 & d)
	}
	return c
}
