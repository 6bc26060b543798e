package listfile

import (
	"bytes"
	"slices"
	"testing"

	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func mustShape(t testing.TB, f Fields) Shape {
	t.Helper()
	s, err := f.Shape()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// writeLists writes a topology file of these edges, in order, and returns its bytes.
func writeLists(t testing.TB, spec Spec, nodes []layout.NodeID, edges []Edge) []byte {
	t.Helper()
	fs := vfs.NewMem()
	w, err := NewWriter(fs, "x", spec)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range edges {
		if err := w.AddEdge(nodes[i], e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open("x.csc")
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size())
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzBlock gives any bytes to the decoder of blocks, with any shape: it never panics, and what it
// takes has lists inside the block.
func FuzzBlock(f *testing.F) {
	for _, all := range []bool{false, true} {
		spec := Spec{Nodes: 5000, Types: all, Weights: all, Times: all}
		var nodes []layout.NodeID
		var edges []Edge
		for i := range 1500 {
			nodes = append(nodes, layout.NodeID(min(i/3, 77)))
			edges = append(edges, Edge{Nbr: layout.NodeID(i)})
		}
		b := writeLists(f, spec, nodes, edges)
		for off := 4096; off < len(b); off += 4096 {
			f.Add(b[off:off+4096], all, all, all)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, types, weights, times bool) {
		s := mustShape(t, Fields{BlockBytes: 4096, Nodes: 5000, types: types, weights: weights,
			times: times})
		b = append(make([]byte, 0, 4096), b[:min(len(b), 4096)]...)
		b = b[:cap(b)]
		k, err := ParseBlock(&s, b)
		if err != nil {
			return
		}
		var l Lists
		if err := s.Decode(&k, &l); err != nil {
			return
		}
		if len(l.Off) != int(k.Slots)+1 || len(l.Nbrs) != int(k.Entries) ||
			l.Off[k.Slots] != uint64(k.Entries) || !slices.IsSorted(l.Off) {
			t.Fatalf("%d offsets and %d ids for %d lists and %d entries", len(l.Off), len(l.Nbrs),
				k.Slots, k.Entries)
		}
		for i := range k.Slots {
			p, err := s.Part(&k, i)
			if err != nil || uint64(p.Count) != l.Off[i+1]-l.Off[i] {
				t.Fatalf("list %d has %d entries: %v", i, p.Count, err)
			}
			for j, v := range l.Nbrs[l.Off[i]:l.Off[i+1]] {
				if got, ok := p.At(p.Start + uint32(j)); !ok || got != v {
					t.Fatalf("entry %d of list %d is %d, want %d", j, i, got, v)
				}
			}
		}
	})
}

// FuzzTopologyFields decodes header fields; what it takes encodes to the same bytes.
func FuzzTopologyFields(f *testing.F) {
	f.Add((&Fields{Version: 1, BlockBytes: 4096, Nodes: 7}).encode())
	f.Add((&Fields{Version: 2, BlockBytes: 4096, Nodes: 7}).encode())
	f.Add((&Fields{Version: 3, BlockBytes: 1 << 20, Nodes: 1 << 32, types: true, weights: true,
		times: true}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := DecodeFields(b)
		if err == nil && !bytes.Equal(got.encode(), b) {
			t.Fatalf("%x decodes to %+v, which encodes to %x", b, got, got.encode())
		}
	})
}

// FuzzIndexEnd decodes the last page of an index.
func FuzzIndexEnd(f *testing.F) {
	page := make([]byte, layout.PageBytes)
	copy(page[4:], IndexEnd)
	page[16] = 3
	f.Add(page)
	f.Fuzz(func(t *testing.T, b []byte) {
		edges, blocks, err := DecodeIndexEnd(b)
		if err == nil && (blocks > 1<<32-1 || edges > blocks<<23) {
			t.Fatalf("%d edges in %d blocks", edges, blocks)
		}
	})
}

func TestUpper(t *testing.T) {
	a := []uint64{0, 3, 3, 3, 9, 10, 11, 12, 20, 21, 22, 23, 24, 25, 26}
	for n := range len(a) + 1 {
		for v := uint64(0); v < 30; v++ {
			want := 0
			for _, x := range a[:n] {
				if x <= v {
					want++
				}
			}
			if got := Upper(a[:n], v); got != want {
				t.Fatalf("upper(%v, %d) is %d, want %d", a[:n], v, got, want)
			}
		}
	}
}
