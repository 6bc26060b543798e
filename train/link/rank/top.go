package rank

import (
	"cmp"
	"slices"

	"gdb/train/link/triples"
)

// Answer is an entity that answers a query, and its score.
type Answer struct {
	Entity uint32
	Score  float32
}

// Best keeps the best of the answers that it is shown.
type Best struct {
	most    int
	answers []Answer
}

// NewBest returns one that keeps the n best.
func NewBest(n int) *Best { return &Best{most: n} }

// Answers are the best ones, the best first; of equal scores the entity of the lower number.
func (b *Best) Answers() []Answer { return b.answers }

// Block shows it the scores of entities that follow one another, from first on, but for those in
// skip, which ascends. A score that is no number is never among the best.
func (b *Best) Block(first int, scores []float32, skip []uint32) {
	for j, v := range scores {
		b.add(Answer{uint32(first + j), v}, skip)
	}
}

// add takes an answer in if it is one of the best so far, and not to be skipped.
func (b *Best) add(a Answer, skip []uint32) {
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
func Top(s *Scorer, q triples.Query, n int, known *triples.Index) []Answer {
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
		best.Block(lo, scores[:count], skip)
	}
	return best.Answers()
}

// compareAnswers orders the best first.
func compareAnswers(a, b Answer) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Entity, b.Entity))
}
