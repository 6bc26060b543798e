package bf16

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gdb/compute/kernel"
)

// benchValues are values of both types.
func benchValues(n int) ([]Number, []float32) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, f := make([]Number, n), make([]float32, n)
	for i := range x {
		x[i] = Of(float32(rng.NormFloat64()))
	}
	Widen(nil, f, x)
	return x, f
}

// BenchmarkProducts measures the three products of a large and a middle layer on one thread at each
// level, beside those of float32.
func BenchmarkProducts(b *testing.B) {
	defer active.Store(active.Load())
	p := kernel.NewPool(1)
	for _, s := range [][3]int{{50000, 128, 256}, {5000, 256, 256}, {960, 256, 256},
		{5000, 256, 8}} {
		m, k, n := s[0], s[1], s[2]
		x, xf := benchValues(m * max(k, n))
		y, yf := benchValues(m * max(k, n))
		w, wf := benchValues(k * n)
		c := make([]float32, m*max(k, n))
		h := make([]Number, len(c))
		measure := func(op, level string, fn func()) {
			name := fmt.Sprintf("m=%d/k=%d/n=%d/op=%s/level=%s", m, k, n, op, level)
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					fn()
				}
				flops := 2e-9 * float64(m) * float64(k) * float64(n) * float64(b.N)
				b.ReportMetric(flops/b.Elapsed().Seconds(), "GFLOP/s")
			})
		}
		measure("AB", "f32", func() { kernel.GEMM(p, c, xf, wf, kernel.Shape{M: m, K: k, N: n}) })
		measure("ATB", "f32", func() {
			kernel.GEMMTA(p, c, xf, yf, kernel.Shape{M: m, K: k,
				N: n})
		})
		measure("ABT", "f32", func() {
			kernel.GEMMTB(p, c, xf, wf, kernel.Shape{M: m, N: n,
				K: k})
		})
		for _, o := range levels()[1:] {
			active.Store(o)
			measure("AB", o.name, func() { GEMM(p, c, x, w, kernel.Shape{M: m, K: k, N: n}) })
			measure("AB16", o.name, func() { GEMM(p, h, x, w, kernel.Shape{M: m, K: k, N: n}) })
			measure("ATB", o.name, func() { GEMMTA(p, c, x, y, kernel.Shape{M: m, K: k, N: n}) })
			measure("ABT", o.name, func() { GEMMTB(p, c, x, w, kernel.Shape{M: m, N: n, K: k}) })
		}
	}
}

// BenchmarkConvert measures conversions of arrays that a cache holds, and larger ones.
func BenchmarkConvert(b *testing.B) {
	defer active.Store(active.Load())
	for _, n := range []int{32 << 10, 16 << 20} {
		x, f := benchValues(n)
		for _, o := range levels() {
			active.Store(o)
			b.Run(fmt.Sprintf("n=%d/op=narrow/level=%s", n, o.name), func(b *testing.B) {
				b.SetBytes(int64(6 * n))
				for b.Loop() {
					Narrow(nil, x, f)
				}
			})
			b.Run(fmt.Sprintf("n=%d/op=widen/level=%s", n, o.name), func(b *testing.B) {
				b.SetBytes(int64(6 * n))
				for b.Loop() {
					Widen(nil, f, x)
				}
			})
		}
	}
}
