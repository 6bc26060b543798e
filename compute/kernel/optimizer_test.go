package kernel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestOptimizers compares a few steps with the textbook, in double precision.
func TestOptimizers(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			mem := newMemory(t)
			defer mem.free()
			n := rapid.OneOf(size(100), rapid.IntRange(0, 2*flatPart+9)).Draw(t, "n")
			w, g, a, b := mem.values(n), mem.values(n), mem.zeros(n), mem.zeros(n)
			decay := rapid.SampledFrom([]float32{0, 0.01}).Draw(t, "decay")
			kind := rapid.SampledFrom([]string{"adam", "adamw", "sgd", "adagrad"}).Draw(t, "kind")
			want := make([]textbook, n)
			for i := range want {
				want[i].w = float64(w[i])
			}
			for step := 1; step <= 3; step++ {
				switch kind {
				case "sgd":
					SGD(p, w, g, 0.1, decay)
				case "adagrad":
					Adagrad(p, w, g, a, AdamStep{Rate: 0.1, Eps: 1e-8, WeightDecay: decay})
				default:
					Adam(p, w, g, a, b, AdamStep{Step: step, Rate: 0.1, Beta1: 0.9, Beta2: 0.999,
						Eps: 1e-8, WeightDecay: decay, Decoupled: kind == "adamw"})
				}
				for i := range want {
					want[i].step(kind, float64(g[i]), float64(decay), step)
				}
			}
			for i, v := range w {
				limit := 2e-5 * max(1, want[i].cancelled) * (1 + math.Abs(want[i].w))
				if math.Abs(float64(v)-want[i].w) > limit {
					t.Fatalf("%s: weight %d is %v, want %v", kind, i, v, want[i].w)
				}
			}
		})
	})
}

// textbook is one weight with its moments. Where a gradient and the decay nearly cancel, what is
// left has the rounding errors of both: cancelled is the largest ratio.
type textbook struct{ w, m, v, cancelled float64 }

func (b *textbook) step(kind string, g, decay float64, step int) {
	if kind == "adamw" {
		b.w *= 1 - 0.1*decay
	} else {
		l2 := decay * b.w
		if l2 != 0 {
			b.cancelled = max(b.cancelled, (math.Abs(g)+math.Abs(l2))/math.Abs(g+l2))
		}
		g += l2
	}
	switch kind {
	case "sgd":
		b.w -= 0.1 * g
	case "adagrad":
		b.v += g * g
		b.w -= 0.1 * g / (math.Sqrt(b.v) + 1e-8)
	default:
		b.m, b.v = 0.9*b.m+0.1*g, 0.999*b.v+0.001*g*g
		first := b.m / (1 - math.Pow(0.9, float64(step)))
		second := b.v / (1 - math.Pow(0.999, float64(step)))
		b.w -= 0.1 * first / (math.Sqrt(second) + 1e-8)
	}
}

// TestClipNorm compares with the norm in double precision, at numbers of workers that divide the
// parts in other ways.
func TestClipNorm(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		pools := []*Pool{nil, NewPool(2), NewPool(3)}
		for _, p := range pools[1:] {
			defer p.Close()
		}
		rapid.Check(t, func(t *rapid.T) {
			mem := newMemory(t)
			defer mem.free()
			n := rapid.OneOf(size(100), rapid.IntRange(0, 4*flatPart+9)).Draw(t, "n")
			g := mem.values(n)
			norm := 0.0
			for _, v := range g {
				norm += float64(v) * float64(v)
			}
			norm = math.Sqrt(norm)
			for _, most := range []float64{0.5, norm * 0.99, norm*1.01 + 1} {
				factor := min(1, most/max(norm, 1e-30))
				first := mem.copyOf(g)
				ClipNorm(pools[0], first, float32(most), 0)
				for i, v := range first {
					if math.Abs(float64(v)-factor*float64(g[i])) > 1e-6*math.Abs(float64(g[i])) {
						t.Fatalf("norm %v to %v: value %d is %v of %v", norm, most, i, v, g[i])
					}
				}
				for _, p := range pools[1:] {
					again := mem.copyOf(g)
					ClipNorm(p, again, float32(most), 0)
					equal(t, "with more workers", again, first)
				}
			}
		})
	})
}
