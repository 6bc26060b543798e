package listfile

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
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

// TestWholeLists: lists that are added whole give the files that their edges one by one do: short
// ones, long ones, dense ones and in clusters, and any that take about a block.
func TestWholeLists(t *testing.T) {
	r, atOnce, cut := rand.New(rand.NewPCG(2, 1)), 0, 0
	for range 40 {
		fs, writers, files := vfs.NewMem(), [2]*Writer{}, [2][]byte{}
		for i := range writers {
			w, err := NewWriter(fs, fmt.Sprint(i), Spec{Nodes: 1 << 26, BlockBytes: BlockMin})
			if err != nil {
				t.Fatal(err)
			}
			writers[i] = w
		}
		most, shift := 1<<(1+r.IntN(13)), 6+r.IntN(20)
		for node := layout.NodeID(0); node < 300; node += 1 + layout.NodeID(r.IntN(3)) {
			l := &Lists{Nbrs: make([]layout.NodeID, 1+r.IntN(most))}
			for i := range l.Nbrs {
				if l.Nbrs[i] = layout.NodeID(r.Uint32() >> shift); r.IntN(3) == 0 {
					l.Nbrs[i] = min(l.Nbrs[max(0, i-1)]+layout.NodeID(r.IntN(9)), 1<<26-1)
				}
			}
			slices.Sort(l.Nbrs)
			if err := writers[0].AddEdges(node, l, 0, uint64(len(l.Nbrs)), true); err != nil {
				t.Fatal(err)
			}
			if len(writers[0].pend.ids) == 0 {
				atOnce++
			} else {
				cut++
			}
			for _, u := range l.Nbrs {
				if err := writers[1].AddEdge(node, Edge{Nbr: u}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, w := range writers {
			if _, err := w.Finish(); err != nil {
				t.Fatal(err)
			}
			f, err := fs.Open(fmt.Sprint(i) + layout.ListsExt(layout.In))
			if err != nil {
				t.Fatal(err)
			}
			if files[i], err = io.ReadAll(f); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(files[0], files[1]) {
			t.Fatalf("lists of up to %d ids of %d bits differ", most, 32-shift)
		}
	}
	if atOnce < 1000 || cut < 500 {
		t.Errorf("%d lists at once, %d not", atOnce, cut)
	}
}
