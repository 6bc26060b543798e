package stream

import "testing"

// TestUneven: columns that models learn from as they are, and those that drown others.
func TestUneven(t *testing.T) {
	for name, c := range map[string]struct {
		rows []float32 // of two columns
		want bool
	}{
		"alike":          {[]float32{0.5, 1, -0.5, 3, 1, -2}, false},
		"words":          {[]float32{0, 1, 1, 0, 0, 0, 1, 1}, false},
		"age and income": {[]float32{30, 40000, 40, 52000, 35, 41000}, true},
		"wide apart":     {[]float32{0.001, 1, 0.002, 3, 0.001, -2}, true},
		"far from zero":  {[]float32{0.5, 80, -0.5, 95, 1, 70}, true},
		"rare words":     {[]float32{0, 0.5, 0, 0, 0.001, 0, 0, 0, 0, 0.2}, false},
		"one varies not": {[]float32{0.5, 8000, -0.5, 8000, 1, 8000}, false},
	} {
		s := NewScaling("zscore", 2)
		s.Observe(c.rows)
		s.Finish()
		if got := s.Uneven(); got != c.want {
			t.Errorf("%s: uneven is %v", name, got)
		}
	}
}
