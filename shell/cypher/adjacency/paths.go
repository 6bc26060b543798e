package adjacency

import "gdb/layout"

// Paths counts the paths of two edges from a node, by the nodes at which they end: first … end-1.
// It takes 8 bytes for each of these, and 4 for each that a path ends at.
type Paths struct {
	first  uint32
	counts []int64
	ends   []uint32 // less first, each once
	spans  [pathsTogether]span
	some   []uint32 // entries of short lists
}

// pathsTogether is how many lists are found before the first is read, so that the processor waits
// for several at once.
const pathsTogether = 64

// shortList is the length of lists that are copied together.
const shortList = 32

type span struct{ lo, hi uint32 }

// NewPaths returns counts that are 0.
func NewPaths(first, end uint32) *Paths {
	return &Paths{first: first, counts: make([]int64, end-first),
		some: make([]uint32, 0, pathsTogether*shortList)}
}

// Add counts the paths over some nodes: one for each entry of their lists. It returns how many.
func (p *Paths) Add(over []uint32, l *Lists) (n int) {
	p.each(over, l, func(part []uint32) {
		n += len(part)
		for _, u := range part {
			i := u - p.first
			if p.counts[i] == 0 {
				p.ends = append(p.ends, i)
			}
			p.counts[i]++
		}
	})
	return n
}

// Meet returns how many pairs there are of a path that was counted and one over some nodes which
// end at the same node, and how many of the latter there are.
func (p *Paths) Meet(over []uint32, l *Lists) (pairs int64, n int) {
	p.each(over, l, func(part []uint32) {
		n += len(part)
		for _, u := range part {
			pairs += p.counts[u-p.first]
		}
	})
	return pairs, n
}

// each calls fn with the entries of the lists of some nodes, in parts.
func (p *Paths) each(over []uint32, l *Lists, fn func(part []uint32)) {
	for len(over) > 0 {
		some := over[:min(len(over), pathsTogether)]
		over = over[len(some):]
		part := p.some[:0]
		for _, s := range p.spans[:l.find(some, &p.spans)] {
			list := l.Nbr[s.lo:s.hi]
			if len(list) > shortList {
				fn(list)
				continue
			}
			part = append(part, list...)
		}
		fn(part)
	}
}

// find finds the lists of some nodes that are not empty, and returns how many they are.
func (l *Lists) find(nodes []uint32, out *[pathsTogether]span) (n int) {
	if l.ranked == 0 {
		for _, v := range nodes {
			lo, hi := l.Of(v)
			out[n] = span{lo, hi}
			if lo < hi {
				n++
			}
		}
		return n
	}
	for _, v := range nodes {
		rank, ok := l.ranks.Rank(layout.NodeID(v))
		out[n].lo = rank
		if ok {
			n++
		}
	}
	for i := range out[:n] {
		r := out[i].lo
		out[i] = span{l.Off[r], l.Off[r+1]}
	}
	return n
}

// Any reports whether a path has been counted.
func (p *Paths) Any() bool { return len(p.ends) > 0 }

// Leave forgets the paths that end at a node.
func (p *Paths) Leave(v uint32) {
	if i := v - p.first; i < uint32(len(p.counts)) {
		p.counts[i] = 0
	}
}

// Clear forgets all paths.
func (p *Paths) Clear() {
	for _, i := range p.ends {
		p.counts[i] = 0
	}
	p.ends = p.ends[:0]
}

// Rounds returns in how many ways node v can be left for a neighbor and come back to, twice, by
// four different edges: to and from are its lists of both directions.
func Rounds(to, from []uint32, v uint32) int64 {
	all, same, loops := int64(0), int64(0), int64(0)
	Shared(to, from, func(u uint32, a, b int64) {
		if u == v {
			loops = a
			return
		}
		all += a * b
		same += a*b*a*b - a*(a-1)*b*(b-1)
	})
	two := loops * (loops - 1)
	return all*all - same + 2*two*all + two*(loops-2)*(loops-3)
}

// Shared calls fn with the neighbors that are in both of two lists, and how often in each.
func Shared(a, b []uint32, fn func(u uint32, inA, inB int64)) {
	for len(a) > 0 && len(b) > 0 {
		u := min(a[0], b[0])
		i, j := front(a, u), front(b, u)
		if i > 0 && j > 0 {
			fn(u, int64(i), int64(j))
		}
		a, b = a[i:], b[j:]
	}
}

// front returns how many entries at the front of a list are u.
func front(list []uint32, u uint32) (n int) {
	for n < len(list) && list[n] == u {
		n++
	}
	return n
}

// Times returns how often a neighbor stands in a list.
func Times(list []uint32, u uint32) int64 {
	lo, hi := Range(list, 0, uint32(len(list)), u)
	return int64(hi - lo)
}
