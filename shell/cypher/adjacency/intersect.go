package adjacency

import "math/bits"

// Span is a part of the neighbors of lists: the list of a node.
type Span struct {
	Nbr  []uint32
	Node uint32
}

// Mark holds the list of a node as bits, so that others are intersected with it in a step an entry.
// It is worth it where the same node is asked for again and again.
type Mark struct {
	node uint32
	held []uint32
	bits []uint64
}

// NewMark returns marks for lists of which the neighbors are less than nodes.
func NewMark(nodes uint64) *Mark { return &Mark{bits: make([]uint64, nodes/64+1)} }

// set marks the list of a node instead of that before.
func (m *Mark) set(s Span) {
	if m.held != nil && m.node == s.Node {
		return
	}
	for _, u := range m.held {
		m.bits[u>>6] = 0
	}
	for _, u := range s.Nbr {
		m.bits[u>>6] |= 1 << (u & 63)
	}
	m.node, m.held = s.Node, s.Nbr
}

// Forget unmarks, before the memory of the list is used for another.
func (m *Mark) Forget() {
	m.set(Span{})
	m.held = nil
}

// seekCost is what a step of a binary search costs beside a look at a bit.
const seekCost = 2

// seeks returns the shorter of two lists and the longer, and whether looking up the entries of the
// one in the other takes less than going through b by the marks of a.
func (m *Mark) seeks(a, b Span) (short, long []uint32, seek bool) {
	short, long = a.Nbr, b.Nbr
	if len(short) > len(long) {
		short, long = long, short
	}
	scan := len(b.Nbr)
	if m.held == nil || m.node != a.Node {
		scan += 2 * len(a.Nbr)
	}
	return short, long, len(short)*seekCost*bits.Len(uint(len(long))) < scan
}

// Intersect appends the entries of b that are in a: by marks, or by looking up the entries
// of the shorter list. Lists of equal neighbors may have them more than once.
func (m *Mark) Intersect(a, b Span, dst []uint32) []uint32 {
	if short, long, seek := m.seeks(a, b); seek {
		return lookUp(short, long, dst)
	}
	m.set(a)
	last := ^uint32(0)
	for _, u := range b.Nbr {
		if m.bits[u>>6]>>(u&63)&1 == 1 && u != last {
			dst = append(dst, u)
			last = u
		}
	}
	return dst
}

// Common returns how many entries of b are in a. No neighbor stands in a list twice.
func (m *Mark) Common(a, b Span) (n int64) {
	if short, long, seek := m.seeks(a, b); seek {
		return countUp(short, long)
	}
	m.set(a)
	for _, u := range b.Nbr {
		n += int64(m.bits[u>>6] >> (u & 63) & 1)
	}
	return n
}

// lookUp appends the entries of short that are in long, each once.
func lookUp(short, long []uint32, dst []uint32) []uint32 {
	last := ^uint32(0)
	for _, u := range short {
		at := lower(long, u)
		long = long[at:]
		if len(long) == 0 {
			break
		}
		if long[0] == u && u != last {
			dst = append(dst, u)
			last = u
		}
	}
	return dst
}

func countUp(short, long []uint32) (n int64) {
	for _, u := range short {
		long = long[lower(long, u):]
		if len(long) == 0 {
			break
		}
		if long[0] == u {
			n++
		}
	}
	return n
}

// lower returns where the first entry is that is not less than u: by steps that double, then by
// halving.
func lower(s []uint32, u uint32) int {
	hi := 1
	for hi < len(s) && s[hi-1] < u {
		hi *= 2
	}
	lo := hi / 2
	hi = min(hi, len(s))
	for lo < hi {
		mid := (lo + hi) / 2
		if s[mid] < u {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
