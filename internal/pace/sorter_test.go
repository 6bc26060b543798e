package pace

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSorter compares the radix sort with the library's, in memory of its own and in that given.
func TestSorter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	given := make([]uint64, 2*5000)
	s, in := Sorter{}, SorterIn(given)
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
			in.Reset(n)
			in.Keys = append(in.Keys, want...)
			slices.Reverse(in.Keys)
			slices.SortStableFunc(in.Keys, func(a, b uint64) int { // equal ones ascend
				return cmp.Compare(uint32(a), uint32(b))
			})
			if err := in.Sort(t.Context()); err != nil || !slices.Equal(in.Keys, want) {
				t.Fatalf("%d keys of %d bits are not sorted in given memory", n, bits)
			}
			if in.Bytes() != int64(8*len(given)) {
				t.Fatalf("sorting %d keys in given memory took other memory", n)
			}
		}
	}
}
