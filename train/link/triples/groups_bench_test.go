package triples_test

import (
	"math/rand/v2"
	"testing"

	"gdb/train/link/triples"
)

func BenchmarkGroup(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	list := make([]uint32, 2050)
	var g triples.Groups
	for b.Loop() {
		b.StopTimer()
		for i := range list {
			list[i] = r.Uint32N(14541)
		}
		b.StartTimer()
		g.Group(list)
	}
}
