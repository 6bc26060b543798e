package layout_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gdb/layout"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestOutputsOutsideOfStores refuses paths in a store, by whatever name, and no others.
func TestOutputsOutsideOfStores(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "s.gdb")
	layouttest.Build(t, vfs.Default, store, layouttest.Graph{Nodes: 2,
		Edges: []layouttest.Edge{{Src: 0, Dst: 1}}})
	if err := os.Symlink(filepath.Join(store, "topology"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(store, "topology"))
	for path, inside := range map[string]bool{filepath.Join(store, "x.npy"): true,
		filepath.Join(store, "catalog", "x.npy"): true,
		filepath.Join(store, "runs", "new", "x"): true,
		filepath.Join(dir, "link", "x.npy"):      true, "x.csv": true, "../x.csv": true,
		"../../x.csv": false, filepath.Join(dir, "x.npy"): false, store: false,
		filepath.Join(store, "..", "s.gdb.csv"): false} {
		err := layout.CheckOutside(vfs.Default, path)
		if errors.Is(err, layout.ErrInside) != inside {
			t.Errorf("%s: %v", path, err)
		}
	}
	mem := vfs.NewMem()
	layouttest.Build(t, mem, "s", layouttest.Graph{Nodes: 1})
	if layout.CheckOutside(mem, "s/x.csv") == nil || layout.CheckOutside(mem, "x.csv") != nil {
		t.Error("a store in memory")
	}
}

// TestParts reads the bounds of partitions of stores that have some.
func TestParts(t *testing.T) {
	mem := vfs.NewMem()
	for name, parts := range map[string]int{"one": 1, "three": 3} {
		layouttest.Build(t, mem, name, layouttest.Graph{Nodes: 7, Partitions: parts})
		s, err := layout.Open(t.Context(), mem, name)
		if err != nil {
			t.Fatal(err)
		}
		want := map[int][]uint64{3: {0, 2, 4, 7}}[parts]
		if got := s.Parts(); !slices.Equal(got, want) {
			t.Errorf("%d partitions: %v, want %v", parts, got, want)
		}
	}
}
