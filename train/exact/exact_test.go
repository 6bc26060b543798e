package exact

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/openfiles"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/rowcache"
	"gdb/sample/sampletest"
	"gdb/train/model"
	"gdb/train/setting"

	"github.com/RoaringBitmap/roaring/v2"
)

// testTypes is the number of types of edges of the inputs.
const testTypes = 5

// fakeInputs are inputs without a store: an R-MAT graph with a hub that is longer than a part.
func fakeInputs(t testing.TB, scale int, edges uint64, dim int) *loader.Source {
	t.Helper()
	g := sampletest.RMAT(scale, edges, 3)
	g.Weigh(8)
	g.Classify(testTypes, 8)
	rows := &sampletest.Rows{Count: g.Nodes(), Dim: dim}
	in := &loader.Source{Meta: &kv.Meta{Nodes: g.Nodes()},
		Budget: mem.NewBudget(1 << 40), Topology: g, Files: openfiles.New(nil, nil, nil)}
	var err error
	in.Resident, err = rowcache.NewResident(context.Background(), rows, g.Nodes(), 1, in.Budget)
	if err != nil {
		t.Fatal(err)
	}
	in.Features = in.Resident
	in.CloseLater(in.Features)
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return in
}

// sampledLogits computes the logits of nodes through batches that hold all neighbors.
func sampledLogits(t *testing.T, in *loader.Source, be backend.Backend, m *model.Model,
	nodes []sample.NodeID, step model.Step) []float32 {
	t.Helper()
	fanout := make([]int, len(m.Dims())-1)
	for i := range fanout {
		fanout[i] = sample.All
	}
	s, err := sample.NewSampler([]topology.Reader{in.Topology}, sample.Config{Fanout: fanout,
		Extras: m.Spec().Extras()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var d sample.Dense
	if err := s.Sample(context.Background(), 0, 0, nodes, &d); err != nil {
		t.Fatal(err)
	}
	x := make([]float32, len(d.NodeIDs)*m.Dims()[0])
	if err := in.Features.Gather(context.Background(), d.NodeIDs, x); err != nil {
		t.Fatal(err)
	}
	if err := be.Begin(); err != nil {
		t.Fatal(err)
	}
	step.Nodes = d.NodeIDs
	y, err := m.Forward(&d.Lists, x, step)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, y.Len())
	be.Read(out, y)
	return out
}

// TestInferenceIsExact holds layer-wise inference against batches of whole neighborhoods: with
// layers that aggregate and layers that transform first, tables in memory and read in windows,
// lists in one part and in many, all nodes and some.
func TestInferenceIsExact(t *testing.T) {
	for _, name := range model.Names() {
		for _, o := range []setting.Options{{Heads: 2}, {Heads: 2, Aggregate: "mean",
			Residual: true,
			Norm:     "layer", Activation: "gelu"}, {Heads: 2, Aggregate: "max", Norm: "batch"},
			{Heads: 1, Aggregate: "sum", Activation: "elu"}, {EdgeWeight: true},
			{EdgeWeight: true, Aggregate: "mean"}, {EdgeWeight: true, Aggregate: "sum"},
			{Bases: 2, Residual: true}, {Bases: 1}, {Residual: true, Heads: 2,
				NodeTypes:  []int{0, 100, 300},
				TypeWidths: []int{6, 0, 2}, RelationSources: []int{2, 0, 1, 0, 2}}} {
			for i, hidden := range [][]int{{10}, {6, 8}} {
				if i > 0 && testing.Short() {
					continue
				}
				checkModel(t, name, o, hidden)
			}
		}
	}
}

func checkModel(t *testing.T, name string, o setting.Options, hidden []int) {
	a, err := model.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	o.Relations = testTypes
	for _, in := range []int{6, 24} {
		if in == 6 && (len(hidden) > 1 || testing.Short()) {
			continue // the layers between have such widths
		}
		spec := &model.Spec{Architecture: a, Dims: model.Widths(a, in, 5, hidden), Options: o}
		more := o.Bases+len(o.NodeTypes) > 0
		if spec.Validate() != nil || spec.SampledOnly() || more && !spec.Extras().EdgeTypes {
			continue // it is no other model than without
		}
		in := fakeInputs(t, 9, 6000, in)
		if len(o.RelationSources) > 0 {
			relate(in.Topology.(*sampletest.Graph), o)
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
		if o.Norm == "batch" { // gives it statistics
			sampledLogits(t, in, be, m, []sample.NodeID{0, 3, 9, 80}, model.Step{Train: true})
		}
		for _, streamed := range []bool{false, true} {
			for _, limit := range []uint64{7, listEdges} {
				if limit > 7 && testing.Short() {
					continue // one part
				}
				name := fmt.Sprintf("%s/%v/dims=%v/streamed=%v/part=%d", name, o, spec.Dims,
					streamed, limit)
				t.Run(name, func(t *testing.T) { checkInference(t, in, be, m, streamed, limit) })
			}
		}
	}
}

// relate gives each edge a relation whose sources have the type of its source.
func relate(g *sampletest.Graph, o setting.Options) {
	kinds := make([]uint32, len(g.Nbrs))
	program.NodeTypes(kinds, mem.View[uint32](mem.BytesOf(g.Nbrs)), o.NodeTypes)
	for i, kind := range kinds {
		var of []uint32
		for r, source := range o.RelationSources {
			if source == int(kind) {
				of = append(of, uint32(r))
			}
		}
		g.Types[i] = of[int(g.Types[i])%len(of)]
	}
}

// specOf is a model by its name.
func specOf(t testing.TB, name string, dims []int) *model.Spec {
	t.Helper()
	a, err := model.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return &model.Spec{Architecture: a, Dims: dims}
}

func checkInference(t *testing.T, in *loader.Source, be backend.Backend, m *model.Model,
	streamed bool, limit uint64) {
	f := &Inference{Source: in, Backend: be, Model: m, partEdges: limit}
	if streamed {
		f.RowsMax = 100
		f.wrap = func(t table) table { return inWindows{t} }
	}
	n := m.Dims()[len(m.Dims())-1]
	all := make([]float32, 0, int(in.Meta.Nodes)*n)
	err := f.Run(context.Background(), nil, func(_ []sample.NodeID, y []float32) error {
		all = append(all, y...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	some := roaring.BitmapOf(0, 1, 5, 77, 300, 511)
	nodes := []sample.NodeID{0, 1, 5, 77, 300, 511}
	want := sampledLogits(t, in, be, m, nodes, model.Step{})
	scale := 1.0 // sums over hubs are large
	for _, v := range want {
		scale = max(scale, math.Abs(float64(v))/10)
	}
	for i, v := range nodes {
		for k := range n {
			if d := math.Abs(float64(all[int(v)*n+k] - want[i*n+k])); !(d <= 1e-4*scale) {
				t.Fatalf("logit %d of node %d is %g, want %g", k, v, all[int(v)*n+k],
					want[i*n+k])
			}
		}
	}
	at := 0
	err = f.Run(context.Background(), some, func(got []sample.NodeID, y []float32) error {
		for i, v := range got {
			if v != nodes[at] || !near(y[i*n:(i+1)*n], all[int(v)*n:(int(v)+1)*n], scale) {
				return fmt.Errorf("node %d: logits %v, want those of %d, %v", v, y[i*n:(i+1)*n],
					nodes[at], all[int(v)*n:(int(v)+1)*n])
			}
			at++
		}
		return nil
	})
	if err != nil || at != len(nodes) {
		t.Fatalf("%d of %d nodes, %v", at, len(nodes), err)
	}
}

func near(a, b []float32, scale float64) bool {
	for i := range a {
		if !(math.Abs(float64(a[i]-b[i])) <= 1e-4*scale) {
			return false
		}
	}
	return len(a) == len(b)
}
