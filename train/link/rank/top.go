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
	var best []Answer
	for lo := 0; lo < s.Count; lo += candidatesOnce {
		count := min(candidatesOnce, s.Count-lo)
		s.scores(scores, row, s.Entities[lo*s.Dim:], 1, count)
		for j, v := range scores[:count] {
			a := Answer{uint32(lo + j), v}
			if len(best) == n && (n == 0 || compareAnswers(a, best[n-1]) > 0) {
				continue
			}
			if _, found := slices.BinarySearch(skip, a.Entity); found {
				continue
			}
			at, _ := slices.BinarySearchFunc(best, a, compareAnswers)
			if len(best) == n {
				best = best[:n-1]
			}
			best = slices.Insert(best, at, a)
		}
	}
	return best
}

// compareAnswers orders the best first.
func compareAnswers(a, b Answer) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Entity, b.Entity))
}
