package extsort

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMergeTwo: two slices are merged as sorting does it, whatever their lengths, and where all
// words of one come first or many are equal.
func TestMergeTwo(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	sorted := func() []uint64 {
		words := make([]uint64, r.IntN(1<<r.IntN(14)))
		first, most := r.Uint64N(1<<r.IntN(14)), uint64(1)<<(1+r.IntN(20))
		for i := range words {
			words[i] = first + r.Uint64N(most)
		}
		slices.Sort(words)
		return words
	}
	for range 2000 {
		x, y := sorted(), sorted()
		want := slices.Concat(x, y)
		slices.Sort(want)
		for name, merge := range merges {
			got := make([]uint64, len(want))
			if merge(got, x, y); !slices.Equal(got, want) {
				t.Fatalf("%s: %d and %d words: %d, want %d", name, len(x), len(y), got, want)
			}
		}
	}
}

var merges = map[string]func(out, x, y []uint64){"plain": mergeTwoPlain, "halves": MergeTwo}

func BenchmarkMergeTwo(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	x, y := make([]uint64, 1<<13), make([]uint64, 1<<13)
	for i := range x {
		x[i], y[i] = r.Uint64(), r.Uint64()
	}
	slices.Sort(x)
	slices.Sort(y)
	out := make([]uint64, len(x)+len(y))
	for name, merge := range merges {
		b.Run("merge="+name, func(b *testing.B) {
			for b.Loop() {
				merge(out, x, y)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(out)),
				"ns/word")
		})
	}
}
