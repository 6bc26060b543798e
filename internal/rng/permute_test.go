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

func TestFiller(t *testing.T) {
	for _, n := range []uint64{1, 2, 17, 256, 257, 70001, 272115, 1 << 24, 1<<24 + 1, 1<<32 - 1} {
		p, dst := NewPermutation(n, Key(7, n)), make([]uint32, min(n, 1000))
		f := NewFiller(p)
		for _, from := range []uint64{0, (n - uint64(len(dst))) / 2, n - uint64(len(dst))} {
			f.Fill(dst, from)
			for i, v := range dst {
				if want := p.At(from + uint64(i)); uint64(v) != want {
					t.Fatalf("n=%d: value %d from %d is %d, want %d", n, i, from, v, want)
				}
			}
		}
		f.Fill(nil, n)
	}
}

func BenchmarkPermutation(b *testing.B) {
	p, dst := NewPermutation(272115, 1), make([]uint32, 1024)
	f := NewFiller(p)
	b.Run("by=At", func(b *testing.B) {
		for b.Loop() {
			for i := range dst {
				dst[i] = uint32(p.At(uint64(i)))
			}
		}
	})
	b.Run("by=Fill", func(b *testing.B) {
		for b.Loop() {
			f.Fill(dst, 0)
		}
	})
}
