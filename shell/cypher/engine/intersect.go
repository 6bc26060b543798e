package engine

import "math/bits"

// span is a part of the neighbors of lists: the list of a node.
type span struct {
	nbr  []uint32
	node uint32
}

// mark holds the list of a node as bits, so that others are intersected with it in a step an entry.
// It is worth it where the same node is asked for again and again.
type mark struct {
	node uint32
	held []uint32
	bits []uint64
}

// set marks the list of a node instead of that before.
func (m *mark) set(s span) {
	if m.held != nil && m.node == s.node {
		return
	}
	for _, u := range m.held {
		m.bits[u>>6] = 0
	}
	for _, u := range s.nbr {
		m.bits[u>>6] |= 1 << (u & 63)
	}
	m.node, m.held = s.node, s.nbr
}

// forget unmarks, before the memory of the list is used for another.
func (m *mark) forget() {
	m.set(span{})
	m.held = nil
}

// seekCost is what a step of a binary search costs beside a look at a bit.
const seekCost = 2

// intersect calls how with the entries of b that are in a: by marks, or by looking up the entries
// of the shorter list. Lists of equal neighbors may have them more than once.
func (m *mark) intersect(a, b span, dst []uint32) []uint32 {
	short, long := a.nbr, b.nbr
	if len(short) > len(long) {
		short, long = long, short
	}
	seek := len(short) * seekCost * bits.Len(uint(len(long)))
	scan := len(b.nbr)
	if m.held == nil || m.node != a.node {
		scan += 2 * len(a.nbr)
	}
	if seek < scan {
		return lookUp(short, long, dst)
	}
	m.set(a)
	last := ^uint32(0)
	for _, u := range b.nbr {
		if m.bits[u>>6]>>(u&63)&1 == 1 && u != last {
			dst = append(dst, u)
			last = u
		}
	}
	return dst
}

// common returns how many entries of b are in a. No neighbor stands in a list twice.
func (m *mark) common(a, b span) (n int64) {
	short, long := a.nbr, b.nbr
	if len(short) > len(long) {
		short, long = long, short
	}
	seek := len(short) * seekCost * bits.Len(uint(len(long)))
	scan := len(b.nbr)
	if m.held == nil || m.node != a.node {
		scan += 2 * len(a.nbr)
	}
	if seek < scan {
		return countUp(short, long)
	}
	m.set(a)
	for _, u := range b.nbr {
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
