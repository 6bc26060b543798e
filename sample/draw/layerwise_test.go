package draw

import (
	"math"
	"testing"

	"gdb/internal/rng"
)

// TestRate: probabilities add up to the size, however uneven the masses are, and all are certain
// where there are no more than that.
func TestRate(t *testing.T) {
	uneven := make([]float64, 1000)
	for i := range uneven {
		uneven[i] = math.Exp2(float64(rng.Key(uint64(i)) % 60))
	}
	for name, c := range map[string]struct {
		mass []float64
		size int
		want float64 // that they add up to
	}{
		"none":            {nil, 3, 0},
		"fewer":           {[]float64{1, 2}, 3, 2},
		"as many":         {[]float64{1, 0, 2, 0.5}, 3, 3},
		"only zeros":      {[]float64{0, 0}, 1, 0},
		"even":            {[]float64{2, 2, 2, 2, 2}, 3, 3},
		"one is certain":  {[]float64{100, 1, 1, 1}, 2, 2},
		"one after other": {[]float64{1e9, 1e6, 1e3, 1, 1, 1}, 4, 4},
		"tiny beside":     {[]float64{1, 1e-300, 1e-300}, 1, 1},
		"uneven":          {uneven, 50, 50},
		"all but one":     {uneven, 999, 999},
	} {
		rate, err := rate(t.Context(), c.mass, c.size)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, m := range c.mass {
			if m > 0 {
				sum += min(1, rate*m)
			}
		}
		if math.Abs(sum-c.want) > 1e-9 {
			t.Errorf("%s: probabilities add up to %v, want %v", name, sum, c.want)
		}
	}
}
