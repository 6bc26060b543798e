package task

import (
	"errors"
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
	if got := p.Label(logits); got != "a;d" {
		t.Errorf("labels %q", got)
	}
	got := make([]float32, len(logits))
	p.Probabilities(got, logits)
	for k, want := range []float64{0.562177, 0.437823, 0.5, 0.75, 0.25} {
		if math.Abs(float64(got[k])-want) > 1e-6 {
			t.Errorf("logit %g: probability %g, want %g", logits[k], got[k], want)
		}
	}
}
