package task

import (
	"errors"
	"gdb/internal/tables"
	"math"
	"slices"
	"testing"
)

func TestMetrics(t *testing.T) {
	c := newCounts(4)
	for _, p := range [][2]int32{{0, 0}, {0, 0}, {1, 0}, {1, 1}, {2, 1}, {3, -1}} {
		c.class(p[0], p[1])
	}
	// Class 0: 2 hit, 0 wrong, 1 missed: F1 4/5. Class 1: 1, 1, 1: 1/2. Class 2: 0, 1, 0: 0.
	for name, want := range map[string]float64{Accuracy: 3.0 / 5, MicroF1: 3.0 / 5,
		MacroF1: (4.0/5 + 1.0/2 + 0) / 3} {
		if got, err := c.Metric(name); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("%s = %g, want %g, %v", name, got, want, err)
		}
	}
	m := newCounts(3)
	m.multi([]float32{1, -1, 2}, []float32{1, 0, 0}, nil)
	m.multi([]float32{-1, -1, 3}, []float32{0, 0, 1}, nil)
	for name, want := range map[string]float64{Accuracy: 0.5, MicroF1: 4.0 / 5,
		MacroF1: (1 + 2.0/3) / 2} {
		if got, err := m.Metric(name); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("multi %s = %g, want %g, %v", name, got, want, err)
		}
	}
	if _, err := newCounts(2).Metric(Accuracy); !errors.Is(err, ErrNothing) {
		t.Errorf("a metric over nothing: %v", err)
	}
}

// TestMultiLabelsAreAboveOneHalf: a class is predicted if its logit is positive, which is where
// its probability is over one half, in what is counted and in what is written.
func TestMultiLabelsAreAboveOneHalf(t *testing.T) {
	logits := []float32{0.25, -0.25, 0, float32(math.Log(3)), float32(-math.Log(3))}
	c := newCounts(len(logits))
	c.multi(logits, []float32{1, 1, 1, 1, 1}, nil)
	if !slices.Equal(c.hit, []uint64{1, 0, 0, 1, 0}) ||
		!slices.Equal(c.missed, []uint64{0, 1, 1, 0, 1}) {
		t.Errorf("hit %d, missed %d", c.hit, c.missed)
	}
	p := Classes{Names: []string{"a", "b", "c", "d", "e"}, Multi: true}
	if got := p.label(logits); got != "a;d" {
		t.Errorf("labels %q", got)
	}
	got := make([]float32, len(logits))
	p.probabilities(got, logits)
	for k, want := range []float64{0.562177, 0.437823, 0.5, 0.75, 0.25} {
		if math.Abs(float64(got[k])-want) > 1e-6 {
			t.Errorf("logit %g: probability %g, want %g", logits[k], got[k], want)
		}
	}
}

// TestPredictions holds the columns that classes are written as: integers only where they are asked
// for and every name is one, and several labels joined.
func TestPredictions(t *testing.T) {
	for _, c := range []struct {
		names    []string
		multi    bool
		integers bool
		kind     tables.Kind
		width    int
	}{
		{[]string{"0", "17"}, false, true, tables.Int64, 2},
		{[]string{"0", "17"}, false, false, tables.String, 2},
		{[]string{"0", "017"}, false, true, tables.String, 3},
		{[]string{"it's", "ü"}, false, true, tables.String, 4},
		{[]string{"1", "2"}, true, true, tables.String, 4},
	} {
		p, err := (&Classes{Names: c.names, Multi: c.multi}).Predictions(true, c.integers)
		if err != nil {
			t.Fatal(err)
		}
		all := p.Columns()
		if all[0].Kind != c.kind || all[0].Width != c.width || len(all) != 3 ||
			all[2].Name != "p:"+c.names[1] {
			t.Errorf("%v: columns %+v", c, all)
		}
	}
}
