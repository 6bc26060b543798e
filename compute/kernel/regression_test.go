package kernel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestRegression compares the losses of numbers and their gradients with their formulas.
func TestRegression(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	losses := map[ErrorLoss]func(e float64) (loss, slope float64){
		SquaredError: func(e float64) (float64, float64) { return e * e, 2 * e },
		AbsoluteError: func(e float64) (float64, float64) {
			return math.Abs(e), math.Copysign(1, e)
		},
		HuberError: func(e float64) (float64, float64) {
			if math.Abs(e) <= 1 {
				return e * e / 2, e
			}
			return math.Abs(e) - 0.5, math.Copysign(1, e)
		},
	}
	rapid.Check(t, func(t *rapid.T) {
		mem := newMemory(t)
		defer mem.free()
		n := rapid.SampledFrom([]int{0, 1, 7, 900, flatPart + 3, 3 * flatPart}).Draw(t, "values")
		y, target := mem.values(n), mem.values(n)
		for i := range target {
			if mem.rng.IntN(4) == 0 {
				target[i] = float32(math.NaN())
			}
		}
		for kind, of := range losses {
			var want Errors
			slopes := make([]float64, n)
			for i := range y {
				e := float64(y[i]) - float64(target[i])
				if e != e {
					continue
				}
				loss, slope := of(e)
				want.Counted++
				want.Loss, slopes[i] = want.Loss+loss, slope
				want.Squared, want.Absolute = want.Squared+e*e, want.Absolute+math.Abs(e)
			}
			grad := mem.copyOf(y)
			got := Regression(p, kind, grad, grad, target)
			for _, c := range [][2]float64{{got.Loss, want.Loss}, {got.Squared, want.Squared},
				{got.Absolute, want.Absolute}} {
				if math.Abs(c[0]-c[1]) > 1e-6*(1+c[1]) || got.Counted != want.Counted {
					t.Fatalf("loss %d: %+v, want %+v", kind, got, want)
				}
			}
			for i, g := range grad {
				w := slopes[i] / float64(max(1, want.Counted))
				if math.Abs(float64(g)-w) > 1e-6*(1+math.Abs(slopes[i]))/float64(want.Counted) {
					t.Fatalf("loss %d: gradient %d is %v, want %v", kind, i, g, w)
				}
			}
		}
	})
}

// TestRegressionHidesNoNaN: an output that is not a number gives a loss that is none.
func TestRegressionHidesNoNaN(t *testing.T) {
	for _, kind := range []ErrorLoss{SquaredError, AbsoluteError, HuberError} {
		y := []float32{1, float32(math.NaN())}
		got := Regression(nil, kind, y, y, []float32{0, 0})
		if !math.IsNaN(got.Loss) || !math.IsNaN(float64(y[1])) {
			t.Errorf("loss %d of a NaN: %+v, gradient %v", kind, got, y)
		}
	}
}
