package train

import (
	"math/bits"

	"gdb/internal/mem"
	"gdb/sample"

	"github.com/RoaringBitmap/roaring/v2"
)

// rankWords is how many words of a nodeSet share one count: 512 nodes, 4 bytes.
const rankWords = 8

// nodeSet is a set of nodes that numbers its members in ascending order: a table of their rows
// needs no place for the others. Memory: 1/8 byte for each node of the graph for the bits and
// 1/128 for the counts. A nil nodeSet is all nodes, each its own number.
type nodeSet struct {
	words []uint64
	ranks []uint32 // members before each rankWords words
	count int
	total uint64
	arena *mem.Arena
}

// newNodeSet returns an empty set of a graph of total nodes.
func newNodeSet(total uint64, budget *mem.Budget) (*nodeSet, error) {
	words := nodeSetGroups(total) * rankWords
	a, err := mem.NewArena(budget, "set of nodes", nodeSetBytes(total))
	if err != nil {
		return nil, err
	}
	b := a.Bytes()
	return &nodeSet{words: mem.View[uint64](b[:words*8]), ranks: mem.View[uint32](b[words*8:]),
		total: total, arena: a}, nil
}

// nodeSetGroups is how many counts a set has.
func nodeSetGroups(total uint64) int64 { return int64(total/(64*rankWords)) + 1 }

// nodeSetBytes is the memory of a set.
func nodeSetBytes(total uint64) int64 { return nodeSetGroups(total) * (8*rankWords + 4) }

func (s *nodeSet) add(v uint32) { s.words[v/64] |= 1 << (v % 64) }

func (s *nodeSet) addSet(set *roaring.Bitmap) {
	var buf [1024]uint32
	for it := set.ManyIterator(); ; {
		n := it.NextMany(buf[:])
		if n == 0 {
			return
		}
		for _, v := range buf[:n] {
			s.add(v)
		}
	}
}

func (s *nodeSet) has(v uint32) bool { return s.words[v/64]>>(v%64)&1 == 1 }

// number counts the members once all are added.
func (s *nodeSet) number() {
	s.count = 0
	for i, w := range s.words {
		if i%rankWords == 0 {
			s.ranks[i/rankWords] = uint32(s.count)
		}
		s.count += bits.OnesCount64(w)
	}
}

// row is the number of a member.
func (s *nodeSet) row(v uint32) uint32 {
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

// mapRows replaces members by their numbers.
func (s *nodeSet) mapRows(nodes []uint32) {
	if s == nil {
		return
	}
	for i, v := range nodes {
		nodes[i] = s.row(v)
	}
}

// rows is the number of members; all is the answer of a nil set.
func (s *nodeSet) rows(all uint64) int {
	if s == nil {
		return int(all)
	}
	return s.count
}

// nodeIter fills dst with the next nodes, to its length at most; none at the end.
type nodeIter func(dst []sample.NodeID) []sample.NodeID

// nodes iterates over the members in ascending order; total is the size of a nil set.
func (s *nodeSet) nodes(total uint64) nodeIter {
	if s == nil {
		return allNodes(total)
	}
	word, left := 0, s.words[0]
	return func(dst []sample.NodeID) []sample.NodeID {
		n := 0
		for n < len(dst) {
			for left == 0 {
				if word++; word == len(s.words) {
					word--
					return dst[:n]
				}
				left = s.words[word]
			}
			dst[n] = sample.NodeID(word*64 + bits.TrailingZeros64(left))
			left &= left - 1
			n++
		}
		return dst
	}
}

// allNodes iterates over 0 to total-1.
func allNodes(total uint64) nodeIter {
	at := uint64(0)
	return func(dst []sample.NodeID) []sample.NodeID {
		n := min(uint64(len(dst)), total-at)
		for i := range n {
			dst[i] = sample.NodeID(at + i)
		}
		at += n
		return dst[:n]
	}
}

// setNodes iterates over a bitmap, or over 0 to total-1 if it is nil.
func setNodes(set *roaring.Bitmap, total uint64) nodeIter {
	if set == nil {
		return allNodes(total)
	}
	it := set.ManyIterator()
	return func(dst []sample.NodeID) []sample.NodeID {
		return dst[:it.NextMany(mem.View[uint32](mem.BytesOf(dst)))]
	}
}

func (s *nodeSet) free() error {
	if s == nil {
		return nil
	}
	return s.arena.Free()
}
