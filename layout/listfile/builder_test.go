package listfile

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/layout"
)

// TestHasRoom: a list that certainly fits in a block fits by its exact size, and of those that fit
// nearly all certainly do.
func TestHasRoom(t *testing.T) {
	f := Fields{Version: cellLayout, BlockBytes: BlockMin, Nodes: 1 << 32}
	shape, err := f.Shape()
	if err != nil {
		t.Fatal(err)
	}
	r, certain, fit := rand.New(rand.NewPCG(1, 1)), 0, 0
	for range 200 {
		b, node := newBlockBuilder(&shape), layout.NodeID(0)
		longest, gap := 1<<r.IntN(9), 1<<r.IntN(6)
		for {
			node += 1 + layout.NodeID(r.IntN(gap))
			e := entries{ids: make([]uint32, 1+r.IntN(longest))}
			for i := range e.ids {
				e.ids[i] = r.Uint32() >> 1
			}
			slices.Sort(e.ids)
			form := shape.formOf(e.ids)
			fits := b.size(node, e, form.Bits()) <= 8*shape.BlockBytes
			has := b.hasRoom(node, len(e.ids), form.Bits())
			if has && !fits {
				t.Fatalf("list %d of %d ids has room and does not fit", len(b.forms), len(e.ids))
			}
			if !fits {
				break
			}
			if fit++; has {
				certain++
			}
			b.add(node, 0, e, form)
		}
	}
	if certain < fit*2/3 || certain == fit {
		t.Errorf("%d of %d lists that fit certainly do", certain, fit)
	}
}
