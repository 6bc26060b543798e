package pace_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/internal/pace"

	"pgregory.net/rapid"
)

// TestSort checks that keys come in the same order as by comparisons, whatever they have in common.
func TestSort(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		keys := make([]uint64, rapid.IntRange(0, 3000).Draw(rt, "keys"))
		high := rapid.Uint64().Draw(rt, "bits")
		for i := range keys {
			keys[i] = rnd.Uint64() & high
		}
		want := slices.Clone(keys)
		slices.Sort(want)
		if pace.RadixSort(keys); !slices.Equal(keys, want) {
			rt.Fatalf("%d keys are not in order", len(keys))
		}
	})
}

// BenchmarkSort sorts the keys of a sweep: 4 million rows of 4 million nodes, 150 batches.
func BenchmarkSort(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	keys, from := make([]uint64, 4<<20), make([]uint64, 4<<20)
	for i := range from {
		from[i] = rnd.Uint64N(4<<20)<<32 | uint64(i/28000)
	}
	for b.Loop() {
		copy(keys, from)
		pace.RadixSort(keys)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(keys)), "ns/key")
}
