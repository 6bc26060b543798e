package listcode

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"
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

// fitCellsPlain specifies fitCells: it tries all low bits, and looks at all cells.
func fitCellsPlain(list []uint32, first uint32) (best cells, size int) {
	n, least := len(list), lowBits(len(list), list[len(list)-1]-first)
	size = math.MaxInt
	for l := least; l <= min(least+lowTried, lowMost); l++ {
		per := max(perLeast, sort.Search(min(n, upperMost)-1, func(i int) bool {
			return cellUpper(list, first, i+2, l) > upperMost
		})+1)
		whole := (n + per - 1) / per
		even := max(perLeast, (n+whole-1)/whole)
		if cellUpper(list, first, even, l) <= upperMost {
			per = even
		}
		upper, last := cellUpper(list, first, per, l), (list[(n-1)/per*per]-first)>>l
		k := cells{uint8(l), uint8(per), uint8(upper), uint8(bits.Len32(last))}
		if all := cellsHead + int(k.size(uint64(n))); upper <= upperMost && last < 1<<31 &&
			all < size {
			best, size = k, all
		}
	}
	return best, size
}

// cellUpper returns how many upper bits the widest cell needs, with per entries in a cell.
func cellUpper(list []uint32, first uint32, per, l int) int {
	return max(per, widestPlain(list, first, per, l, math.MaxInt))
}

// TestFitCellsPlain compares with fitCellsPlain, on lists that are spread, in clusters, and short.
func TestFitCellsPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		list := make([]uint32, 2+r.IntN(1<<r.IntN(11)))
		shift, clusters := 1+r.IntN(31), r.IntN(3) > 0
		for i := range list {
			list[i] = r.Uint32() >> shift
			if clusters && r.IntN(4) > 0 {
				list[i] = list[max(0, i-1)] + r.Uint32N(20)
			}
		}
		slices.Sort(list)
		got, size := fitCells(list[1:], list[0])
		want, least := fitCellsPlain(list[1:], list[0])
		if got != want || size != least {
			t.Fatalf("%d: %+v of %d bits, want %+v of %d", list, got, size, want, least)
		}
	}
}
