package triples_test

import (
	"math/rand/v2"
	"testing"

	"gdb/train/link/triples"
)

// TestAsked compares with a search through all queries: an edge's tail answers a query for tails of
// the same head and relation, and its head one for heads of the same tail and relation. Entities
// take several words of a set.
func TestAsked(t *testing.T) {
	const entities, relations = 150, 3
	rnd := rand.New(rand.NewPCG(1, 4))
	draw := func(n int) (edges []triples.Triple) {
		for range n {
			edges = append(edges, triples.Triple{Head: rnd.Uint32N(entities),
				Relation: rnd.Uint32N(relations), Tail: rnd.Uint32N(entities)})
		}
		return edges
	}
	x := triples.NewIndex(draw(60))
	asked := triples.NewAsked(x, entities)
	answers := [2]int{}
	for _, e := range draw(5000) {
		tail, head := false, false
		for i := range x.Len() {
			q, _ := x.At(i)
			if q.Relation != e.Relation {
				continue
			}
			tail = tail || !q.Head && q.Entity == e.Head
			head = head || q.Head && q.Entity == e.Tail
		}
		if asked.ForTail(e) != tail || asked.ForHead(e) != head {
			t.Fatalf("%v: its tail is asked for: %v, its head: %v, want %v and %v", e,
				asked.ForTail(e), asked.ForHead(e), tail, head)
		}
		if tail {
			answers[0]++
		}
		if head {
			answers[1]++
		}
	}
	if answers[0] == 0 || answers[1] == 0 {
		t.Fatalf("%v edges answer queries", answers)
	}
}
