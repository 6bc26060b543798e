package rank

import (
	"cmp"
	"math"
	"slices"
)

// Lists summarizes lists of recommendations: for each query, all its true answers of the edges that
// are ranked, among the candidates that are not known to be true. All but the number of lists are
// from 0 to 1, and the larger the better.
type Lists struct {
	// Recall10 and Recall20 are the share of the true answers among the first 10 and 20.
	Recall10 float64 `json:"recall@10"`
	Recall20 float64 `json:"recall@20"`
	// NDCG10 and NDCG20 are the discounted gain of the first 10 and 20, as a share of the largest
	// that as many true answers can have (Järvelin and Kekäläinen, "Cumulated Gain-Based Evaluation
	// of IR Techniques").
	NDCG10 float64 `json:"ndcg@10"`
	NDCG20 float64 `json:"ndcg@20"`
	// MAP is the mean of the average precision at each true answer.
	MAP   float64 `json:"map"`
	Lists int     `json:"lists"` // the number of queries
}

// place is where a true answer stands among candidates that are not true: behind above of them, and
// in the middle of equal ones.
type place struct {
	score        float32
	above, equal int
}

// positions writes where the true answers of a list stand, from 1 and ascending, to to. Of answers
// that are not true and score equal, half stand before; the order of true ones makes no difference.
func positions(to []float64, places []place) []float64 {
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(b.score, a.score) })
	to = to[:0]
	for i, p := range places {
		to = append(to, float64(1+i+p.above)+float64(p.equal)/2)
	}
	return to
}

// add adds a list, of which true answers stand at some positions, which ascend.
func (l *Lists) add(at []float64) {
	for _, cut := range []struct {
		k            int
		recall, ndcg *float64
	}{{10, &l.Recall10, &l.NDCG10}, {20, &l.Recall20, &l.NDCG20}} {
		found, gain, best := 0, 0.0, 0.0
		for i, position := range at {
			if position <= float64(cut.k) {
				found++
				gain += 1 / math.Log2(1+position)
			}
			if i < cut.k {
				best += 1 / math.Log2(float64(2+i))
			}
		}
		*cut.recall += float64(found) / float64(len(at))
		*cut.ndcg += gain / best
	}
	precision := 0.0
	for i, position := range at {
		precision += float64(i+1) / position
	}
	l.MAP += precision / float64(len(at))
	l.Lists++
}

// finish divides the sums by the number of lists.
func (l *Lists) finish() {
	for _, v := range []*float64{&l.Recall10, &l.Recall20, &l.NDCG10, &l.NDCG20, &l.MAP} {
		*v /= float64(max(1, l.Lists))
	}
}
