package exact

import (
	"context"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/sample/loader"
	"gdb/sample/sampletest"
	"gdb/train/model"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestInferenceSets: what the sets of evaluation take is what the plan counts, and none is made of
// the nodes that are wanted, nor of features that are read as they are.
func TestInferenceSets(t *testing.T) {
	for _, c := range []struct {
		dims []int
		sets int
	}{{[]int{6, 5}, 1}, {[]int{6, 9}, 0}, {[]int{6, 9, 5}, 1}, {[]int{12, 5, 7, 3}, 3}} {
		g := sampletest.RMAT(14, 1<<13, 3)
		in := &loader.Source{Meta: &kv.Meta{Nodes: g.Nodes()}, Budget: mem.NewBudget(0),
			Topology: g}
		be, err := backend.OpenCPU(backend.Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.New(be, specOf(t, "sage", c.dims), false, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := &Inference{Source: in, Model: m, lists: newLists(g, in.Budget),
			want: roaring.BitmapOf(3, 9000)}
		if err := f.need(context.Background()); err != nil {
			t.Fatal(err)
		}
		want := SetsBytes(m.Spec(), g.Nodes())
		if got := in.Budget.Used(); got != want || got != int64(c.sets)*4096 {
			t.Errorf("dims %v: sets of %d bytes, %d were planned, want %d sets", c.dims, got, want,
				c.sets)
		}
		f.lists.close()
		if err := be.Close(); err != nil {
			t.Error(err)
		}
		if err := f.freeSets(); err != nil || in.Budget.Used() != 0 {
			t.Errorf("dims %v: %d bytes are left, %v", c.dims, in.Budget.Used(), err)
		}
	}
}
