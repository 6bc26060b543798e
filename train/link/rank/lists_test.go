package rank_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/train/link/entities"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
)

// firstTail is the first entity that may be a tail of typedEdges; those before it may be heads.
const firstTail = 14

// mayAnswer returns which entities may be heads and tails of typedEdges.
func mayAnswer(q triples.Query) rank.Span {
	if q.Head {
		return rank.Span{Count: firstTail}
	}
	return rank.Span{First: firstTail, Count: entityCount - firstTail}
}

// typedEdges returns edges from entities of one type to those of another.
func typedEdges(seed uint64, n int) (edges []triples.Triple) {
	rnd := rand.New(rand.NewPCG(seed, 2))
	for range n {
		e := triples.Triple{Head: uint32(rnd.IntN(firstTail)),
			Relation: uint32(rnd.IntN(relations)),
			Tail:     firstTail + uint32(rnd.IntN(entityCount-firstTail))}
		if !slices.Contains(edges, e) {
			edges = append(edges, e)
		}
	}
	return edges
}

// plainLists makes the list of each query by sorting candidates, of which those that are known and
// not asked for are left out, and reads the metrics off the lists. Scores must differ.
func plainLists(edges, known []triples.Triple, score func(triples.Triple, bool) float64,
	head bool) (l rank.Lists) {
	asked := map[triples.Query][]uint32{}
	for _, e := range edges {
		q, answer := triples.Query{Entity: e.Head, Relation: e.Relation}, e.Tail
		if head {
			q, answer = triples.Query{Entity: e.Tail, Relation: e.Relation, Head: true}, e.Head
		}
		asked[q] = append(asked[q], answer)
	}
	for q, answers := range asked {
		var list []triples.Answer
		span := mayAnswer(q)
		for c := span.First; c < span.First+span.Count; c++ {
			e := triples.Triple{Head: q.Entity, Relation: q.Relation, Tail: uint32(c)}
			if head {
				e.Head, e.Tail = e.Tail, e.Head
			}
			if slices.Contains(answers, uint32(c)) || !slices.Contains(known, e) {
				list = append(list, triples.Answer{Entity: uint32(c),
					Score: float32(score(e, head))})
			}
		}
		slices.SortFunc(list, func(a, b triples.Answer) int {
			return cmp.Compare(b.Score, a.Score)
		})
		addPlain(&l, list, answers)
	}
	for _, v := range []*float64{&l.Recall10, &l.Recall20, &l.NDCG10, &l.NDCG20, &l.MAP} {
		*v /= float64(l.Lists)
	}
	return l
}

// addPlain adds the metrics of one list.
func addPlain(l *rank.Lists, list []triples.Answer, answers []uint32) {
	hits, precision := 0.0, 0.0
	gains, recalls := map[int]float64{}, map[int]float64{}
	gain, best := 0.0, 0.0
	for i, a := range list {
		if i < len(answers) {
			best += 1 / math.Log2(float64(i+2))
		}
		if slices.Contains(answers, a.Entity) {
			hits++
			precision += hits / float64(i+1)
			gain += 1 / math.Log2(float64(i+2))
		}
		for _, k := range []int{10, 20} {
			if i < k {
				gains[k], recalls[k] = gain/best, hits/float64(len(answers))
			}
		}
	}
	l.Recall10, l.Recall20 = l.Recall10+recalls[10], l.Recall20+recalls[20]
	l.NDCG10, l.NDCG20 = l.NDCG10+gains[10], l.NDCG20+gains[20]
	l.MAP += precision / float64(len(answers))
	l.Lists++
}

func sameLists(t *testing.T, what string, got, want rank.Lists) {
	t.Helper()
	for i, pair := range [][2]float64{{got.Recall10, want.Recall10}, {got.Recall20, want.Recall20},
		{got.NDCG10, want.NDCG10}, {got.NDCG20, want.NDCG20}, {got.MAP, want.MAP},
		{float64(got.Lists), float64(want.Lists)}} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s: metric %d of lists is %v, want %v", what, i, pair[0], pair[1])
		}
	}
}

// distinct changes the vectors of a scorer so that no two scores of a query are equal.
func distinct(v *entities.Table) {
	rnd := rand.New(rand.NewPCG(6, 6))
	for i := range v.All() {
		v.All()[i] += float32(rnd.NormFloat64()) / 8
	}
}

// TestListsOfTypes: lists and ranks among the entities that may answer are those that sorting them
// gives, from rows in memory and by partition, whose blocks have entities of both types.
func TestListsOfTypes(t *testing.T) {
	edges, train := typedEdges(1, 60), typedEdges(2, 200)
	known := slices.Concat(edges, train)
	for _, name := range []string{"distmult", "complex", "transe"} {
		s, v, score := newScorer(t, name, 2)
		distinct(v)
		s.Answers = mayAnswer
		tails := plainLists(edges, known, score, false)
		heads := plainLists(edges, known, score, true)
		if tails.MAP <= 0 || tails.Recall10 >= 1 || heads.NDCG20 <= 0 {
			t.Fatalf("%s: the lists say nothing: %+v, %+v", name, tails, heads)
		}
		dealt := dealRows(v, 4, known)
		indexed := entities.Indexed{Index: triples.NewIndex(known)}
		for _, c := range []struct {
			what string
			v    rank.Vectors
			cfg  rank.Config
		}{
			{"in memory", v, rank.Config{Known: indexed}},
			{"by partition", dealt, rank.Config{Known: dealt, PassBytes: 1}},
			{"together", dealt, rank.Config{Known: dealt, PassBytes: 1 << 30}},
			{"as many drawn as there are", v, rank.Config{Known: indexed,
				Candidates: entityCount - firstTail}},
		} {
			got, err := rank.Ranks(t.Context(), s, c.v, edges, c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			sameLists(t, name+", tails "+c.what, got.Lists, tails)
			sameLists(t, name+", heads "+c.what, got.HeadLists, heads)
			sameMetrics(t, name+", "+c.what, got.Metrics, plainTyped(edges, known, score))
			for _, r := range got.Relations {
				of := slices.DeleteFunc(slices.Clone(edges), func(e triples.Triple) bool {
					return e.Relation != r.Relation
				})
				sameLists(t, name+", a relation", r.Lists, plainLists(of, known, score, false))
			}
		}
	}
}

// plainTyped returns the filtered metrics of edges among the entities that may answer: answers that
// may not have no score.
func plainTyped(edges, known []triples.Triple,
	score func(triples.Triple, bool) float64) rank.Metrics {
	return plainRanks(edges, known, func(e triples.Triple, head bool) float64 {
		if end := e.Tail; !head && int(end) < firstTail || head && int(e.Head) >= firstTail {
			return math.Inf(-1)
		}
		return score(e, head)
	}, true)
}

// TestDrawnOfTypes: candidates are drawn among those that may answer, the same ones whatever blocks
// they are in.
func TestDrawnOfTypes(t *testing.T) {
	edges, train := typedEdges(1, 60), typedEdges(2, 200)
	known := slices.Concat(edges, train)
	s, v, _ := newScorer(t, "distmult", 2)
	distinct(v)
	s.Answers = mayAnswer
	dealt := dealRows(v, 4, known)
	cfg := rank.Config{Known: entities.Indexed{Index: triples.NewIndex(known)}, Candidates: 9,
		Seed: 3}
	want, err := rank.Ranks(t.Context(), s, v, edges, cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Known = dealt
	got, err := rank.Ranks(t.Context(), s, dealt, edges, cfg)
	if err != nil {
		t.Fatal(err)
	}
	sameMetrics(t, "drawn", got.Metrics, want.Metrics)
	sameLists(t, "drawn", got.Lists, want.Lists)
	for i := range entityCount {
		clear(v.All()[i*dim:][:dim])
		v.All()[i*dim] = 1 // a score above all others of those that may not answer
		if i >= firstTail {
			v.All()[i*dim] = float32(i)
		}
	}
	if got, err = rank.Ranks(t.Context(), s, v, edges, cfg); err != nil || got.MeanRank > 10 {
		t.Errorf("among 9 candidates: %+v, %v", got, err)
	}
}

// TestTopOfTypes: the best answers are those that may be.
func TestTopOfTypes(t *testing.T) {
	s, v, _ := newScorer(t, "complex", 1)
	s.Answers = mayAnswer
	for _, v := range []rank.Vectors{v, dealRows(v, 3, nil)} {
		for _, head := range []bool{false, true} {
			got, err := rank.Top(t.Context(), s, v, triples.Query{Entity: 20, Head: head},
				entityCount, nil)
			if span := mayAnswer(triples.Query{Head: head}); err != nil ||
				len(got) != span.Count {
				t.Fatalf("%d answers, want %d: %v", len(got), span.Count, err)
			}
			for _, a := range got {
				if int(a.Entity) < firstTail != head {
					t.Errorf("%d may not answer %v", a.Entity, head)
				}
			}
		}
	}
}
