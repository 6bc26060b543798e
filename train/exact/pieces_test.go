package exact

import (
	"slices"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/model"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestInferenceOfPieces: logits are to the bit the same where batches have pieces of rows, in
// memory or not, as where rows are whole.
func TestInferenceOfPieces(t *testing.T) {
	const nodes, dim = 300, 40
	dims := []int{dim, 3, 0}
	g := layouttest.Graph{Nodes: nodes, Dim: dim, Features: layouttest.Features(nodes, dim)}
	for i, d := range dims {
		g.Types = append(g.Types, layouttest.Type{Name: string(rune('a' + i)), Nodes: nodes / 3,
			Dim: d})
		for v := i * nodes / 3; v < (i+1)*nodes/3; v++ {
			clear(g.Features[v*dim+d : (v+1)*dim])
		}
		for k := range dims {
			g.EdgeTypes = append(g.EdgeTypes, string(rune('a'+i))+string(rune('a'+k)))
			g.Relations = append(g.Relations, kv.RelationMeta{Src: i, Dst: k})
		}
	}
	for v := range nodes {
		for _, u := range []int{v * 7 % nodes, v * 11 % nodes, v * 13 % nodes} {
			g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(u),
				Dst: layout.NodeID(v), Type: uint16(u/100*len(dims) + v/100)})
		}
	}
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	for _, name := range []string{"hsage", "rgcn"} {
		want := logitsOf(t, s, name, dims, "none", false)
		for _, cache := range []string{"none", "all"} {
			if !slices.Equal(logitsOf(t, s, name, dims, cache, true), want) {
				t.Errorf("%s, cache %s: other logits with pieces of rows", name, cache)
			}
		}
	}
}

// logitsOf computes the logits of all nodes with a cache of rows, which are in pieces or whole.
func logitsOf(t *testing.T, s *layout.Store, name string, dims []int, cache string,
	pieces bool) (all []float32) {
	t.Helper()
	in := loader.NewSource(s, devtest.Open(t, blockdev.Options{}), mem.NewBudget(1<<40))
	defer in.Close()
	spec := specOf(t, name, []int{slices.Max(dims), 6, 4})
	spec.Options = setting.Options{Relations: len(dims) * len(dims), NodeTypes: []int{0, 100, 200},
		TypeWidths: dims}
	for i := range spec.Relations {
		spec.RelationSources = append(spec.RelationSources, i/len(dims))
	}
	in.Extras = spec.Extras()
	if err := in.OpenRows(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pieces {
		if in.SplitRows(); in.Split == nil {
			t.Fatal("rows are not split")
		}
	}
	if err := in.OpenGraph(t.Context(), topology.Options{Resident: true}); err != nil {
		t.Fatal(err)
	}
	if err := in.OpenFeatures(t.Context(), loader.Cache{Policy: cache, Threads: 1}); err != nil {
		t.Fatal(err)
	}
	be, err := backend.OpenCPU(backend.Options{Workers: 2, Budget: mem.NewBudget(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	m, err := model.New(be, spec, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Params().Init(be, 4)
	f := &Inference{Source: in, Backend: be, Model: m, Dir: "hidden", RowsMax: 64}
	err = f.Run(t.Context(), nil, func(_ []sample.NodeID, y []float32) error {
		all = append(all, y...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
