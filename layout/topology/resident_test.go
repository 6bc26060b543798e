package topology

import (
	"context"
	"slices"
	"testing"

	"gdb/blockdev"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestWideOffsets loads with the offsets of graphs of 2^32 edges and more.
func TestWideOffsets(t *testing.T) {
	fs, ctx := vfs.NewMem(), context.Background()
	if err := fs.MkdirAll("topology", 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := listfile.NewWriter(fs, "topology/in", listfile.Spec{Nodes: 3000})
	if err != nil {
		t.Fatal(err)
	}
	for v := range 5000 {
		if err := w.AddEdge(layout.NodeID(v/2),
			listfile.Edge{Nbr: layout.NodeID(v / 2)}); err != nil {
			t.Fatal(err)
		}
	}
	files, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	dev, err := blockdev.Open(blockdev.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := layout.NewStore(fs, "", &kv.Meta{Nodes: 3000, Edges: 5000, BlockBytes: 4096, Files: files,
		Directions: []string{"in"}})
	wide, err := loadResident[uint64](ctx, s, dev, layout.In, Options{}, s.Meta())
	if err != nil {
		t.Fatal(err)
	}
	narrow, err := Open(ctx, s, dev, layout.In, Options{Resident: true})
	if err != nil {
		t.Fatal(err)
	}
	a, isNarrow := narrow.(*resident[uint32])
	b, isWide := wide.(*resident[uint64])
	if !isNarrow || !isWide {
		t.Fatalf("%T and %T", narrow, wide)
	}
	off32, off64 := a.ptr, b.ptr
	if !slices.Equal(a.nbrs, b.nbrs) || len(off32) != 3001 || len(off64) != 3001 {
		t.Fatalf("%d and %d offsets, %d and %d neighbors", len(off32), len(off64), len(a.nbrs),
			len(b.nbrs))
	}
	for i := range off32 {
		if uint64(off32[i]) != off64[i] {
			t.Fatalf("offset %d is %d and %d", i, off32[i], off64[i])
		}
	}
	for _, close := range []func() error{wide.Close, narrow.Close, dev.Close} {
		if err := close(); err != nil {
			t.Error(err)
		}
	}
}
