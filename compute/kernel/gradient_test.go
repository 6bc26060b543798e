package kernel

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"
)

// TestGradients compares each gradient kernel with finite differences of its forward kernel. The
// objective is the sum of the outputs times fixed numbers, or the loss itself.
func TestGradients(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for name, g := range gradients() {
			t.Run(name, g.check)
		}
	})
}

// gradient is an objective of x and its gradient.
type gradient struct {
	x         []float32
	objective func(x []float32) float64
	grad      func(x []float32) []float32
}

// check compares a third of the values. A central difference errs by h² times a third derivative,
// and by the rounding of the objective over h: together less than a five hundredth of the largest
// gradient here.
func (g gradient) check(t *testing.T) {
	const h = 1.0 / 64
	got, largest := g.grad(g.x), float32(0)
	for _, v := range got {
		largest = max(largest, v, -v)
	}
	for i := 0; i < len(g.x); i += 3 {
		old := g.x[i]
		g.x[i] = old + h
		up := g.objective(g.x)
		g.x[i] = old - h
		down := g.objective(g.x)
		g.x[i] = old
		want := (up - down) / (2 * h)
		if d := math.Abs(float64(got[i]) - want); !(d <= float64(largest)/500) {
			t.Fatalf("gradient %d is %v, want %v; the largest is %v", i, got[i], want, largest)
		}
	}
}

func gradients() map[string]gradient {
	rng := rand.New(rand.NewPCG(5, 6))
	values := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return x
	}
	dot := func(x, y []float32) (sum float64) {
		for i, v := range x {
			sum += float64(v) * float64(y[i])
		}
		return sum
	}
	const m, k, n = 11, 21, 17
	a, b, r := values(m*k), values(k*n), values(m*n)
	product := func(a, b []float32) float64 {
		c := make([]float32, m*n)
		GEMM(nil, c, a, b, Shape{M: m, K: k, N: n})
		return dot(c, r)
	}
	off, idx := []uint32{0, 3, 3, 4, 9}, []uint32{0, 5, 5, 2, 1, 2, 3, 4, 5}
	weights := values(4 * n)
	labels := []int32{3, -1, 0, 16, 5, 5, -1, 2, 9, 11, 12}
	targets := make([]float32, m*n)
	for i := range targets {
		targets[i] = float32(i % 2)
	}
	all := map[string]gradient{
		"input of GEMM": {values(m * k), func(x []float32) float64 { return product(x, b) },
			func([]float32) []float32 {
				g := make([]float32, m*k)
				GEMMTB(nil, g, r, b, Shape{M: m, N: n, K: k})
				return g
			}},
		"weight of GEMM": {values(k * n), func(x []float32) float64 { return product(a, x) },
			func([]float32) []float32 {
				g := make([]float32, k*n)
				GEMMTA(nil, g, a, r, Shape{M: m, K: k, N: n})
				return g
			}},
		"SegmentMean": {values(6 * n), func(x []float32) float64 {
			out := make([]float32, 4*n)
			SegmentMean(nil, out, x, off, idx, n)
			return dot(out, weights)
		}, func([]float32) []float32 {
			g := make([]float32, 6*n)
			segmentMeanGrad(nil, g, weights, off, idx, n)
			return g
		}},
		"Dropout": {values(m * n), func(x []float32) float64 {
			y := append([]float32(nil), x...)
			Dropout(nil, y, 0, 0.3, 8)
			return dot(y, r)
		}, func([]float32) []float32 {
			g := append([]float32(nil), r...)
			Dropout(nil, g, 0, 0.3, 8)
			return g
		}},
	}
	maps.Copy(all, lossGradients(values, labels, targets, m, n))
	maps.Copy(all, normGradients(values))
	maps.Copy(all, edgeGradients(values, off, idx))
	return all
}

func lossGradients(values func(n int) []float32, labels []int32, targets []float32,
	m, n int) map[string]gradient {
	softmax := func(x []float32) (float64, []float32) {
		g := make([]float32, m*n)
		loss, _, _ := SoftmaxCrossEntropy(nil, g, x, labels, m, n)
		return loss, g
	}
	sigmoid := func(x []float32) (float64, []float32) {
		g := make([]float32, m*n)
		return SigmoidBCE(nil, g, x, targets, m, n), g
	}
	bias := values(n)
	active := func(x []float32) []float32 {
		y := append([]float32(nil), x...)
		BiasReLU(nil, y, bias, m, n)
		return y
	}
	away := values(m * n) // from the corner, where there is no gradient
	for i, v := range away {
		if s := v + bias[i%n]; s > -0.1 && s < 0.1 {
			away[i] += 0.5
		}
	}
	return map[string]gradient{
		"SoftmaxCrossEntropy": {values(m * n),
			func(x []float32) float64 { l, _ := softmax(x); return l },
			func(x []float32) []float32 { _, g := softmax(x); return g }},
		"SigmoidBCE": {values(m * n),
			func(x []float32) float64 { l, _ := sigmoid(x); return l },
			func(x []float32) []float32 { _, g := sigmoid(x); return g }},
		"BiasReLU": {away, func(x []float32) (sum float64) {
			for _, v := range active(x) {
				sum += float64(v)
			}
			return sum
		}, func(x []float32) []float32 {
			g := make([]float32, m*n)
			for i := range g {
				g[i] = 1
			}
			DropoutReLUGrad(nil, g, active(x), 0)
			return g
		}},
	}
}
