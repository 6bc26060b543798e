package stream

import (
	"math"
	"math/bits"
)

//go:generate go run -tags avogen ./gen

// pairsMost and endsMost are how many pairs and ends a PairWatch keeps at most. Each end is at many
// edges, so fewer of them are looked up less often.
const pairsMost, endsMost = 1 << 16, 1 << 14

// Roles of the ends, and directions of the pairs, that a PairWatch has seen.
const (
	forward  uint8 = 1 // or: was a source
	backward uint8 = 2 // or: was a destination
)

// PairWatch tells, by a sample of the pairs of nodes, how many edges have their reverse, and by a
// sample of the nodes, whether sources are ever destinations. A pair is in the sample by the hash
// of its two ends, so both its edges are, or none. The samples are all there is while they are
// small; each time one is full, half of it is dropped.
type PairWatch struct {
	pairs, ends hashSample
	marks       [marksMost / marksWord]uint16
}

// PairCounts is what a PairWatch has found.
type PairCounts struct {
	Pairs, Both  uint64 // pairs of nodes with an edge, and with edges both ways
	Ends, Shared uint64 // nodes, and those that are sources and destinations
}

// NewPairWatch returns a watch that has seen nothing.
func NewPairWatch() *PairWatch {
	return &PairWatch{pairs: newHashSample(pairsMost), ends: newHashSample(endsMost)}
}

// hashSample is a table of hashes that begin with some zero bits, and of what is noted of each, in
// place of its last two bits; half of its slots are taken at most. That of pairs takes 1 MB. Hashes
// are collected and looked up together, so that the cache misses of their slots overlap.
type hashSample struct {
	slots  []uint64 // of hashes with what is noted; 0 where a slot is free
	count  int
	zeros  uint
	kept   []uint64 // while it is halved
	late   []uint64 // what is not in the table yet; at most lateMost
	recent [recentMost]uint64
}

const (
	noteBits = 2
	noteMask = 1<<noteBits - 1
	lateMost = 256
	// recentMost is how many of the last notes are kept, so that they are not looked up again:
	// large nodes are at the ends of many edges.
	recentMost = 1 << 10
)

// newHashSample returns a sample of a number of hashes at most, a power of two.
func newHashSample(most int) hashSample { return hashSample{slots: make([]uint64, 2*most)} }

// most returns the largest first half of a hash in the sample.
func (s *hashSample) most() uint32 { return math.MaxUint32 >> s.zeros }

// note adds what to a hash, if that is in the sample.
func (s *hashSample) note(h uint64, what uint8) {
	if h>>(64-s.zeros) != 0 {
		return
	}
	noted := h&^noteMask | uint64(what)
	if last := &s.recent[h>>noteBits%recentMost]; *last != noted {
		*last = noted
		if s.late = append(s.late, noted); len(s.late) == lateMost {
			s.addLate()
		}
	}
}

// addLate adds the hashes that were collected to the table.
func (s *hashSample) addLate() {
	for _, noted := range s.late {
		s.add(noted)
	}
	s.late = s.late[:0]
}

// add adds a hash with what is noted to the table, if it is in the sample, and halves a full one.
func (s *hashSample) add(noted uint64) {
	if noted>>(64-s.zeros) != 0 {
		return
	}
	i := noted >> noteBits % uint64(len(s.slots))
	for s.slots[i] != 0 && (s.slots[i]^noted)&^noteMask != 0 {
		i = (i + 1) % uint64(len(s.slots))
	}
	if s.slots[i] == 0 {
		s.count++
	}
	s.slots[i] |= noted
	for 2*s.count > len(s.slots) {
		s.halve()
	}
}

// halve drops the hashes that do not begin with one zero bit more. It makes no new table: of these
// there would be one for each time that edges double.
func (s *hashSample) halve() {
	s.zeros++
	kept := s.kept[:0]
	for _, noted := range s.slots {
		if noted != 0 && noted>>(64-s.zeros) == 0 {
			kept = append(kept, noted)
		}
	}
	clear(s.slots)
	s.kept, s.count = kept, 0
	for _, noted := range kept {
		s.add(noted)
	}
}

// counts returns how many hashes there are, and of how many both bits are noted.
func (s *hashSample) counts() (all, both uint64) {
	s.addLate()
	for _, noted := range s.slots {
		both += noted >> 1 & noted & 1
	}
	return uint64(s.count), both
}

// A hash of 64 bits is two halves. The first, which says what is in a sample, takes few operations
// on 32 bits, so that kernels compute it for many nodes together; the second is computed for what
// is in a sample.

// Odd constants that first halves are multiplied by, and one that is added before.
const (
	hashAdd    = 0x9e3779b9
	hashFirst  = 0x7feb352d
	hashSecond = 0x846ca68b
	hashThird  = 0x9e485565
)

// nodeHalf returns the first half of the hash of a node.
func nodeHalf(v uint64) uint32 {
	x := uint32(v)
	if v>>32 != 0 {
		x ^= uint32(scatter(v >> 32))
	}
	x = (x + hashAdd) * hashFirst
	return (x ^ x>>15) * hashSecond
}

// pairHalf returns the first half of the hash of a pair, given those of its ends.
func pairHalf(a, b uint32) uint32 {
	x := a + b
	return (x ^ x>>16) * hashThird
}

// scatter mixes bits: each bit of the result depends on all of x.
func scatter(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	hi, lo = bits.Mul64(hi^lo, 0xa0761d6478bd642f)
	return hi ^ lo
}

// hashOf returns the hash with a first half.
func hashOf(half uint32, second uint64) uint64 { return uint64(half)<<32 | second>>32 }

// Observe takes the ends of some edges, as any unique numbers.
func (w *PairWatch) Observe(src, dst []uint64) {
	for i, a := range src {
		if b := dst[i]; a != b {
			hb := nodeHalf(b)
			if hb <= w.ends.most() {
				w.ends.note(hashOf(hb, scatter(b)), backward)
			}
			w.edge(a, b, hb)
		}
	}
}

// marksMost is how many sources of a list are marked together, and marksWord how many in a word.
const marksMost, marksWord = 1 << 12, 16

// ObserveList takes the edges from some sources, which ascend, to one node, and returns how many
// are loops.
func (w *PairWatch) ObserveList(dst uint64, src []uint32) (loops uint64) {
	hb := nodeHalf(dst)
	if len(src) > 0 && (uint64(src[0]) != dst || uint64(src[len(src)-1]) != dst) &&
		hb <= w.ends.most() {
		w.ends.note(hashOf(hb, scatter(dst)), backward)
	}
	// Nearly no hash is in a sample of a large graph.
	for len(src) > 0 {
		some := src[:min(len(src), marksMost)]
		f := newFilter(dst, w.ends.most(), w.pairs.most())
		f.mark(some, &w.marks)
		for i, word := range w.marks[:(len(some)+marksWord-1)/marksWord] {
			for ; word != 0; word &= word - 1 {
				if a := uint64(some[marksWord*i+bits.TrailingZeros16(word)]); a == dst {
					loops++
				} else {
					w.edge(a, dst, hb)
				}
			}
		}
		src = src[len(some):]
	}
	return loops
}

// edge takes an edge from a to b, the first half of whose hash is hb.
func (w *PairWatch) edge(a, b uint64, hb uint32) {
	ha := nodeHalf(a)
	if ha <= w.ends.most() {
		w.ends.note(hashOf(ha, scatter(a)), forward)
	}
	hp := pairHalf(ha, hb)
	if hp > w.pairs.most() {
		return
	}
	direction := forward
	if a > b {
		direction = backward
	}
	w.pairs.note(hashOf(hp, scatter(scatter(a)+scatter(b))), direction)
}

// Counts returns what was found so far.
func (w *PairWatch) Counts() (c PairCounts) {
	c.Pairs, c.Both = w.pairs.counts()
	c.Ends, c.Shared = w.ends.counts()
	return c
}

// filter is what says which sources of the list of a node are marked. Kernels know where its fields
// are.
type filter struct {
	dst     uint32
	dstHalf uint32
	ends    uint32 // the largest first half of an end that is in the sample
	pairs   uint32 // the same of a pair
	// These are hashAdd and what follows it, for kernels.
	add, first, second, third uint32
}

// newFilter returns the filter of the sources of a node.
func newFilter(dst uint64, ends, pairs uint32) filter {
	return filter{uint32(dst), nodeHalf(dst), ends, pairs, hashAdd, hashFirst, hashSecond,
		hashThird}
}

// markPlain marks the sources that are in the sample of ends, whose edge is in the sample of pairs,
// or that are the node itself.
func (f *filter) markPlain(src []uint32, marks *[marksMost / marksWord]uint16) {
	clear(marks[:(len(src)+marksWord-1)/marksWord])
	for i, a := range src {
		ha := nodeHalf(uint64(a))
		if ha <= f.ends || pairHalf(ha, f.dstHalf) <= f.pairs || a == f.dst {
			marks[i/marksWord] |= 1 << (i % marksWord)
		}
	}
}
