package listfile

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// spot is where a list begins, as the test knows it; unit -1: it is empty.
type spot struct{ block, unit int }

// randomSpots returns the spots of some nodes, with lists of many blocks and empty lists among
// them.
func randomSpots(r *rand.Rand, nodes, unitBits int) []spot {
	all, block, unit := make([]spot, nodes), r.IntN(1<<20), 0
	for v := range all {
		if r.IntN(3) == 0 {
			all[v] = spot{unit: -1}
			continue
		}
		// The last unit of a block begins no list, because a list takes more bits than a unit has.
		if unit += 1 + r.IntN(1<<unitBits/8); unit >= 1<<unitBits-1 {
			unit = r.IntN(1<<unitBits - 1)
			block += 1 + r.IntN([]int{1, 1, 2, 3, 500}[r.IntN(5)])
		}
		all[v] = spot{block, unit}
	}
	return all
}

// TestDirectory: a directory has the places of all lists, or says that a block is one further on,
// in both ways to look, at any number of nodes and for any size of a block.
func TestDirectory(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for unitBits := 13; unitBits <= 21; unitBits++ {
		for _, nodes := range []int{1, 31, 32, 33, 64, 1000} {
			all := randomSpots(r, nodes, unitBits)
			d := newDirectory(unitBits, make([]byte, directoryBytes(unitBits, uint64(nodes))))
			for v, s := range all {
				if s.unit >= 0 {
					d.Add(uint64(v), s.block, uint64(s.unit))
				}
			}
			d.Finish(uint64(nodes))
			checkSpots(t, r, &d, all)
		}
	}
}

func checkSpots(t *testing.T, r *rand.Rand, d *directory, all []spot) {
	t.Helper()
	l := locator{directory: d, Blocks: make([]byte, 1), Index: make([]byte, 1),
		BlockShift: d.unitBits + 2}
	nodes := make([]uint32, 1+r.IntN(200))
	for i := range nodes {
		nodes[i] = r.Uint32N(uint32(len(all)))
	}
	from := r.IntN(len(nodes))
	n := 1 + r.IntN(len(nodes)-from)
	at, blocks, seek := make([]uint64, n), make([]uint32, n), make([]uint32, n)
	seek = seek[:l.Locate(nodes, from, at, blocks, seek)]
	for i, v := range nodes[from : from+n] {
		s := all[v]
		far := slices.Contains(seek, uint32(i))
		switch {
		case s.unit < 0:
			if at[i] != nowhere || blocks[i] != 0 || far {
				t.Fatalf("node %d is at %d of block %d, want nowhere", v, at[i], blocks[i])
			}
			continue
		case far && int(blocks[i]) > s.block || !far && int(blocks[i]) != s.block:
			t.Fatalf("node %d is in block %d, want %d", v, blocks[i], s.block)
		}
		if want := uint64(blocks[i])<<l.BlockShift + unitBits*uint64(s.unit); at[i] != want {
			t.Fatalf("node %d is at %d, want %d", v, at[i], want)
		}
	}
	at2, blocks2, seek2 := slices.Clone(at), slices.Clone(blocks), make([]uint32, n)
	clear(at2)
	seek2 = seek2[:l.locatePlain(nodes[from:], at2, blocks2, seek2)]
	if !slices.Equal(at, at2) || !slices.Equal(blocks, blocks2) || !slices.Equal(seek, seek2) {
		t.Fatal("both ways to look differ")
	}
}
