package kernel

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTypeRows holds the rows by type, and their gradient, against the plain ones; and the same
// bits for any number of workers.
func TestTypeRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds, d := rapid.IntRange(1, 300).Draw(t, "types"), rapid.IntRange(1, 9).Draw(t, "d")
		n := rapid.SampledFrom([]int{0, 1, 700, typesPart, 5*typesPart + 3}).Draw(t, "entries")
		mem := newMemory(t)
		defer mem.free()
		types, table, dout := make([]uint32, n), mem.values(kinds*d), mem.values(n*d)
		for e := range types {
			types[e] = uint32(e*e+e/3) % uint32(kinds)
		}
		want, dwant := make([]float32, n*d), make([]float64, kinds*d)
		refTypeRows(want, table, types, d)
		for e, k := range types {
			for c, v := range dout[e*d : e*d+d] {
				dwant[int(k)*d+c] += float64(v)
			}
		}
		var first []float32
		for _, workers := range []int{1, 3} {
			p := NewPool(workers)
			out, dtable := make([]float32, n*d), slices.Repeat([]float32{7}, kinds*d)
			TypeRows(p, out, table, types, d)
			TypeRowsGrad(p, dtable, dout, types, d)
			if !slices.Equal(out, want) {
				t.Fatalf("%d workers: other rows", workers)
			}
			plain := make([]float32, kinds*d)
			refTypeRowsGrad(plain, dout, types, d)
			if n <= typesPart && !slices.Equal(dtable, plain) {
				t.Fatalf("%d workers: another gradient than the plain one's", workers)
			}
			for i, v := range dtable {
				if diff := float64(v) - dwant[i]; !(diff*diff <= 1e-6*(1+dwant[i]*dwant[i])) {
					t.Fatalf("%d workers: gradient %d is %g, want %g", workers, i, v, dwant[i])
				}
			}
			if first == nil {
				first = dtable
			} else if !slices.Equal(first, dtable) {
				t.Fatalf("%d workers give other bits", workers)
			}
		}
	})
}
