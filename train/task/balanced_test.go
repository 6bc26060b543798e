package task

import (
	"context"
	"math"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/sample"
)

// sixThreeOne are the classes 0 six times, 1 three times and 2 once; node 10 has none.
type sixThreeOne struct{}

func (sixThreeOne) Meta() kv.RowsMeta { return kv.RowsMeta{DType: "i32", Dim: 1, RowBytes: 4} }

func (sixThreeOne) GatherRaw(_ context.Context, nodes []sample.NodeID, _ []uint32,
	out []byte) error {
	for i, v := range nodes {
		mem.View[int32](out)[i] = []int32{0, 0, 0, 0, 0, 0, 1, 1, 1, 2, -1}[v]
	}
	return nil
}

func (r sixThreeOne) ScanRaw(ctx context.Context, first sample.NodeID, n int, out []byte) error {
	nodes := make([]sample.NodeID, n)
	for i := range nodes {
		nodes[i] = first + sample.NodeID(i)
	}
	return r.GatherRaw(ctx, nodes, nil, out)
}

// TestBalanced has the weights that scikit-learn's "balanced" gives: 10/(3·6), 10/(3·3), 10/(3·1).
func TestBalanced(t *testing.T) {
	meta := &kv.LabelsMeta{Kind: KindClass, Classes: []string{"a", "b", "c", "not there"}}
	l, err := sample.NewLabels(t.Context(), meta, sixThreeOne{}, 11, nil)
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
