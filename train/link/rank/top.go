package rank

import (
	"cmp"
	"context"
	"slices"

	"gdb/compute/decoder"
	"gdb/train/link/triples"
)

// Best keeps the best of the answers that it is shown.
type Best struct {
	most    int
	answers []triples.Answer
	among   Span // what may be an answer; of no entities for all
}

// NewBest returns a Best that keeps n answers.
func NewBest(n int) *Best { return &Best{most: n} }

// Answers returns the best answers, the best first. Of equal scores the entity of the lower
// number comes first.
func (b *Best) Answers() []triples.Answer { return b.answers }

// Block shows it the scores of some entities. entity returns the entity of the i-th score; entities
// in skip, which ascends, are left out. A score that is not a number is never among the best.
func (b *Best) Block(scores []float32, entity func(i int) uint32, skip []uint32) {
	for i, v := range scores {
		if n := len(b.answers); n == b.most && n > 0 && v < b.answers[n-1].Score {
			continue // to find the entity may take long
		}
		b.add(triples.Answer{Entity: entity(i), Score: v}, skip)
	}
}

// add keeps an answer if it is one of the best so far and not to be skipped.
func (b *Best) add(a triples.Answer, skip []uint32) {
	full := len(b.answers) == b.most
	if a.Score != a.Score || full && (b.most == 0 ||
		compareAnswers(a, b.answers[b.most-1]) > 0) {
		return
	}
	if b.among.Count > 0 && !b.among.has(a.Entity) {
		return
	}
	if _, found := slices.BinarySearch(skip, a.Entity); found {
		return
	}
	at, _ := slices.BinarySearchFunc(b.answers, a, compareAnswers)
	if full {
		b.answers = b.answers[:b.most-1]
	}
	b.answers = slices.Insert(b.answers, at, a)
}

// Top returns the n best answers to a query without those in skip, which ascends. The best comes
// first, and of equal scores the entity of the lower number.
func Top(ctx context.Context, s *Scorer, v Vectors, q triples.Query, n int,
	skip []uint32) ([]triples.Answer, error) {
	entity, row := make([]float32, s.Dim), make([]float32, s.Dim)
	if err := v.Gather(ctx, entity, []uint32{q.Entity}); err != nil {
		return nil, err
	}
	s.Query(row, entity, q)
	return Nearest{Scorer: s, Measure: s.Decoder.Measure(), Skip: skip,
		Among: s.Span(q, v.Count())}.Find(ctx, v, row, n)
}

// Nearest finds the entities whose rows score best with a row.
type Nearest struct {
	*Scorer
	Measure decoder.Measure
	// Skip lists entities to leave out, in ascending order. Among are those that may be found; a
	// span of none is all.
	Skip  []uint32
	Among Span
	// Change returns the changed score of a row; nil changes nothing. Several goroutines call it.
	Change func(score float32, row []float32) float32
}

// Find returns the n entities whose rows score best with a row.
func (f Nearest) Find(ctx context.Context, v Vectors, row []float32,
	n int) ([]triples.Answer, error) {
	best := &Best{most: n, among: f.Among}
	scores := make([]float32, min(candidatesOnce, max(1, v.Count())))
	matrices := decoder.Matrices{Pool: f.Pool, Measure: f.Measure, D: f.Dim}
	err := v.Each(ctx, func(b *Block) error {
		lo, hi := 0, b.Count
		if b.Ascending && f.Among.Count > 0 {
			lo, hi = f.Among.within(b)
		}
		for ; lo < hi; lo += len(scores) {
			some := scores[:min(len(scores), hi-lo)]
			rows := b.Rows[lo*f.Dim:][:len(some)*f.Dim]
			matrices.Scores(some, row, rows, 1, len(some))
			if f.Change != nil {
				f.Pool.Span(len(some), 256, func(from, to int) {
					for i := from; i < to; i++ {
						some[i] = f.Change(some[i], rows[i*f.Dim:][:f.Dim])
					}
				})
			}
			best.Block(some, func(i int) uint32 { return b.Entity(lo + i) }, f.Skip)
		}
		return ctx.Err()
	})
	return best.Answers(), err
}

// compareAnswers orders answers, the best first.
func compareAnswers(a, b triples.Answer) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Entity, b.Entity))
}
