package gen

import (
	"context"
	"math"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/internal/tables"
	"gdb/layout"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// mustArray reads an array file that Gen or Kron wrote.
func mustArray[T mem.Scalar](t *testing.T, fs vfs.FS, path string) []T {
	t.Helper()
	a, err := tables.OpenArray(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	from, err := a.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	b, err := from.Next(context.Background(), int(a.Elements()))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(mem.View[T](b))
}

// kronSource returns a small store in memory: 5 nodes, 6 edges, an edge twice, a self loop.
func kronSource(t *testing.T, fs vfs.FS, multi bool) layouttest.Graph {
	g := layouttest.Graph{Nodes: 5, Dim: 3, Classes: []string{"x", "y", "z"},
		Edges: []layouttest.Edge{{Src: 0, Dst: 1}, {Src: 2, Dst: 1}, {Src: 2, Dst: 1},
			{Src: 3, Dst: 3}, {Src: 4, Dst: 0}, {Src: 1, Dst: 4}},
		Labels: []int32{0, 1, -1, 2, 1},
		Splits: map[string][]layout.NodeID{"train": {1, 3}, "val": {0}}}
	for i := range 15 {
		g.Features = append(g.Features, float32(i%4))
	}
	if multi {
		g.Labels, g.Multi = nil, [][]int{{0, 2}, nil, {1}, {2}, {0, 1, 2}}
	}
	layouttest.Build(t, fs, "in", g)
	return g
}

func TestKronIsTheProduct(t *testing.T) {
	fs := vfs.NewMem()
	g := kronSource(t, fs, false)
	const factor, ones = 4, 10
	o := KronOptions{In: "in", Factor: factor, EdgeFactor: ones, Noise: 0.1, Seed: 3, Out: "out",
		FS: fs}
	if _, err := Kron(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	var want, have [factor * 5][factor * 5]int // edges between two nodes
	cells := kronMatrix(factor, ones, 3)
	for _, c := range cells { // the product by its definition
		for _, e := range g.Edges {
			want[int(c[0])*5+int(e.Src)][int(c[1])*5+int(e.Dst)]++
		}
	}
	edges := mustArray[uint32](t, fs, "out/edges.npy")
	if len(edges) != 2*ones*len(g.Edges) || len(cells) != ones {
		t.Fatalf("%d edges of %d cells, want %d times %d", len(edges)/2, len(cells), ones,
			len(g.Edges))
	}
	for i := 0; i < len(edges); i += 2 {
		have[edges[i]][edges[i+1]]++
	}
	if have != want {
		t.Errorf("edges %v, want %v", have, want)
	}
	x := mustArray[float32](t, fs, "out/features.npy")
	if len(x) != factor*15 || !slices.Equal(x[:15], g.Features) {
		t.Error("the first copy has other features")
	}
	for i := 15; i < len(x); i++ {
		was := float64(g.Features[i%15])
		if was == 0 && x[i] != 0 || math.Abs(float64(x[i])-was) > was {
			t.Errorf("value %d is %g, of %g", i, x[i], was)
		}
	}
	if slices.Equal(x[15:30], x[30:45]) {
		t.Error("copies have the same features")
	}
	labels := mustArray[int32](t, fs, "out/labels.npy")
	for v, l := range labels {
		if l != g.Labels[v%5] {
			t.Errorf("node %d has label %d, want %d", v, l, g.Labels[v%5])
		}
	}
	train := []int64{1, 3, 6, 8, 11, 13, 16, 18}
	if got := mustArray[int64](t, fs, "out/train_idx.npy"); !slices.Equal(got, train) {
		t.Errorf("train %v, want %v", got, train)
	}
}

func TestKronMultiLabelsAndWidth(t *testing.T) {
	fs := vfs.NewMem()
	g := kronSource(t, fs, true)
	o := KronOptions{In: "in", Factor: 2, Dim: 7, Seed: 1, Out: "out", FS: fs}
	if _, err := Kron(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	var want []int64
	for v := range 10 {
		for _, c := range g.Multi[v%5] {
			want = append(want, int64(v), int64(c))
		}
	}
	if got := mustArray[int64](t, fs, "out/labels_coo.npy"); !slices.Equal(got, want) {
		t.Errorf("labels %v, want %v", got, want)
	}
	x := mustArray[float32](t, fs, "out/features.npy")
	for v := range 10 {
		for j := range 7 { // without noise
			if x[v*7+j] != g.Features[v%5*3+j%3] {
				t.Errorf("node %d: %v", v, x[v*7:v*7+7])
				break
			}
		}
	}
}

// TestKronOfArrays: a directory of arrays is expanded as its store, and the bytes depend on the
// seed alone.
func TestKronOfArrays(t *testing.T) {
	fs, ctx := vfs.NewMem(), context.Background()
	if _, err := Make(ctx, Options{Kind: "rmat", Nodes: 256, Edges: 2000, Dim: 2, Classes: 3,
		TrainFrac: 0.2, Seed: 5, Out: "arrays", FS: fs}); err != nil {
		t.Fatal(err)
	}
	var first []uint32
	for i, seed := range []uint64{1, 1, 2} {
		out := []string{"a", "b", "c"}[i]
		_, err := Kron(ctx, KronOptions{In: "arrays", Factor: 8, Seed: seed, Out: out, FS: fs,
			Memory: 256 << 20})
		if err != nil {
			t.Fatal(err)
		}
		edges := mustArray[uint32](t, fs, out+"/edges.npy")
		if len(edges) != 2*2000*16 {
			t.Errorf("%d edges, want %d", len(edges)/2, 2000*16)
		}
		if i > 0 && slices.Equal(edges, first) != (seed == 1) {
			t.Errorf("seed %d: equal edges: %v", seed, seed != 1)
		}
		if i == 0 {
			first = edges
		}
		if names, _ := fs.List(out + "/source.gdb"); len(names) > 0 {
			t.Error("the store in between was left")
		}
	}
}

func TestKronMatrix(t *testing.T) {
	for _, c := range []struct{ size, ones, want int }{{1, 0, 1}, {2, 0, 4}, {3, 9, 9}, {4, 7, 8},
		{16, 0, 32}} {
		cells := kronMatrix(c.size, c.ones, 1)
		if len(cells) != c.want {
			t.Errorf("%d ones of %d, want %d", len(cells), c.size, c.want)
		}
		for i, a := range cells {
			if !slices.Contains(cells, [2]uint64{a[1], a[0]}) || slices.Index(cells, a) != i {
				t.Errorf("size %d: cell %v has no mirror, or comes twice", c.size, a)
			}
		}
	}
}

func TestKronRefuses(t *testing.T) {
	good := KronOptions{In: "a", Out: "b", Factor: 2}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(o *KronOptions){
		"--in":          func(o *KronOptions) { o.In = "" },
		"--out":         func(o *KronOptions) { o.Out = "" },
		"--factor":      func(o *KronOptions) { o.Factor = 0 },
		"--edge-factor": func(o *KronOptions) { o.EdgeFactor = 1 },
		"--dim":         func(o *KronOptions) { o.Dim = -1 },
		"--noise":       func(o *KronOptions) { o.Noise = math.NaN() },
	} {
		o := good
		if change(&o); o.Validate() == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
