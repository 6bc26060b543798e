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

// Top returns the n best answers to a query that are not known, the best first; of equal scores the
// entity of the lower number. known is nil where all count.
func Top(s *Scorer, q triples.Query, n int, known *triples.Index) []Answer {
	row, scores := make([]float32, s.Dim), make([]float32, min(candidatesOnce, s.Count))
	s.query(row, q)
	var skip []uint32
	if known != nil {
		skip = known.Answers(q)
	}
	best := top{n: n, skip: skip}
	for lo := 0; lo < s.Count; lo += candidatesOnce {
		count := min(candidatesOnce, s.Count-lo)
		s.scores(scores, row, s.Entities[lo*s.Dim:], 1, count)
		for j, v := range scores[:count] {
			best.add(Answer{uint32(lo + j), v})
		}
	}
	return best.answers
}

// top keeps the n best answers.
type top struct {
	n       int
	skip    []uint32 // in ascending order
	answers []Answer
}

// add takes an answer in if it is one of the best so far, and not to be skipped.
func (t *top) add(a Answer) {
	full := len(t.answers) == t.n
	if full && (t.n == 0 || compareAnswers(a, t.answers[t.n-1]) > 0) {
		return
	}
	if _, found := slices.BinarySearch(t.skip, a.Entity); found {
		return
	}
	at, _ := slices.BinarySearchFunc(t.answers, a, compareAnswers)
	if full {
		t.answers = t.answers[:t.n-1]
	}
	t.answers = slices.Insert(t.answers, at, a)
}

// compareAnswers orders the best first.
func compareAnswers(a, b Answer) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Entity, b.Entity))
}
