package exact

import (
	"context"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/sample"
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
		want := SetsBytes(m.Spec(), g.Nodes(), 1<<40)
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

// TestColumnsWithoutRoom: where what weights need of all rows of a table has no room, the table is
// read in windows and the plan does not count it, and the results are the same.
func TestColumnsWithoutRoom(t *testing.T) {
	in := fakeInputs(t, 12, 1<<15, 6)
	be, err := backend.OpenCPU(backend.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	m, err := model.New(be, specOf(t, "gat", []int{6, 4, 3}), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Params().Init(be, 4)
	columns := 4 * int64(m.ExactLayer(0).ColumnFloats()) * int64(in.Meta.Nodes)
	counted := SetsBytes(m.Spec(), in.Meta.Nodes, 8*columns) -
		SetsBytes(m.Spec(), in.Meta.Nodes, 8*columns-1)
	if counted != columns || columns == 0 {
		t.Errorf("%d bytes of columns are counted, of %d", counted, columns)
	}
	var results [2][]float32
	for i, room := range []int64{columns, columns - 1} {
		in.Budget = mem.NewBudget(Bytes + room)
		l := &layerPass{Inference: &Inference{Source: in, Model: m}, layer: m.ExactLayer(0),
			from: (&Inference{Source: in}).inputTable()}
		if l.useWindows(); (l.from.whole() == nil) != (i > 0) {
			t.Errorf("with room for %d of %d bytes: in windows: %v", room, columns,
				l.from.whole() == nil)
		}
		in.Budget = mem.NewBudget(Bytes + 64<<20 - 63<<20*int64(i))
		f := &Inference{Source: in, Backend: be, Model: m}
		err := f.Run(context.Background(), nil, func(_ []sample.NodeID, y []float32) error {
			results[i] = append(results[i], y...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !near(results[0], results[1], 1) {
		t.Error("results in windows differ")
	}
}
