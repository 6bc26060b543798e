package steps

import (
	"math/bits"

	"gdb/internal/mem"
)

// rankWords is the number of bitmap words that share a counter.
const rankWords = 8

// IDSet is the set of integer ids that occur, as a bitmap over [0, limit), and after Index the map
// from an id to its rank, which is its number: ids keep their order. Memory: 1 bit an id of the
// range and 1/16 of that for the ranks; untouched parts of the range cost nothing.
type IDSet struct {
	arena  *mem.Arena
	bitmap []uint64
	ranks  []uint32 // ids below each group of rankWords words
	limit  uint64
	top    uint64 // the largest id plus one
	count  uint64
}

// setBytes is the memory of a Set of limit ids.
func setBytes(limit uint64) int64 {
	words := (int64(limit)/64 + rankWords) &^ (rankWords - 1)
	return words*8 + words/rankWords*4 + 64
}

// NewIDSet is an empty set of ids below limit.
func NewIDSet(budget *mem.Budget, limit uint64) (*IDSet, error) {
	a, err := mem.NewArena(budget, "the set of ids", setBytes(limit))
	if err != nil {
		return nil, err
	}
	words := (limit/64 + rankWords) &^ (rankWords - 1)
	b := a.Bytes()
	return &IDSet{arena: a, bitmap: mem.View[uint64](b[:words*8]),
		ranks: mem.View[uint32](b[words*8:]), limit: limit}, nil
}

// Add puts an id into the set; false if it is out of range.
func (s *IDSet) Add(id uint64) bool {
	if id >= s.limit {
		return false
	}
	if w, bit := &s.bitmap[id/64], uint64(1)<<(id%64); *w&bit == 0 {
		*w |= bit
		s.top = max(s.top, id+1)
	}
	return true
}

// Index counts the ids and prepares Rank.
func (s *IDSet) Index() {
	s.count = 0
	for i, w := range s.Used() {
		if i%rankWords == 0 {
			s.ranks[i/rankWords] = uint32(s.count)
		}
		s.count += uint64(bits.OnesCount64(w))
	}
}

// Used is the part of the bitmap that has ones.
func (s *IDSet) Used() []uint64 { return s.bitmap[:(s.top+63)/64] }

// Rank is the number of smaller ids in the set; false if id is not in it.
func (s *IDSet) Rank(id uint64) (uint32, bool) {
	if id >= s.top {
		return 0, false
	}
	w, bit := id/64, uint64(1)<<(id%64)
	if s.bitmap[w]&bit == 0 {
		return 0, false
	}
	r := s.ranks[w/rankWords]
	for k := w &^ (rankWords - 1); k < w; k++ {
		r += uint32(bits.OnesCount64(s.bitmap[k]))
	}
	return r + uint32(bits.OnesCount64(s.bitmap[w]&(bit-1))), true
}

// Count is the number of ids, after Index.
func (s *IDSet) Count() uint64 { return s.count }

// Load fills an empty set with what Used of another gave, in pieces: one goes to word at and on,
// and the next to the word that is returned.
func (s *IDSet) Load(at int, words []uint64) int {
	n := copy(s.bitmap[at:], words)
	for i := n - 1; i >= 0; i-- {
		if words[i] != 0 {
			s.top = uint64(at+i)*64 + uint64(bits.Len64(words[i]))
			break
		}
	}
	return at + n
}

// Dense says whether the ids are exactly 0..count-1.
func (s *IDSet) Dense() bool { return s.count == s.top }

// Each calls fn with all ids in ascending order.
func (s *IDSet) Each(fn func(id uint64) error) error {
	for i, w := range s.Used() {
		for ; w != 0; w &= w - 1 {
			if err := fn(uint64(i)*64 + uint64(bits.TrailingZeros64(w))); err != nil {
				return err
			}
		}
	}
	return nil
}

// Free gives the memory back.
func (s *IDSet) Free() error { return s.arena.Free() }
