package sample

import (
	"math"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
)

// wordRows are label rows of 4 bytes: of a node the word that is given for it.
func wordRows(t *testing.T, words ...uint32) *rowfile.Reader {
	return layouttest.WordFile(t, nil, len(words), func(v NodeID) uint32 { return words[v] })
}

// Labels in memory take the bytes that their classes need, and are what was read: the first and
// last classes of each width, and none.
func TestLabelsAreHeldNarrow(t *testing.T) {
	const none = math.MaxUint32
	nodes := []NodeID{0, 1, 2}
	for _, c := range []struct{ classes, width int }{{2, 1}, {255, 1}, {256, 2}, {65535, 2},
		{65536, 4}} {
		last := uint32(c.classes - 1)
		budget := mem.NewBudget(0)
		l, err := NewLabels(t.Context(), &kv.LabelsMeta{Kind: "class",
			Classes: make([]string, c.classes)}, wordRows(t, last, none, 0), 3, budget)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]int32, 3)
		if err := l.Of(t.Context(), nodes, out); err != nil || len(l.all.Bytes()) != 3*c.width ||
			out[0] != int32(last) || out[1] != -1 || out[2] != 0 {
			t.Errorf("%d classes: %v in %d bytes, %v", c.classes, out, len(l.all.Bytes()), err)
		}
		if err := l.Close(); err != nil || budget.Used() != 0 {
			t.Errorf("%d bytes left: %v", budget.Used(), err)
		}
	}
	want := []float32{-2.5, float32(math.NaN()), 1e30}
	var words []uint32
	for _, x := range want {
		words = append(words, math.Float32bits(x))
	}
	l, err := NewLabels(t.Context(), &kv.LabelsMeta{Kind: "target"}, wordRows(t, words...), 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 3)
	if err := l.Values(t.Context(), nodes, got); err != nil || l.all == nil {
		t.Fatal(err)
	}
	for i, x := range want {
		if math.Float32bits(got[i]) != math.Float32bits(x) {
			t.Errorf("number %d is %v, want %v", i, got[i], x)
		}
	}
}
