package triples

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
