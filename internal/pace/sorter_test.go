package pace

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSorter compares the radix sort with the library's.
func TestSorter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var s Sorter
	for _, n := range []int{0, 1, 100, radixLeast - 1, radixLeast, 5000} {
		for _, bits := range []int{1, 8, 20, 32} {
			s.Reset(n)
			for i := range n {
				s.Keys = append(s.Keys, (r.Uint64()>>(64-bits))<<32|uint64(i))
			}
			want := slices.Sorted(slices.Values(s.Keys))
			if err := s.Sort(t.Context()); err != nil || !slices.Equal(s.Keys, want) {
				t.Fatalf("%d keys of %d bits are not sorted", n, bits)
			}
		}
	}
}
