package rng

import "testing"

func TestPermutationIsABijection(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 5, 16, 17, 1000, 4096, 70001} {
		p, seen := NewPermutation(n, Key(7, n)), make([]bool, n)
		fixed := 0
		for i := range n {
			v := p.At(i)
			if v >= n || seen[v] {
				t.Fatalf("n=%d: At(%d) = %d is out of range or met before", n, i, v)
			}
			seen[v] = true
			if got := p.Inverse(v); got != i {
				t.Fatalf("n=%d: Inverse(At(%d)) = %d", n, i, got)
			}
			if v == i {
				fixed++
			}
		}
		if n > 100 && fixed > 20 {
			t.Errorf("n=%d: %d fixed points, a random permutation has about 1", n, fixed)
		}
	}
}
