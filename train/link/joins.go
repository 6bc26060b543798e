package link

import (
	"gdb/kv"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
)

// joins says how many relations a graph has and, of a typed store, which types of nodes each joins.
type joins struct {
	count uint32 // of relations, without the reciprocal ones
	// answers gives the nodes of the type that a query asks for; nil if all may answer.
	answers func(q triples.Query) rank.Span
	// pairOf numbers the pair of types that each relation joins, from 0; nil if there is one pair.
	pairOf []uint32
	pairs  int // of types
}

// newJoins returns the joins of a store.
func newJoins(m *kv.Meta) joins {
	j := joins{count: uint32(max(1, len(m.EdgeTypes))), answers: rank.AnswersOf(m), pairs: 1}
	if j.answers == nil {
		return j
	}
	numbers := map[kv.RelationMeta]uint32{}
	for _, r := range m.Relations {
		if _, ok := numbers[r]; !ok {
			numbers[r] = uint32(len(numbers))
		}
		j.pairOf = append(j.pairOf, numbers[r])
	}
	if j.pairs = len(numbers); j.pairs == 1 {
		j.pairOf = nil
	}
	return j
}

// pair returns the number of the pair of types that an edge joins.
func (j *joins) pair(e triples.Triple) uint32 {
	if j.pairOf == nil {
		return 0
	}
	return j.pairOf[e.Relation]
}

// divide returns where the edges of a batch begin whose queries share negatives, and where the last
// of them end: at most chunk edges, which join the same types. The edges of a pair of types must
// follow one another.
func (j *joins) divide(to []int, edges []triples.Triple, chunk int) []int {
	to = append(to[:0], 0)
	for i := 1; i < len(edges); i++ {
		if i-to[len(to)-1] == chunk || j.pair(edges[i]) != j.pair(edges[i-1]) {
			to = append(to, i)
		}
	}
	return append(to, len(edges))
}
