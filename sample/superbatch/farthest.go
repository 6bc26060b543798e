package superbatch

import "math/bits"

// turnSet is a set of turns whose largest is found in O(log64 n): bitmaps of words, each bit of one
// level saying that a word of the level below is not zero.
type turnSet struct{ levels [][]uint64 }

// turnSetBytes is the memory of a set of turns below n.
func turnSetBytes(n int) int64 {
	total := int64(0)
	for n > 1 || total == 0 {
		n = (n + 63) / 64
		total += 8 * int64(n)
	}
	return total
}

func newTurnSet(n int) turnSet {
	var s turnSet
	for n > 1 || len(s.levels) == 0 {
		n = (n + 63) / 64
		s.levels = append(s.levels, make([]uint64, n))
	}
	return s
}

func (s turnSet) add(t uint32) {
	for _, l := range s.levels {
		l[t>>6] |= 1 << (t & 63)
		t >>= 6
	}
}

func (s turnSet) remove(t uint32) {
	for _, l := range s.levels {
		l[t>>6] &^= 1 << (t & 63)
		if l[t>>6] != 0 {
			return
		}
		t >>= 6
	}
}

func (s turnSet) empty() bool { return s.levels[len(s.levels)-1][0] == 0 }

// last is the largest turn of the set, or 0 if it is empty.
func (s turnSet) last() (t uint32) {
	for i := len(s.levels) - 1; i >= 0; i-- {
		t = t<<6 | uint32(max(bits.Len64(s.levels[i][t])-1, 0))
	}
	return t
}
