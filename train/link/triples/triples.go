// Package triples holds edges of a graph in memory. It finds the tails that are known for a head
// and a relation, and the heads that are known for a tail and a relation.
package triples

import (
	"slices"
)

// Triple is an edge. Ends and relations are numbered from 0; a graph without relations has 0.
type Triple struct{ Head, Relation, Tail uint32 }

// Query asks for the tails of a head and a relation or, if Head is set, for the heads of a tail
// and a relation.
type Query struct {
	Entity, Relation uint32
	Head             bool
}

// Index finds the entities that answer a query in some sets of edges. It does not change once made,
// and may be used from any goroutine.
type Index struct {
	tails, heads direction
}

// direction holds the queries for one end, by relation and then by entity. Relation r has the
// queries first[r] to first[r+1], and query i the answers answers[off[i]:off[i+1]].
type direction struct {
	first, entities, off, answers []uint32
}

// Bytes bounds the memory of an index of a number of edges, and of making it: for each direction an
// answer, an entity and an offset for each edge, and for one direction at a time the places of
// edges being sorted. Most graphs take less, since edges share queries. What is kept for each
// relation comes on top.
func Bytes(edges int64) int64 { return edges * (2*(4+4+4) + 4) }

// NewIndex returns an index of all edges of some sets. An edge that is in several sets counts once.
func NewIndex(sets ...[]Triple) *Index {
	e := edgeSets{sets: sets}
	for _, s := range sets {
		e.count += len(s)
		e.ends = append(e.ends, e.count)
		for _, t := range s {
			e.relations, e.entities = max(e.relations, t.Relation+1), max(e.entities, t.Head,
				t.Tail)
		}
	}
	return &Index{tails: newDirection(&e, false), heads: newDirection(&e, true)}
}

// edgeSets numbers the edges of sets, one set after the other.
type edgeSets struct {
	sets      [][]Triple
	ends      []int // number of the edge after each set
	count     int
	relations uint32
	entities  uint32 // the largest number of an entity
}

// at returns edge i as a query for one of its ends, and the answer.
func (e *edgeSets) at(i uint32, head bool) (entity, relation, answer uint32) {
	set, first := 0, 0
	for int(i) >= e.ends[set] {
		first = e.ends[set]
		set++
	}
	t := &e.sets[set][int(i)-first]
	if head {
		return t.Tail, t.Relation, t.Head
	}
	return t.Head, t.Relation, t.Tail
}

// newDirection sorts the edges by relation, entity and answer, through their numbers. It takes 8
// bytes for each edge, half of which becomes the answers.
func newDirection(e *edgeSets, head bool) direction {
	var order Groups
	order.reset(e.count)
	for _, key := range []struct {
		largest uint32
		of      func(i uint32) uint32
	}{{e.entities, func(i uint32) uint32 { _, _, a := e.at(i, head); return a }},
		{e.entities, func(i uint32) uint32 { v, _, _ := e.at(i, head); return v }},
		{e.relations, func(i uint32) uint32 { _, r, _ := e.at(i, head); return r }}} {
		order.sort(key.largest, key.of)
	}
	queries, answers := 0, 0
	e.each(order.At, head, func(_, _, _ uint32, fresh bool) {
		if answers++; fresh {
			queries++
		}
	})
	d := direction{first: make([]uint32, e.relations+1), entities: make([]uint32, 0, queries),
		off: make([]uint32, 0, queries+1), answers: order.other[:0]}
	e.each(order.At, head, func(entity, relation, answer uint32, fresh bool) {
		if fresh {
			d.entities = append(d.entities, entity)
			d.off = append(d.off, uint32(len(d.answers)))
			d.first[relation+1]++
		}
		d.answers = append(d.answers, answer)
	})
	d.off = append(d.off, uint32(len(d.answers)))
	for r := range e.relations {
		d.first[r+1] += d.first[r]
	}
	return d
}

// each calls fn with the edges in an order, skipping repeated ones, and with whether the
// query is a new one.
func (e *edgeSets) each(order []uint32, head bool,
	fn func(entity, relation, answer uint32, fresh bool)) {
	var last [3]uint32
	for i, at := range order {
		entity, relation, answer := e.at(at, head)
		now := [3]uint32{entity, relation, answer}
		if i > 0 && now == last {
			continue
		}
		fn(entity, relation, answer, i == 0 || entity != last[0] || relation != last[1])
		last = now
	}
}

// Len returns the number of different queries.
func (x *Index) Len() int { return len(x.tails.entities) + len(x.heads.entities) }

// At returns query i, and its answers in ascending order, which must not be changed. Queries for
// tails come first; the queries of a direction are ordered by relation and then by entity.
func (x *Index) At(i int) (Query, []uint32) {
	d, head := &x.tails, false
	if n := len(x.tails.entities); i >= n {
		d, head, i = &x.heads, true, i-n
	}
	after, _ := slices.BinarySearch(d.first, uint32(i)+1) // the first that begins behind it
	return Query{Entity: d.entities[i], Relation: uint32(after) - 1, Head: head}, d.of(i)
}

// of returns the answers of query i of a direction.
func (d *direction) of(i int) []uint32 { return d.answers[d.off[i]:d.off[i+1]:d.off[i+1]] }

// Answers returns the answers of a query in ascending order; nil if there are none. They must
// not be changed.
func (x *Index) Answers(q Query) []uint32 {
	d := &x.tails
	if q.Head {
		d = &x.heads
	}
	if int(q.Relation)+1 >= len(d.first) {
		return nil
	}
	first := d.first[q.Relation]
	i, found := slices.BinarySearch(d.entities[first:d.first[q.Relation+1]], q.Entity)
	if !found {
		return nil
	}
	return d.of(int(first) + i)
}

// Has reports whether an edge is in the index.
func (x *Index) Has(t Triple) bool {
	_, found := slices.BinarySearch(x.Answers(Query{t.Head, t.Relation, false}), t.Tail)
	return found
}

// Answer is an entity that answers a query, and its score.
type Answer struct {
	Entity uint32
	Score  float32
}

// Part is what an epoch trains on at a time: some edges, whose ends are numbers of rows that are in
// memory.
type Part struct {
	Edges []Triple
	// Spans lists the rows that entities have. Other rows may not be used.
	Spans []Span
	// Set lists the partitions of the spans, in the same order; nil if all rows are in memory.
	Set []int
	// RowOf returns the row of a node, and false if it is not in memory; nil if row i has node i.
	RowOf func(node uint32) (row uint32, ok bool)
}

// Span is a range of rows.
type Span struct{ Row, Count uint32 }

// Asked filters many edges by the queries of an index, for which most edges are no answer.
type Asked struct {
	*Index
	tails, heads entitySet
}

// NewAsked returns a filter for the queries of an index, over a number of entities. It takes two
// bits for each entity.
func NewAsked(x *Index, entities int) *Asked {
	words := (entities + 63) / 64
	a := &Asked{Index: x, tails: make(entitySet, words), heads: make(entitySet, words)}
	for i := range x.Len() {
		q, _ := x.At(i)
		to := a.tails
		if q.Head {
			to = a.heads
		}
		to[q.Entity/64] |= 1 << (q.Entity % 64)
	}
	return a
}

// ForTail reports whether the tail of an edge answers one of the queries.
func (a *Asked) ForTail(t Triple) bool {
	return a.tails.has(t.Head) && a.Answers(Query{Entity: t.Head, Relation: t.Relation}) != nil
}

// ForHead reports whether the head of an edge answers one of the queries.
func (a *Asked) ForHead(t Triple) bool {
	return a.heads.has(t.Tail) && a.Answers(Query{Entity: t.Tail, Relation: t.Relation,
		Head: true}) != nil
}

// entitySet is a set of entities, one bit for each.
type entitySet []uint64

func (b entitySet) has(e uint32) bool { return b[e/64]>>(e%64)&1 == 1 }
