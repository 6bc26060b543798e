package serve

import (
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"
	"gdb/layout/live"
	"gdb/sample"
	"gdb/serve/protocol"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// deletedStore has 300 nodes, of which 2, 3 and 299 are deleted.
func deletedStore(t *testing.T) *layout.Store {
	t.Helper()
	fs := vfs.NewMem()
	layouttest.Build(t, fs, "s", layouttest.Random(3, 300, 2500))
	f, err := fs.Create("gone", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("299\n3\n2\n")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := live.Delete(t.Context(), fs, "s", live.Deletion{DeleteNodes: "gone",
		Options: ingest.Options{Options: source.Options{Memory: testMemory}}}); err != nil {
		t.Fatal(err)
	}
	st, err := layout.OpenLive(t.Context(), fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// TestDeletedNodes: clients hear how many nodes are deleted, and are told which; none of them is a
// seed, of a loader, an epoch or a batch.
func TestDeletedNodes(t *testing.T) {
	r := start(t, deletedStore(t), Options{})
	k := r.connect(t)
	ask := func(first, count uint64) ([]int64, error) {
		f, _, err := k.ask(protocol.KindDeleted, protocol.Deleted{First: first, Count: count}, nil)
		if err != nil {
			return nil, err
		}
		return slices.Clone(mem.View[int64](f.Data)), nil
	}
	if s := r.welcome().Store; s.Deleted != 3 || s.Nodes != 300 {
		t.Errorf("%+v, want 3 of 300 nodes deleted", s)
	}
	all := []int64{2, 3, 299}
	for first := range uint64(4) {
		for end := first; end <= 3; end++ {
			got, err := ask(first, end-first)
			if err != nil || !slices.Equal(got, all[first:end]) {
				t.Errorf("deleted nodes %d to %d: %v, %v", first, end, got, err)
			}
		}
	}
	for _, c := range [][2]uint64{{0, 4}, {4, 0}, {3, 1}, {2, 1<<64 - 1}} {
		if got, err := ask(c[0], c[1]); err == nil ||
			!strings.Contains(err.Error(), "there are 3") {
			t.Errorf("%d deleted nodes from %d on: %v, %v", c[1], c[0], got, err)
		}
	}
	gone, there := mem.BytesOf([]uint32{4, 3}), mem.BytesOf([]uint32{4, 5})
	refused := func(kind protocol.Kind, body any) {
		t.Helper()
		if _, _, err := k.ask(kind, body, gone); err == nil ||
			!strings.Contains(err.Error(), "node 3 was deleted") {
			t.Errorf("request %d around a deleted node: %v", kind, err)
		}
	}
	refused(protocol.KindOpen, protocol.Open{Fanout: []int{3}, Batch: 2, World: 1})
	k.open(protocol.Open{Fanout: []int{3}, Batch: 2}, 4, 5)
	refused(protocol.KindStart, protocol.Start{})
	refused(protocol.KindSample, protocol.Sample{})
	b, err := k.batch(k.ask(protocol.KindSample, protocol.Sample{}, there))
	if err != nil || b.Seeds != 2 {
		t.Errorf("a batch around nodes that are there: %+v, %v", b, err)
	}
	k.must(protocol.KindNeighbors, protocol.Neighbors{Fanout: sample.All}, gone,
		protocol.KindArrays)
}

// TestNoDeletedNodes: a store of which none was deleted says so.
func TestNoDeletedNodes(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	f := r.connect(t).must(protocol.KindDeleted, protocol.Deleted{}, nil, protocol.KindArrays)
	if s := r.welcome().Store; s.Deleted != 0 || len(f.Data) != 0 {
		t.Errorf("%d deleted nodes, and %v", s.Deleted, f.Data)
	}
}
