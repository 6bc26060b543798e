package exact

import (
	"context"
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/train/model"
	"gdb/train/setting"
)

// TestHeldLists: logits are to the bit the same whether lists are held while a table is gone
// through, all of them or as many as there is room for, or are read again for each window.
func TestHeldLists(t *testing.T) {
	const dim = 24
	in := fakeInputs(t, 9, 6000, dim)
	be, err := backend.OpenCPU(backend.Options{Workers: 2, Budget: mem.NewBudget(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	for _, c := range []struct {
		name string
		o    setting.Options
	}{{"sage", setting.Options{}}, {"sage", setting.Options{Aggregate: "max"}},
		{"gcn", setting.Options{}}, {"gcn", setting.Options{EdgeWeight: true}},
		{"gat", setting.Options{Heads: 2}},
		{"rgcn", setting.Options{Bases: 2, Relations: testTypes}}} {
		spec := specOf(t, c.name, []int{dim, 10, 5})
		spec.Options = c.o
		m, err := model.New(be, spec, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.Params().Init(be, 4)
		var again []float32
		for _, most := range []int{1, 150, 0} {
			var logits []float32
			f := &Inference{Source: in, Backend: be, Model: m, RowsMax: 100, entriesMost: most,
				wrap: func(t table) table { return inWindows{t} }}
			err := f.Run(context.Background(), nil,
				func(_ []sample.NodeID, y []float32) error {
					logits = append(logits, y...)
					return nil
				})
			if err != nil {
				t.Fatal(err)
			}
			if again == nil {
				again = logits
			}
			if !slices.Equal(logits, again) || len(logits) != 5*int(in.Meta.Nodes) {
				t.Errorf("%s %+v, %d entries held: the logits differ", c.name, c.o, most)
			}
		}
	}
}
