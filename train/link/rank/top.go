package rank

import (
	"cmp"
	"slices"

	"gdb/train/link/triples"
)

// Best keeps the best of the answers that it is shown.
type Best struct {
	most    int
	answers []triples.Answer
}

// NewBest returns one that keeps the n best.
func NewBest(n int) *Best { return &Best{most: n} }

// Answers are the best ones, the best first; of equal scores the entity of the lower number.
func (b *Best) Answers() []triples.Answer { return b.answers }

// Block shows it some scores, but for those of entities in skip, which ascends. entity is that of a
// score by its place. A score that is no number is never among the best.
func (b *Best) Block(scores []float32, entity func(i int) uint32, skip []uint32) {
	for i, v := range scores {
		if n := len(b.answers); n == b.most && n > 0 && v < b.answers[n-1].Score {
			continue // to find the entity may take long
		}
		b.add(triples.Answer{Entity: entity(i), Score: v}, skip)
	}
}

// add takes an answer in if it is one of the best so far, and not to be skipped.
func (b *Best) add(a triples.Answer, skip []uint32) {
	full := len(b.answers) == b.most
	if a.Score != a.Score || full && (b.most == 0 ||
		compareAnswers(a, b.answers[b.most-1]) > 0) {
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

// Top returns the n best answers to a query that are not known, the best first; of equal scores the
// entity of the lower number. known is nil where all count.
func Top(s *Scorer, q triples.Query, n int, known *triples.Index) []triples.Answer {
	row, scores := make([]float32, s.Dim), make([]float32, min(candidatesOnce, s.Count))
	s.query(row, q)
	var skip []uint32
	if known != nil {
		skip = known.Answers(q)
	}
	best := NewBest(n)
	for lo := 0; lo < s.Count; lo += candidatesOnce {
		count := min(candidatesOnce, s.Count-lo)
		s.scores(scores, row, s.Entities[lo*s.Dim:], 1, count)
		best.Block(scores[:count], func(i int) uint32 { return uint32(lo + i) }, skip)
	}
	return best.Answers()
}

// compareAnswers orders the best first.
func compareAnswers(a, b triples.Answer) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Entity, b.Entity))
}
