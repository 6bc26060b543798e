package changeset

import "math/bits"

// turnSet is a set of turns whose largest is found in O(log64 n). It is levels of bitmaps: a bit of
// one level says that a word of the level below is not zero.
type turnSet struct{ Levels [][]uint64 }

// TurnSetBytes returns the memory of a set of turns below n, in bytes.
func TurnSetBytes(n int) int64 {
	total := int64(0)
	for n > 1 || total == 0 {
		n = (n + 63) / 64
		total += 8 * int64(n)
	}
	return total
}

// NewTurnSet returns an empty set of turns below n.
func NewTurnSet(n int) turnSet {
	var s turnSet
	for n > 1 || len(s.Levels) == 0 {
		n = (n + 63) / 64
		s.Levels = append(s.Levels, make([]uint64, n))
	}
	return s
}

func (s turnSet) Add(t uint32) {
	for _, l := range s.Levels {
		l[t>>6] |= 1 << (t & 63)
		t >>= 6
	}
}

func (s turnSet) Remove(t uint32) {
	for _, l := range s.Levels {
		l[t>>6] &^= 1 << (t & 63)
		if l[t>>6] != 0 {
			return
		}
		t >>= 6
	}
}

func (s turnSet) Empty() bool { return s.Levels[len(s.Levels)-1][0] == 0 }

// Last returns the largest turn of the set, or 0 if it is empty.
func (s turnSet) Last() (t uint32) {
	for i := len(s.Levels) - 1; i >= 0; i-- {
		t = t<<6 | uint32(max(bits.Len64(s.Levels[i][t])-1, 0))
	}
	return t
}
