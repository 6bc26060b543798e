package sample

import (
	"math/bits"

	"gdb/internal/mem"

	"github.com/RoaringBitmap/roaring/v2"
)

// rankWords is how many words of a NodeSet share one count: 512 nodes share 4 bytes.
const rankWords = 8

// NodeSet is a set of nodes that numbers its members in ascending order, so that a table of their
// rows needs no place for other nodes. It takes 1/8 byte of memory per node of the graph for bits
// and 1/128 for counts. A nil NodeSet holds all nodes, and each is its own number.
type NodeSet struct {
	words []uint64
	ranks []uint32 // number of members before each rankWords words
	count int
	total uint64
	arena *mem.Arena
}

// NewNodeSet returns an empty set for a graph of total nodes. The caller calls Free.
func NewNodeSet(total uint64, budget *mem.Budget) (*NodeSet, error) {
	words := groups(total) * rankWords
	a, err := mem.NewArena(budget, "set of nodes", NodeSetBytes(total))
	if err != nil {
		return nil, err
	}
	b := a.Bytes()
	return &NodeSet{words: mem.View[uint64](b[:words*8]), ranks: mem.View[uint32](b[words*8:]),
		total: total, arena: a}, nil
}

// groups returns how many counts a set has.
func groups(total uint64) int64 { return int64(total/(64*rankWords)) + 1 }

// NodeSetBytes returns the memory of a set for a graph of total nodes, in bytes.
func NodeSetBytes(total uint64) int64 { return groups(total) * (8*rankWords + 4) }

// Add adds a node. Number must be called before members are looked up by number.
func (s *NodeSet) Add(v uint32) { s.words[v/64] |= 1 << (v % 64) }

// AddSet adds the nodes of a bitmap.
func (s *NodeSet) AddSet(set *roaring.Bitmap) {
	var buf [1024]uint32
	for it := set.ManyIterator(); ; {
		n := it.NextMany(buf[:])
		if n == 0 {
			return
		}
		for _, v := range buf[:n] {
			s.Add(v)
		}
	}
}

// Words returns the bits of the nodes, 64 in each word. They share the set's memory.
func (s *NodeSet) Words() []uint64 { return s.words }

// Total returns the number of nodes of the graph.
func (s *NodeSet) Total() uint64 { return s.total }

// Count returns the number of members at the last call of Number.
func (s *NodeSet) Count() int { return s.count }

// Clear removes all members.
func (s *NodeSet) Clear() { clear(s.words) }

// Has reports whether a node is a member.
func (s *NodeSet) Has(v uint32) bool { return s.words[v/64]>>(v%64)&1 == 1 }

// Number numbers the members. It must be called after the last one is added.
func (s *NodeSet) Number() {
	s.count = 0
	for i, w := range s.words {
		if i%rankWords == 0 {
			s.ranks[i/rankWords] = uint32(s.count)
		}
		s.count += bits.OnesCount64(w)
	}
}

// Row returns the number of a member.
func (s *NodeSet) Row(v uint32) uint32 {
	if s == nil {
		return v
	}
	word := v / 64
	r := s.ranks[word/rankWords]
	for _, w := range s.words[word/rankWords*rankWords : word] {
		r += uint32(bits.OnesCount64(w))
	}
	return r + uint32(bits.OnesCount64(s.words[word]&(1<<(v%64)-1)))
}

// MapRows replaces members by their numbers.
func (s *NodeSet) MapRows(nodes []uint32) {
	if s == nil {
		return
	}
	for i, v := range nodes {
		nodes[i] = s.Row(v)
	}
}

// Rows returns the number of members, or all if the set is nil.
func (s *NodeSet) Rows(all uint64) int {
	if s == nil {
		return int(all)
	}
	return s.count
}

// NodeIter fills dst with the next nodes and returns those filled, none at the end.
type NodeIter func(dst []NodeID) []NodeID

// Nodes iterates over the members in ascending order. total is the number of nodes of a nil set.
func (s *NodeSet) Nodes(total uint64) NodeIter {
	if s == nil {
		return allNodes(total)
	}
	word, left := 0, s.words[0]
	return func(dst []NodeID) []NodeID {
		n := 0
		for n < len(dst) {
			for left == 0 {
				if word++; word == len(s.words) {
					word--
					return dst[:n]
				}
				left = s.words[word]
			}
			dst[n] = NodeID(word*64 + bits.TrailingZeros64(left))
			left &= left - 1
			n++
		}
		return dst
	}
}

// allNodes iterates over 0 to total-1.
func allNodes(total uint64) NodeIter {
	at := uint64(0)
	return func(dst []NodeID) []NodeID {
		n := min(uint64(len(dst)), total-at)
		for i := range n {
			dst[i] = NodeID(at + i)
		}
		at += n
		return dst[:n]
	}
}

// NodesOf iterates over the nodes of a bitmap, or over 0 to total-1 if it is nil.
func NodesOf(set *roaring.Bitmap, total uint64) NodeIter {
	if set == nil {
		return allNodes(total)
	}
	it := set.ManyIterator()
	return func(dst []NodeID) []NodeID {
		return dst[:it.NextMany(mem.View[uint32](mem.BytesOf(dst)))]
	}
}

// Free frees the memory.
func (s *NodeSet) Free() error {
	if s == nil {
		return nil
	}
	return s.arena.Free()
}
