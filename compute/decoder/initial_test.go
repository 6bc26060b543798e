package decoder

import (
	"math"
	"slices"
	"testing"
)

// TestDraws: values have the mean and the deviation that they should, differ by entity and seed,
// and are the same for the same ones.
func TestDraws(t *testing.T) {
	const n = 20001
	normal, again, uniform := make([]float32, n), make([]float32, n), make([]float32, n)
	InitialEntity(normal, 1, 7, 0.5)
	InitialEntity(again, 1, 7, 0.5)
	InitialUniform(uniform, 3, 2)
	if !slices.Equal(normal, again) {
		t.Error("the same entity has other values")
	}
	for _, other := range [][2]uint64{{1, 8}, {2, 7}} {
		if InitialEntity(again, other[0], other[1], 0.5); slices.Equal(normal[:9], again[:9]) {
			t.Errorf("seed and entity %v have the same values", other)
		}
	}
	for what, c := range map[string]struct {
		values    []float32
		deviation float64
	}{"normal": {normal, 0.5}, "uniform": {uniform, 2 / math.Sqrt(3)}} {
		sum, squares := 0.0, 0.0
		for _, v := range c.values {
			sum, squares = sum+float64(v), squares+float64(v)*float64(v)
		}
		if mean := sum / n; math.Abs(mean) > 0.02*c.deviation*3 {
			t.Errorf("%s: mean %.4f", what, mean)
		}
		if d := math.Sqrt(squares / n); math.Abs(d-c.deviation) > 0.03*c.deviation {
			t.Errorf("%s: deviation %.4f, want %.4f", what, d, c.deviation)
		}
	}
}
