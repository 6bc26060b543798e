package rank_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/train/link/entities"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
)

// dealtRows are rows that were dealt to partitions at random.
type dealtRows struct {
	rows  []float32
	parts [][]uint32 // the entities of each, in the order of its rows
	known []triples.Triple
}

// dealRows deals the rows of a table.
func dealRows(v *entities.Table, parts int, known []triples.Triple) *dealtRows {
	r := &dealtRows{rows: v.All(), parts: make([][]uint32, parts), known: known}
	for i, e := range rand.New(rand.NewPCG(3, 3)).Perm(v.Count()) {
		r.parts[i%parts] = append(r.parts[i%parts], uint32(e))
	}
	return r
}

func (r *dealtRows) Count() int { return entityCount }

func (r *dealtRows) All() []float32 { return nil }

func (r *dealtRows) Place(e uint32) (part int, row uint64) {
	for part, some := range r.parts {
		if row := slices.Index(some, e); row >= 0 {
			return part, uint64(row)
		}
	}
	panic("no such entity")
}

func (r *dealtRows) Gather(_ context.Context, to []float32, entities []uint32) error {
	for i, e := range entities {
		copy(to[i*dim:][:dim], r.rows[int(e)*dim:])
	}
	return nil
}

func (r *dealtRows) Each(ctx context.Context, fn func(p *rank.Block) error) error {
	for number, some := range r.parts {
		rows := make([]float32, len(some)*dim)
		_ = r.Gather(ctx, rows, some)
		if err := fn(&rank.Block{Number: number, Rows: rows, Count: len(some),
			Entity: func(row int) uint32 { return some[row] }}); err != nil {
			return err
		}
	}
	return nil
}

// In has exactly the known edges whose end in the partition answers a query.
func (r *dealtRows) In(_ context.Context, part int, asked *triples.Index) (*triples.Index,
	error) {
	var found []triples.Triple
	for _, e := range r.known {
		tail := slices.Contains(r.parts[part], e.Tail) &&
			asked.Answers(triples.Query{Entity: e.Head, Relation: e.Relation}) != nil
		head := slices.Contains(r.parts[part], e.Head) &&
			asked.Answers(triples.Query{Entity: e.Tail, Relation: e.Relation, Head: true}) != nil
		if tail || head {
			found = append(found, e)
		}
	}
	return triples.NewIndex(found), nil
}

// TestRanksByBlock: ranks from rows that come by partition equal those of a simple evaluation, with
// memory for all queries at once and for one block of them.
func TestRanksByBlock(t *testing.T) {
	edges, train := randomEdges(1, 60), randomEdges(2, 300)
	known := slices.Concat(edges, train)
	for _, name := range []string{"distmult", "complex"} {
		s, v, score := newScorer(t, name, 2)
		rows := dealRows(v, 4, known)
		for _, bytes := range []int64{1, 1 << 30} {
			got, err := rank.Ranks(t.Context(), s, rows, edges,
				rank.Config{Known: rows, PassBytes: bytes})
			if err != nil {
				t.Fatal(err)
			}
			sameMetrics(t, name+" filtered", got.Metrics, plainRanks(edges, known, score, true))
			sameMetrics(t, name+" raw", got.Raw, plainRanks(edges, known, score, false))
			if got.Heads.Ranks != got.Tails.Ranks || got.Heads.Ranks != len(edges) {
				t.Errorf("%s: %d ranks of heads and %d of tails for %d edges", name,
					got.Heads.Ranks, got.Tails.Ranks, len(edges))
			}
		}
	}
}

// TestDrawnCandidatesByBlock: the same candidates are drawn as from rows in memory, whatever
// partitions they are in, and the ranks among them are the same.
func TestDrawnCandidatesByBlock(t *testing.T) {
	edges, train := randomEdges(1, 60), randomEdges(2, 300)
	known := slices.Concat(edges, train)
	s, v, _ := newScorer(t, "distmult", 2)
	rows := dealRows(v, 4, known)
	for _, candidates := range []int{1, 9, entityCount - 1, entityCount} {
		want, err := rank.Ranks(t.Context(), s, v, edges, rank.Config{Candidates: candidates,
			Seed: 3, Known: entities.Indexed{Index: triples.NewIndex(known)}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := rank.Ranks(t.Context(), s, rows, edges,
			rank.Config{Known: rows, Candidates: candidates, Seed: 3, PassBytes: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		sameMetrics(t, "filtered", got.Metrics, want.Metrics)
		sameMetrics(t, "raw", got.Raw, want.Raw)
	}
}

// TestRanksByBlockNothing: no edges, a score that is no number and an interruption are errors.
func TestRanksByBlockNothing(t *testing.T) {
	s, v, _ := newScorer(t, "distmult", 1)
	rows := dealRows(v, 3, nil)
	cfg := rank.Config{PassBytes: 1}
	if _, err := rank.Ranks(t.Context(), s, rows, nil, cfg); !errors.Is(err,
		rank.ErrNothing) {
		t.Errorf("no edges: %v", err)
	}
	edge := []triples.Triple{{Head: 0, Relation: 0, Tail: 1}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rank.Ranks(ctx, s, rows, edge, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	v.All()[0] = float32(math.NaN())
	if _, err := rank.Ranks(t.Context(), s, rows, edge, cfg); !errors.Is(err, rank.ErrNaN) {
		t.Errorf("a score that is no number: %v", err)
	}
}

// TestTopByBlock: the best answers from rows that come by partition are the same as from rows in
// memory. Of equal scores the entity of the lower number comes first, although partitions bring
// entities in any order.
func TestTopByBlock(t *testing.T) {
	s, v, _ := newScorer(t, "complex", 1)
	known := triples.NewIndex(randomEdges(2, 300))
	rows := dealRows(v, 3, nil)
	for e := range uint32(entityCount) {
		q := triples.Query{Entity: e, Relation: 1, Head: e%2 == 0}
		for _, n := range []int{0, 1, 7, entityCount} {
			got, err := rank.Top(t.Context(), s, rows, q, n, known.Answers(q))
			if err != nil {
				t.Fatal(err)
			}
			want, err := rank.Top(t.Context(), s, v, q, n, known.Answers(q))
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("the best %d of %v: %v, want %v (%v)", n, q, got, want, err)
			}
		}
	}
}

// TestPairsByBlock: scores of edges equal those from rows in memory, in the order of the edges.
func TestPairsByBlock(t *testing.T) {
	s, v, _ := newScorer(t, "complex", 2)
	rows := dealRows(v, 3, nil)
	edges := randomEdges(4, 50)
	slices.Reverse(edges)
	asked := slices.Clone(edges)
	want, got := make([]float32, len(edges)), make([]float32, len(edges))
	if err := rank.Pairs(t.Context(), s, v, want, edges, 0); err != nil {
		t.Fatal(err)
	}
	for _, bytes := range []int64{0, 1000, 1 << 20} {
		clear(got)
		if err := rank.Pairs(t.Context(), s, rows, got, edges, bytes); err != nil ||
			!slices.Equal(got, want) {
			t.Errorf("scores %v, want %v (%v)", got, want, err)
		}
	}
	if !slices.Equal(edges, asked) {
		t.Error("the list of edges was changed")
	}
}

// TestBest: whatever the order in which scores come, the best are those that sorting gives.
func TestBest(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 1))
	skip := []uint32{3, 8, 21}
	for n := range 12 {
		best, all := rank.NewBest(n), []triples.Answer(nil)
		order := rnd.Perm(30)
		for lo := 0; lo < len(order); lo += 7 {
			some := order[lo:min(lo+7, len(order))]
			scores := make([]float32, len(some))
			for i, e := range some {
				scores[i] = float32(rnd.IntN(4))
				if rnd.IntN(5) == 0 {
					scores[i] = float32(math.NaN())
					continue
				}
				if !slices.Contains(skip, uint32(e)) {
					all = append(all, triples.Answer{Entity: uint32(e), Score: scores[i]})
				}
			}
			best.Block(scores, func(i int) uint32 { return uint32(some[i]) }, skip)
		}
		slices.SortFunc(all, func(a, b triples.Answer) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Entity, b.Entity))
		})
		if got, want := best.Answers(), all[:min(n, len(all))]; !slices.Equal(got, want) {
			t.Errorf("the best %d are %v, want %v", n, got, want)
		}
	}
}
