package loader

import (
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/sample"
	"gdb/sample/rowcache"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestHotNodesAreKept: the nodes of a static cache are listed once for caches of its size and
// smaller ones; a file that is damaged or has too few nodes is replaced.
func TestHotNodesAreKept(t *testing.T) {
	fs := vfs.NewMem()
	s := layouttest.Build(t, fs, "store", layouttest.Random(3, 3000, 40000))
	listed := 0
	hot := func(limit int) []sample.NodeID {
		t.Helper()
		dev := layouttest.Device(t)
		src := NewSource(s, dev, mem.NewBudget(64<<20))
		got, err := src.keptHotNodes(t.Context(), limit, func(limit int) ([]sample.NodeID, error) {
			listed++
			return rowcache.FindHot(t.Context(), s, dev, limit, src.Budget)
		})
		want, failed := rowcache.FindHot(t.Context(), s, dev, limit, src.Budget)
		if err != nil || failed != nil || !slices.Equal(got, want) {
			t.Fatalf("%d hot nodes: wrong ones, %v, %v", limit, err, failed)
		}
		if err := src.Close(); err != nil {
			t.Fatal(err)
		}
		return got
	}
	for i, limit := range []int{1500, 1500, 7, 0, 1501, 3000, 2999} {
		hot(limit)
		if want := []int{1, 1, 1, 1, 2, 3, 3}[i]; listed != want {
			t.Errorf("call %d: listed %d times, want %d", i, listed, want)
		}
	}
	for _, off := range []int64{3, 4096 + 400} {
		before := listed
		layouttest.Flip(t, fs, s.Path(hotPath), off, 4)
		hot(100)
		hot(100)
		if listed != before+1 {
			t.Errorf("a damaged byte at %d: listed %d times more", off, listed-before)
		}
	}
	if size := hotBytes(3000); size%layout.PageBytes != 0 || size < 12000 {
		t.Errorf("3000 ids take %d bytes", size)
	}
}
