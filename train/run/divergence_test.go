package run

import "testing"

func TestDivergence(t *testing.T) {
	for _, c := range []struct {
		name   string
		losses []float64
		ends   int // after this number of losses; 0: never
	}{
		{"grows", []float64{2, 1, 50, 400, 5000, 1e6}, 5},
		{"grows from the start", []float64{1, 200, 300, 400, 500}, 4},
		{"falls from far up", []float64{1e9, 1e6, 3e6, 1e5, 10}, 0},
		{"jumps", []float64{1, 300, 200, 400, 300, 500, 1}, 0},
		{"small", []float64{1e-6, 1e-4, 1e-2, 0.1, 1, 2, 3}, 0},
	} {
		var d Divergence
		ended := 0
		for i, loss := range c.losses {
			if d.Add(loss) != nil && ended == 0 {
				ended = i + 1
			}
		}
		if ended != c.ends {
			t.Errorf("%s: ended after %d, want %d", c.name, ended, c.ends)
		}
	}
}
