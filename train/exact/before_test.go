package exact

import (
	"context"
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/sampletest"
	"gdb/train/model"
	"gdb/train/setting"
)

// withoutLater is g without the entries whose time is not below limit.
func withoutLater(g *sampletest.Graph, limit int64) *sampletest.Graph {
	left := &sampletest.Graph{Off: []uint64{0}}
	for v := range g.Nodes() {
		for e := g.Off[v]; e < g.Off[v+1]; e++ {
			if g.Times[e] >= limit {
				continue
			}
			left.Nbrs = append(left.Nbrs, g.Nbrs[e])
			left.Weights = append(left.Weights, g.Weights[e])
			left.Types = append(left.Types, g.Types[e])
		}
		left.Off = append(left.Off, uint64(len(left.Nbrs)))
	}
	return left
}

// TestInferenceBefore: over what a graph has before a time, logits are to the bit those over a
// graph that has no later edges, whether lists come whole or in parts of a few entries, a hub's
// too.
func TestInferenceBefore(t *testing.T) {
	const limit, dim = 600, 24
	be, err := backend.OpenCPU(backend.Options{Workers: 2, Budget: mem.NewBudget(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	for _, c := range []struct {
		name string
		o    setting.Options
	}{{"sage", setting.Options{}}, {"gcn", setting.Options{}}, {"gat", setting.Options{Heads: 2}},
		{"sage", setting.Options{Aggregate: "sum"}}, {"sage", setting.Options{Aggregate: "max"}},
		{"gcn", setting.Options{EdgeWeight: true}},
		{"rgcn", setting.Options{Bases: 2, Relations: testTypes}}} {
		spec := specOf(t, c.name, []int{dim, 10, 5})
		spec.Options = c.o
		m, err := model.New(be, spec, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.Params().Init(be, 4)
		full, rest := fakeInputs(t, 9, 6000, dim), fakeInputs(t, 9, 6000, dim)
		g := full.Topology.(*sampletest.Graph)
		for i := range g.Nbrs {
			g.Times = append(g.Times, int64(rng.Key(5, uint64(i))%1000))
		}
		full.Topology = topology.Before(g, limit, full.Budget)
		rest.Topology = withoutLater(g, limit)
		for _, streamed := range []bool{false, true} {
			for _, part := range []uint64{7, listEdges} {
				var logits [2][]float32
				for i, f := range []*Inference{{Source: full}, {Source: rest}} {
					f.Backend, f.Model, f.partEdges = be, m, part
					if streamed {
						f.RowsMax = 100
						f.wrap = func(t table) table { return inWindows{t} }
					}
					err := f.Run(context.Background(), nil,
						func(_ []sample.NodeID, y []float32) error {
							logits[i] = append(logits[i], y...)
							return nil
						})
					if err != nil {
						t.Fatal(err)
					}
				}
				if !slices.Equal(logits[0], logits[1]) || len(logits[0]) == 0 {
					t.Errorf("%s %+v, streamed %v, parts of %d: the logits differ", c.name, c.o,
						streamed, part)
				}
			}
		}
	}
}
