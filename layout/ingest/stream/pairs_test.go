package stream

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPairWatch: in small graphs the counts are exact, in large ones the shares are close.
func TestPairWatch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, edges := range []int{100, 1_000_000} {
		w, both := NewPairWatch(), 0
		seen := map[[2]uint64]bool{}
		for range edges {
			a, b := rnd.Uint64N(1<<40), rnd.Uint64N(1<<40)|1<<40
			w.Observe([]uint64{a, a}, []uint64{b, b})
			seen[[2]uint64{a, b}] = true
			if rnd.IntN(4) == 0 {
				w.Observe([]uint64{b}, []uint64{a})
				both++
			}
		}
		w.Observe([]uint64{7}, []uint64{7})
		c := w.Counts()
		want := float64(both) / float64(len(seen))
		got := float64(c.Both) / float64(c.Pairs)
		exact := edges <= pairsMost
		if exact && (c.Pairs != uint64(len(seen)) || c.Both != uint64(both)) ||
			math.Abs(got-want) > 0.02 {
			t.Errorf("%d edges: %d of %d pairs, want %d of %d", edges, c.Both, c.Pairs, both,
				len(seen))
		}
		if share := float64(c.Shared) / float64(c.Ends); math.Abs(share-want) > 0.02 {
			t.Errorf("%d edges: %.3f of the nodes are sources and destinations, want %.3f", edges,
				share, want)
		}
		if c.Pairs > pairsMost || c.Ends > endsMost {
			t.Errorf("samples of %d and %d", c.Pairs, c.Ends)
		}
	}
}

// TestPairWatchLists: lists give the counts that their edges do one by one, loops included.
func TestPairWatchLists(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	lists, edges := NewPairWatch(), NewPairWatch()
	const nodes = 40000
	for dst := range uint64(nodes) {
		src := make([]uint32, 0, 12)
		if dst%3 == 0 {
			src = append(src, uint32(dst)) // some nodes have nothing but a loop
		}
		for range rnd.IntN(10) / 2 * 2 {
			src = append(src, rnd.Uint32N(nodes))
		}
		if dst%2 == 1 { // the reverse of the edge that every other node has to the next
			src = append(src, uint32(dst-1))
		} else {
			src = append(src, uint32(dst+1))
		}
		slices.Sort(src)
		loops := uint64(0)
		for _, a := range src {
			if uint64(a) == dst {
				loops++
			}
		}
		if got := lists.ObserveList(dst, src); got != loops {
			t.Fatalf("node %d: %d loops, want %d", dst, got, loops)
		}
		for _, a := range src {
			edges.Observe([]uint64{uint64(a)}, []uint64{dst})
		}
	}
	got, want := lists.Counts(), edges.Counts()
	if got != want || got.Both == 0 || got.Shared == 0 || got.Pairs < 1000 {
		t.Errorf("lists: %+v, their edges: %+v", got, want)
	}
}

// TestMarks: the kernel marks what the plain loop does, of lists of any length and samples of any
// share.
func TestMarks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 2, 15, 16, 17, 31, 32, 33, 1000, marksMost} {
		src := make([]uint32, n)
		for i := range src {
			src[i] = rnd.Uint32()
		}
		for zeros := range uint(33) {
			f := newFilter(uint64(src[n/2]), math.MaxUint32>>zeros, math.MaxUint32>>(zeros/2))
			var got, want [marksMost / marksWord]uint16
			f.mark(src, &got)
			f.markPlain(src, &want)
			if got != want {
				t.Fatalf("%d sources, %d zeros: %x, want %x", n, zeros, got, want)
			}
			if want[n/2/marksWord]>>(n/2%marksWord)&1 == 0 {
				t.Fatalf("%d sources: the loop has no mark", n)
			}
		}
	}
}
