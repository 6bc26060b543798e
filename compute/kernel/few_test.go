package kernel

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestFewColumns compares products with few columns, of one head and of some, with the
// specification: whole vectors and parts of one, more rows than a slab or a part has, and as many
// columns as are few, and more.
func TestFewColumns(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			m := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(2000, 2300)).Draw(t, "m")
			if level().tiles == nil {
				m = min(m, 40)
			}
			k := rapid.OneOf(size(97), rapid.IntRange(fewStepsLeast-1, 400)).Draw(t, "k")
			n := rapid.IntRange(0, fewColumns+1).Draw(t, "columns")
			heads := rapid.IntRange(1, 3).Draw(t, "heads")
			compareHeads(t, p, m, k, n, heads, rapid.Bool().Draw(t, "accumulate"))
			compareHeads(t, p, m, n, k, heads, false) // of GEMMTB
		})
	})
}

// BenchmarkFewColumns measures products with few columns of an A of 2^22 values: a cache of the
// third level holds it. MB/s are of A.
func BenchmarkFewColumns(b *testing.B) {
	p := NewPool(1)
	defer p.Close()
	for _, k := range []int{32, 64, 100, 256} {
		for _, n := range []int{1, 4, 8} {
			m := 1 << 22 / k
			x, w, y := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
			for name, run := range map[string]func(){
				"GEMM":   func() { GEMM(p, y, x, w, Shape{M: m, K: k, N: n}) },
				"GEMMTA": func() { GEMMTA(p, w, x, y, Shape{M: m, K: k, N: n}) },
			} {
				b.Run(fmt.Sprintf("kernel=%s/k=%d/n=%d", name, k, n), func(b *testing.B) {
					b.SetBytes(int64(m*k) * 4)
					for b.Loop() {
						run()
					}
				})
			}
		}
	}
}
