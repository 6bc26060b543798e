package probe

import (
	"math"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"
	"gdb/layout/live"
	"gdb/sample"
	"gdb/sample/loader"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestSpread: the nodes whose rows are measured are spread evenly over all that are there.
func TestSpread(t *testing.T) {
	for _, nodes := range []uint64{1, 2, 7, 100, 1000} {
		for _, gone := range [][2]uint64{{0, 0}, {0, 1}, {nodes - 1, nodes}, {nodes / 3, nodes / 2},
			{0, nodes}, {1, nodes}} {
			deleted := roaring.New()
			deleted.AddRange(gone[0], gone[1])
			deleted.Add(uint32(nodes / 5))
			var there []sample.NodeID
			for v := range nodes {
				if !deleted.Contains(uint32(v)) {
					there = append(there, sample.NodeID(v))
				}
			}
			for _, most := range []int{1, 2, 10, 5000} {
				var want []sample.NodeID
				n := min(most, len(there))
				for i := range n {
					want = append(want, there[i*len(there)/n])
				}
				got := spread(nodes, deleted, uint64(most))
				if !slices.Equal(got, want) {
					t.Errorf("%d of %d nodes without %v: %d, want %d", most, nodes, gone, got, want)
				}
			}
		}
	}
}

// TestScaleLeavesOutDeleted: columns are scaled by the rows of nodes that are there.
func TestScaleLeavesOutDeleted(t *testing.T) {
	fs, g := vfs.NewMem(), layouttest.Random(3, 50, 100)
	g.Dim, g.Features = 1, make([]float32, 50)
	for v := range g.Features {
		g.Features[v] = float32(v)
	}
	g.Features[4] = 1e6
	layouttest.Build(t, fs, "s", g)
	f, err := fs.Create("gone", vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write([]byte("4\n"))
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		_, err = live.Delete(t.Context(), fs, "s", live.Deletion{DeleteNodes: "gone",
			Options: ingest.Options{Options: source.Options{Memory: 256 << 20}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	st, err := layout.OpenLive(t.Context(), fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	src := loader.NewSource(st, layouttest.Device(t), mem.NewBudget(256<<20))
	if err := src.OpenRows(t.Context()); err != nil {
		t.Fatal(err)
	}
	scale, err := Scale(t.Context(), src, false)
	if want := float64(49*50/2-4) / 49; err != nil ||
		math.Abs(float64(scale.Mean[0])-want) > 1e-3 {
		t.Errorf("%+v, %v, want a mean of %g", scale, err, want)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
}
