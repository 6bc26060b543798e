package triples

// Asked are queries whose answers are looked for among many edges, most of which answer none.
type Asked struct {
	*Index
	tails, heads entitySet
}

// NewAsked are the queries of an index, over so many entities: a bit each for either end.
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

// ForTail says whether an edge's tail answers one of the queries, and ForHead whether its head
// does.
func (a *Asked) ForTail(t Triple) bool {
	return a.tails.has(t.Head) && a.Answers(Query{Entity: t.Head, Relation: t.Relation}) != nil
}

// ForHead is ForTail for the head.
func (a *Asked) ForHead(t Triple) bool {
	return a.heads.has(t.Tail) && a.Answers(Query{Entity: t.Tail, Relation: t.Relation,
		Head: true}) != nil
}

// entitySet is a set of entities, a bit each.
type entitySet []uint64

func (b entitySet) has(e uint32) bool { return b[e/64]>>(e%64)&1 == 1 }
