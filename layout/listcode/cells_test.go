package listcode

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFitCells: the cells that take fewest bits are taken, by trying all numbers of low bits; of
// two that take as many, those with fewer low bits. Files have the same bytes only so.
func TestFitCells(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	ties := 0
	for range 3000 {
		list := make([]uint32, 3+r.IntN(200))
		spread := uint32(1) << (4 + r.IntN(24))
		for i := range list {
			list[i] = 10 + r.Uint32N(spread)
		}
		slices.Sort(list)
		first := list[0]
		list = list[1:]
		bits, want := math.MaxInt, -1
		least := lowBits(len(list), list[len(list)-1]-first)
		for l := least; l <= least+lowTried && l <= lowMost; l++ {
			k, ok := cellsWith(list, first, l)
			cell := int(k.base) + int(k.upper)
			n := cellsHead + (len(list)-1)/int(k.per)*cell + cell + len(list)*l
			if ok && n == bits {
				ties++
			}
			if ok && n < bits {
				bits, want = n, l
			}
		}
		k, size := fitCells(list, first)
		if size != bits || want >= 0 && int(k.low) != want {
			t.Fatalf("%d ids up to %d: %d low bits in %d bits, want %d in %d", len(list),
				list[len(list)-1], k.low, size, want, bits)
		}
	}
	if ties == 0 {
		t.Error("no list has two ways that take as many bits")
	}
}
