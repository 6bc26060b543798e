package codec

import (
	"math/rand/v2"
	"testing"
)

// TestMaxOfAnyLength puts the largest value at each place of slices of all lengths.
func TestMaxOfAnyLength(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 3*maxGroup + 5 {
		values := make([]uint32, n+1)[1:] // not aligned
		for i := range values {
			values[i] = rng.Uint32() >> 1
		}
		if got, want := Max(values), maxPlain(values); got != want {
			t.Fatalf("the largest of %d values is %d, want %d", n, got, want)
		}
		for i, v := range values {
			const most = 1<<32 - 1
			values[i] = most
			if got := Max(values); got != most {
				t.Fatalf("the largest of %d values, at place %d, is %d, want %d", n, i, got,
					uint32(most))
			}
			values[i] = v
		}
	}
}

func BenchmarkMax(b *testing.B) {
	values := make([]uint32, 1008) // of a block
	b.SetBytes(int64(4 * len(values)))
	for b.Loop() {
		Max(values)
	}
}
