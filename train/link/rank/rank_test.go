package rank_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/compute/decoder"
	"gdb/compute/kernel"
	"gdb/train/link/entities"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
)

const entityCount, relations, dim = 40, 3, 8

// TestBytes works out what an evaluation takes: the scores of 256 queries with 4096 true answers
// and 8192 candidates, and the rows of all.
func TestBytes(t *testing.T) {
	if got, want := rank.Bytes(100), int64(256*12288*4+12544*100*4); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

// newScorer is a model of small whole numbers, so that many scores are equal.
func newScorer(t *testing.T, name string, workers int) (*rank.Scorer, *entities.Table,
	func(e triples.Triple, head bool) float64) {
	t.Helper()
	d, err := decoder.New(name, dim, decoder.Options{Norm: 1})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 9))
	small := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rnd.IntN(3) - 1)
		}
		return x
	}
	learned, width := small(2*relations*d.RelationDim(dim)), d.RelationDim(dim)
	rows := small(entityCount * dim)
	s := &rank.Scorer{Pool: kernel.NewPool(workers), Decoder: d, Dim: dim,
		Forms:     make([]float32, 2*relations*d.FormDim(dim)),
		Relations: relations, Reciprocal: name == "complex"}
	for r := range 2 * relations {
		d.Form(s.Forms[r*d.FormDim(dim):][:d.FormDim(dim)], learned[r*width:][:width])
	}
	score := func(e triples.Triple, head bool) float64 {
		h, t, r := e.Head, e.Tail, int(e.Relation)
		if head && s.Reciprocal {
			h, t, r = t, h, r+relations
		}
		return d.Score(rows[int(h)*dim:][:dim], learned[r*width:][:width],
			rows[int(t)*dim:][:dim])
	}
	return s, entities.InMemory(rows, dim), score
}

func randomEdges(seed uint64, n int) (edges []triples.Triple) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range n {
		edges = append(edges, triples.Triple{Head: uint32(rnd.IntN(entityCount)),
			Relation: uint32(rnd.IntN(relations)), Tail: uint32(rnd.IntN(entityCount))})
	}
	slices.SortFunc(edges, func(a, b triples.Triple) int {
		return int(a.Head*10000+a.Relation*1000+a.Tail) - int(b.Head*10000+b.Relation*1000+b.Tail)
	})
	return slices.Compact(edges)
}

// plainRanks ranks one end of each edge with all entities, one by one.
func plainRanks(edges, known []triples.Triple, score func(triples.Triple, bool) float64,
	filtered bool) (m rank.Metrics) {
	for _, e := range edges {
		for _, head := range []bool{false, true} {
			own, place := score(e, head), 1.0
			for c := range uint32(entityCount) {
				other := e
				if head {
					other.Head = c
				} else {
					other.Tail = c
				}
				if other == e || filtered && slices.Contains(known, other) {
					continue
				}
				switch v := score(other, head); {
				case v > own:
					place++
				case v == own:
					place += 0.5
				}
			}
			m.MRR += 1 / place
			m.MeanRank += place
			for i, hits := range []*float64{&m.Hits1, &m.Hits3, &m.Hits10} {
				if place <= []float64{1, 3, 10}[i] {
					*hits++
				}
			}
			m.Ranks++
		}
	}
	for _, v := range []*float64{&m.MRR, &m.MeanRank, &m.Hits1, &m.Hits3, &m.Hits10} {
		*v /= float64(m.Ranks)
	}
	return m
}

func sameMetrics(t *testing.T, what string, got, want rank.Metrics) {
	t.Helper()
	for i, pair := range [][2]float64{{got.MRR, want.MRR}, {got.MeanRank, want.MeanRank},
		{got.Hits1, want.Hits1}, {got.Hits3, want.Hits3}, {got.Hits10, want.Hits10},
		{float64(got.Ranks), float64(want.Ranks)}} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s: metric %d is %v, want %v", what, i, pair[0], pair[1])
		}
	}
}

// TestRanks compares with an evaluation without tricks.
func TestRanks(t *testing.T) {
	for _, name := range []string{"distmult", "complex", "transe"} {
		s, v, score := newScorer(t, name, 2)
		edges, train := randomEdges(1, 60), randomEdges(2, 300)
		known := slices.Concat(edges, train)
		cfg := rank.Config{Known: entities.Indexed{Index: triples.NewIndex(known)}}
		got, err := rank.Ranks(context.Background(), s, v, edges, cfg)
		if err != nil {
			t.Fatal(err)
		}
		sameMetrics(t, name+" filtered", got.Metrics, plainRanks(edges, known, score, true))
		sameMetrics(t, name+" raw", got.Raw, plainRanks(edges, known, score, false))
		for _, r := range got.Relations {
			var of []triples.Triple
			for _, e := range edges {
				if e.Relation == r.Relation {
					of = append(of, e)
				}
			}
			sameMetrics(t, name+" relation", r.Metrics, plainRanks(of, known, score, true))
		}
		cfg.Candidates = entityCount
		if all, err := rank.Ranks(context.Background(), s, v, edges, cfg); err != nil ||
			all.Metrics != got.Metrics {
			t.Errorf("%s: among as many candidates as there are: %v, %v", name, all, err)
		}
	}
}

// TestCandidates: among few candidates ranks are at most as many, and near the share of all.
func TestCandidates(t *testing.T) {
	s, v, _ := newScorer(t, "distmult", 1)
	edges := randomEdges(1, 100)
	all, err := rank.Ranks(context.Background(), s, v, edges, rank.Config{})
	if err != nil {
		t.Fatal(err)
	}
	some, err := rank.Ranks(context.Background(), s, v, edges, rank.Config{Candidates: 20, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	want := 1 + (all.MeanRank-1)*20/39
	if math.Abs(some.MeanRank-want) > 2 || some.MRR < all.MRR {
		t.Errorf("among 20 candidates: %+v, among all %+v", some.Metrics, all.Metrics)
	}
}

func TestNothingToRank(t *testing.T) {
	s, v, _ := newScorer(t, "distmult", 1)
	if _, err := rank.Ranks(context.Background(), s, v, nil, rank.Config{}); !errors.Is(err,
		rank.ErrNothing) {
		t.Error(err)
	}
	v.All()[0] = float32(math.NaN())
	edge := []triples.Triple{{Head: 0, Relation: 0, Tail: 1}}
	if _, err := rank.Ranks(context.Background(), s, v, edge, rank.Config{}); !errors.Is(err,
		rank.ErrNaN) {
		t.Error(err)
	}
}

func TestTop(t *testing.T) {
	s, v, score := newScorer(t, "complex", 1)
	known := triples.NewIndex(randomEdges(2, 300))
	q := triples.Query{Entity: 5, Relation: 1, Head: true}
	var want []triples.Answer
	for e := range uint32(entityCount) {
		if !slices.Contains(known.Answers(q), e) {
			v := score(triples.Triple{Head: e, Relation: 1, Tail: 5}, true)
			want = append(want, triples.Answer{Entity: e, Score: float32(v)})
		}
	}
	slices.SortStableFunc(want, func(a, b triples.Answer) int { return int(b.Score - a.Score) })
	for _, n := range []int{0, 1, 7, len(want), entityCount} {
		got, err := rank.Top(t.Context(), s, v, q, n, known.Answers(q))
		if err != nil || !slices.Equal(got, want[:min(n, len(want))]) {
			t.Errorf("the best %d: %v, want %v (%v)", n, got, want, err)
		}
	}
}

func TestAUC(t *testing.T) {
	edges, others := []float32{3, 1, 2, 2}, []float32{0, 2, 5}
	wins := 0.0
	for _, e := range edges {
		for _, o := range others {
			if e > o {
				wins++
			} else if e == o {
				wins += 0.5
			}
		}
	}
	if got := rank.AUC(edges, others); math.Abs(got-wins/12) > 1e-12 {
		t.Errorf("AUC %v, want %v", got, wins/12)
	}
	if got := rank.HitsAt(edges, others, 2); got != 0.25 {
		t.Errorf("hits at 2: %v", got)
	}
	if got := rank.HitsAt(edges, others, 4); got != 1 {
		t.Errorf("hits at more than there are: %v", got)
	}
	if got := rank.HitsAt([]float32{-1, 0, 3, 4}, others, 3); got != 0.5 {
		t.Errorf("hits at as many as there are: %v, want the share above the last of them", got)
	}
}

// TestNearestOfMany: of more rows than are scored at once each is scored by its own values.
func TestNearestOfMany(t *testing.T) {
	const count, columns = 20_000, 3
	rows := make([]float32, count*columns)
	for i := range count {
		rows[i*columns+1] = float32(i * 7919 % count) // all differ
	}
	d, err := decoder.New("distmult", columns, decoder.Options{Norm: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := &rank.Scorer{Pool: kernel.NewPool(2), Decoder: d, Dim: columns}
	got, err := rank.Nearest{Scorer: s, Measure: decoder.Dot}.Find(t.Context(),
		entities.InMemory(rows, columns), []float32{0, 1, 0}, count)
	if err != nil || len(got) != count {
		t.Fatalf("%d answers: %v", len(got), err)
	}
	for i, a := range got {
		if want := float32(count - 1 - i); a.Score != want || rows[a.Entity*columns+1] != want {
			t.Fatalf("answer %d is entity %d of score %g, want %g", i, a.Entity, a.Score, want)
		}
	}
}
