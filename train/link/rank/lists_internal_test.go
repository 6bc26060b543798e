package rank

import (
	"math"
	"slices"
	"testing"
)

// TestPositions: true answers do not stand in each other's way, half of the equal others are before
// them, and their order in the index makes no difference.
func TestPositions(t *testing.T) {
	got := positions(nil, []place{{score: 1, above: 4}, {score: 3, above: 1}, {score: 2, above: 1,
		equal: 1}, {score: 1, above: 4}})
	if want := []float64{2, 3.5, 7, 8}; !slices.Equal(got, want) {
		t.Errorf("positions %v, want %v", got, want)
	}
}

// TestLists holds the metrics of two lists against values worked out by hand.
func TestLists(t *testing.T) {
	var l Lists
	l.add([]float64{1, 3, 15, 40}) // two of four among 10, three among 20
	l.add([]float64{2})
	l.finish()
	gain, best := 1+1/math.Log2(4), 1+1/math.Log2(3)+1/math.Log2(4)+1/math.Log2(5)
	want := Lists{Recall10: (0.5 + 1) / 2, Recall20: (0.75 + 1) / 2,
		NDCG10: (gain/best + 1/math.Log2(3)) / 2,
		NDCG20: ((gain+1/math.Log2(16))/best + 1/math.Log2(3)) / 2,
		MAP:    ((1+2.0/3+3.0/15+4.0/40)/4 + 0.5) / 2, Lists: 2}
	for i, pair := range [][2]float64{{l.Recall10, want.Recall10}, {l.Recall20, want.Recall20},
		{l.NDCG10, want.NDCG10}, {l.NDCG20, want.NDCG20}, {l.MAP, want.MAP}} {
		if math.Abs(pair[0]-pair[1]) > 1e-12 {
			t.Errorf("metric %d is %v, want %v", i, pair[0], pair[1])
		}
	}
	// Of more true answers than the list has places the best list has them all.
	var long Lists
	var first []float64
	for i := range 30 {
		first = append(first, float64(i+1))
	}
	long.add(first)
	if long.NDCG10 != 1 || long.NDCG20 != 1 || long.MAP != 1 ||
		math.Abs(long.Recall10-1.0/3) > 1e-12 {
		t.Errorf("the best list has %+v", long)
	}
}
