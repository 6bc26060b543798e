package loader_test

import (
	"testing"

	"gdb/internal/mem"
	"gdb/layout/layouttest"
	"gdb/layout/topology"
	"gdb/sample/loader"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestUseLists: lists that take turns are opened as planned where there is room for what a pass
// takes beside them, and in blocks where there is not; the plan stays.
func TestUseLists(t *testing.T) {
	s := layouttest.Build(t, vfs.NewMem(), "s", layouttest.Random(3, 3000, 40000))
	budget := mem.NewBudget(64 << 20)
	src := loader.NewSource(s, layouttest.Device(t), budget)
	defer src.Close()
	src.PlanGraph(topology.Options{Resident: true, Budget: budget}, true)
	bytes := src.Forms()[0].Bytes
	for room, want := range map[int64]string{1 << 20: "resident", 64<<20 - bytes: "resident",
		64<<20 - bytes + 1: "paged"} {
		release, err := src.UseLists(t.Context(), room)
		if err != nil {
			t.Fatal(err)
		}
		if got := src.Topology.Stats().Kind; got != want || !src.Graph.Resident {
			t.Errorf("room for %d: lists are %s, want %s; the plan is %+v", room, got, want,
				src.Graph)
		}
		if err := release(); err != nil || src.Topology != nil {
			t.Errorf("lists stay open, %v", err)
		}
	}
}
