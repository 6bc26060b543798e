// Package triples holds edges of a graph in memory, and finds the ends that an end and a relation
// are known to have.
package triples

import "slices"

// Triple is an edge. Ends and relations are numbered from 0; a graph without relations has 0.
type Triple struct{ Head, Relation, Tail uint32 }

// Query asks for the tails of a head and a relation or, if Head is set, for the heads of a tail.
type Query struct {
	Entity, Relation uint32
	Head             bool
}

// key orders queries: tails first.
func (q Query) key() uint64 {
	k := uint64(q.Relation)<<32 | uint64(q.Entity)
	if q.Head {
		k |= 1 << 63
	}
	return k
}

// queryOf is the query of a key.
func queryOf(key uint64) Query {
	return Query{Entity: uint32(key), Relation: uint32(key >> 32 &^ (1 << 31)), Head: key>>63 == 1}
}

// RelationsMost is how many relations a graph may have: their numbers share a word with others.
const RelationsMost = 1 << 31

// Index finds the entities that answer a query, of sets of edges. It is never changed once it is
// made, and may be used from any goroutine.
type Index struct {
	keys    []uint64
	off     []uint32
	answers []uint32
}

// Bytes is the memory of an index of so many edges, and what making it takes: keys and answers of
// both directions, and offsets.
func Bytes(edges int64) int64 { return 2 * edges * (16 + 8 + 4 + 4) }

// NewIndex finds all queries of all edges of some sets. An edge that is in several counts once.
func NewIndex(sets ...[]Triple) *Index {
	type pair struct {
		key    uint64
		answer uint32
	}
	var pairs []pair
	for _, set := range sets {
		for _, t := range set {
			pairs = append(pairs, pair{Query{t.Head, t.Relation, false}.key(), t.Tail},
				pair{Query{t.Tail, t.Relation, true}.key(), t.Head})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		switch {
		case a.key < b.key || a.key == b.key && a.answer < b.answer:
			return -1
		case a == b:
			return 0
		}
		return 1
	})
	pairs = slices.Compact(pairs)
	x := &Index{answers: make([]uint32, 0, len(pairs))}
	for i, p := range pairs {
		if i == 0 || p.key != pairs[i-1].key {
			x.keys, x.off = append(x.keys, p.key), append(x.off, uint32(i))
		}
		x.answers = append(x.answers, p.answer)
	}
	x.off = append(x.off, uint32(len(pairs)))
	return x
}

// Len is the number of different queries.
func (x *Index) Len() int { return len(x.keys) }

// At is query i, and its answers in ascending order. They must not be changed.
func (x *Index) At(i int) (Query, []uint32) {
	return queryOf(x.keys[i]), x.answers[x.off[i]:x.off[i+1]]
}

// Answers of a query in ascending order: nil if there are none. They must not be changed.
func (x *Index) Answers(q Query) []uint32 {
	i, found := slices.BinarySearch(x.keys, q.key())
	if !found {
		return nil
	}
	return x.answers[x.off[i]:x.off[i+1]]
}

// Has says whether an edge is in the index.
func (x *Index) Has(t Triple) bool {
	_, found := slices.BinarySearch(x.Answers(Query{t.Head, t.Relation, false}), t.Tail)
	return found
}
