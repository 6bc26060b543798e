package task

import (
	"math"
	"testing"

	"gdb/kv"
	"gdb/layout/layouttest"
	"gdb/sample"
)

// TestBalanced has the weights that scikit-learn's "balanced" gives: 10/(3·6), 10/(3·3), 10/(3·1).
func TestBalanced(t *testing.T) {
	meta := &kv.LabelsMeta{Kind: KindClass, Classes: []string{"a", "b", "c", "not there"}}
	// The classes are 0 six times, 1 three times and 2 once; node 10 has none.
	classes := []int32{0, 0, 0, 0, 0, 0, 1, 1, 1, 2, -1}
	rows := layouttest.WordFile(t, nil, len(classes), func(v sample.NodeID) uint32 {
		return uint32(classes[v])
	})
	l, err := sample.NewLabels(t.Context(), meta, rows, 11, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Balanced(t.Context(), l, []sample.NodeID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []float64{0.55555556, 1.1111111, 3.3333333, 1} {
		if math.Abs(float64(got[k])-want) > 1e-6 {
			t.Errorf("weights %v: class %d, want %v", got, k, want)
		}
	}
}
