package encode

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/topology"
	"gdb/sample/sampletest"
	"gdb/train/link/triples"
	"gdb/train/setting"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const dim = 8

// mustOpen opens an encoder over a random graph with two types of edges, and its embeddings.
func mustOpen(t *testing.T, name, fanout, input string) (e *Encoder, embeddings []float32,
	g layouttest.Graph) {
	t.Helper()
	g = layouttest.Random(5, 80, 400)
	g.Both, g.EdgeTypes, g.Dim = true, []string{"a", "b"}, 3
	g.Features = make([]float32, g.Nodes*g.Dim)
	for i := range g.Features {
		g.Features[i] = float32(math.Cos(float64(i)))
	}
	for i := range g.Edges {
		g.Edges[i].Type = uint16(i % 2)
	}
	store := layouttest.Build(t, vfs.NewMem(), "s", g)
	c := setting.DefaultLink("distmult")
	c.Dim, c.Encoder, c.Fanout, c.EncoderInput, c.Threads = dim, name, fanout, input, 2
	embeddings = make([]float32, g.Nodes*dim)
	for i := range embeddings {
		embeddings[i] = float32(math.Sin(float64(i)))
	}
	e, err := Open(context.Background(), store, devtest.Open(t, blockdev.Options{}),
		Inputs{Settings: &c, Embeddings: embeddings, Budget: mem.NewBudget(0),
			Pool: kernel.NewPool(2)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, embeddings, g
}

// TestGradient compares the gradient in the embeddings with differences of the output, and holds
// that a batch over whole lists gives what All gives.
func TestGradient(t *testing.T) {
	for _, name := range []string{"sage", "gat", "rgcn", "sage both", "rgcn both"} {
		t.Run(name, func(t *testing.T) {
			name, input, _ := strings.Cut(name, " ")
			e, embeddings, g := mustOpen(t, name, "all,all", input)
			nodes := []uint32{3, 9, 41}
			all := make([]float32, g.Nodes*dim)
			if err := e.All(t.Context(), all); err != nil {
				t.Fatal(err)
			}
			loss := func() float64 { // the sum of the squares of what comes out, halved
				rows, err := e.Batch(t.Context(), 1, nodes, nil)
				if err != nil {
					t.Fatal(err)
				}
				sum := 0.0
				for i, v := range rows {
					if want := all[int(nodes[i/dim])*dim+i%dim]; want != 0 &&
						math.Abs(float64(v-want)) > 1e-4*(1+math.Abs(float64(want))) {
						t.Fatalf("value %d of a batch is %v, of all nodes %v", i, v, want)
					}
					sum += float64(v) * float64(v) / 2
				}
				return sum
			}
			loss()
			clear(all) // embeddings change from here on
			rows, err := e.Batch(t.Context(), 1, nodes, nil)
			if err != nil {
				t.Fatal(err)
			}
			grad := slices.Clone(rows)
			e.cfg.EncoderLR = 1e-30 // the weights stay
			got, err := e.Step(grad, 1)
			if err != nil {
				t.Fatal(err)
			}
			at, x, stride := slices.Clone(got.At), slices.Clone(got.X), got.Stride
			for i := 0; i < len(at); i += 7 {
				place := int(at[i])*dim + i%dim
				const h = 1e-2
				was := embeddings[place]
				embeddings[place] = was + h
				up := loss()
				embeddings[place] = was - h
				down := loss()
				embeddings[place] = was
				want, have := (up-down)/(2*h), float64(x[(i+1)*stride-dim+i%dim])
				if math.Abs(have-want) > 2e-2*(1+math.Abs(want)) {
					t.Errorf("gradient of node %d is %v, differences say %v", at[i], have, want)
				}
			}
		})
	}
}

// TestAllInPieces: what all nodes are encoded to has the same bits, however few are encoded at a
// time.
func TestAllInPieces(t *testing.T) {
	for _, name := range []string{"sage", "gat", "rgcn", "sage both"} {
		name, input, _ := strings.Cut(name, " ")
		e, _, g := mustOpen(t, name, "all,all", input)
		want, got := make([]float32, g.Nodes*dim), make([]float32, g.Nodes*dim)
		if err := e.All(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		for _, most := range []int{1, 40, 79} { // of 80 nodes
			clear(got)
			if err := e.all(t.Context(), got, most); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s %s, %d rows at most: the vectors differ", name, input, most)
			}
		}
	}
}

// TestLeaveOut holds that nothing of an edge that is asked about is read: its ends are not in each
// other's lists, and all else is.
func TestLeaveOut(t *testing.T) {
	e, _, g := mustOpen(t, "sage", "all", setting.EncoderVectors)
	edge := g.Edges[slices.IndexFunc(g.Edges,
		func(e layouttest.Edge) bool { return e.Src != e.Dst })]
	asked := []triples.Triple{{Head: uint32(edge.Src), Tail: uint32(edge.Dst)}}
	nodes := []uint32{uint32(edge.Src), uint32(edge.Dst)}
	slices.Sort(nodes)
	if _, err := e.Batch(t.Context(), 1, nodes, asked); err != nil {
		t.Fatal(err)
	}
	d := &e.dense
	lists := d.NodeIDs[d.NodeIDOffsets[1]:]
	for i, v := range lists {
		var got, want []layout.NodeID
		got = append(got, d.Nbrs[d.NbrOffsets[i]:d.NbrOffsets[i+1]]...)
		for k := d.NbrOffsets[i]; k < d.NbrOffsets[i+1]; k++ {
			if d.NodeIDs[d.ReprMap[k]] != d.Nbrs[k] {
				t.Fatalf("neighbor %d stands for another node", k)
			}
		}
		for _, x := range g.Edges {
			for _, pair := range [][2]layout.NodeID{{x.Src, x.Dst}, {x.Dst, x.Src}} {
				if pair[0] == v && pairOf(uint32(x.Src), uint32(x.Dst)) !=
					pairOf(nodes[0], nodes[1]) {
					want = append(want, pair[1])
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("node %d reads %v, want %v", v, got, want)
		}
	}
}

// listsOf are the lists of a graph whose nodes have other numbers, of incoming edges and of
// outgoing ones.
func listsOf(g layouttest.Graph, number func(uint32) uint32) (both []topology.Reader) {
	for _, outgoing := range []bool{false, true} {
		lists := make([][]layout.NodeID, g.Nodes)
		for _, x := range g.Edges {
			from, to := number(uint32(x.Dst)), number(uint32(x.Src))
			if outgoing {
				from, to = to, from
			}
			lists[from] = append(lists[from], layout.NodeID(to))
		}
		for _, l := range lists {
			slices.Sort(l)
		}
		both = append(both, sampletest.FromLists(lists...))
	}
	return both
}

// TestFeatures: features alone are encoded without what is learned of nodes, of which nothing
// changes; a batch of numbers reads the features of their nodes.
func TestFeatures(t *testing.T) {
	e, embeddings, g := mustOpen(t, "sage", "all", setting.EncoderFeatures)
	all := make([]float32, g.Nodes*dim)
	if err := e.All(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	clear(embeddings)
	reversed := func(number uint32) uint32 { return uint32(g.Nodes-1) - number }
	for _, node := range []func(uint32) uint32{nil, reversed} {
		number := uint32(7)
		if node != nil {
			if err := e.Near(listsOf(g, node), embeddings, node, node, nil); err != nil {
				t.Fatal(err)
			}
			number = node(number)
		}
		rows, err := e.Batch(t.Context(), 1, []uint32{number}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range rows {
			if want := all[7*dim+i]; math.Abs(float64(v-want)) > 1e-5 {
				t.Errorf("value %d is %v, want %v", i, v, want)
			}
		}
		grad, err := e.Step(make([]float32, dim), 1)
		if err != nil || len(grad.At) > 0 {
			t.Errorf("%d rows have a gradient: %v", len(grad.At), err)
		}
	}
}

// TestNear: near lists are drawn from as those of the store are, with the same seed, and count in
// the budget in place of what was drawn from before; embeddings are read by row, features by node.
func TestNear(t *testing.T) {
	store, _, _ := mustOpen(t, "sage", "3,2", setting.EncoderBoth)
	e, embeddings, g := mustOpen(t, "sage", "3,2", setting.EncoderBoth)
	turned := make([]float32, len(embeddings)) // row 79 is of node 0
	for i := range g.Nodes {
		copy(turned[(g.Nodes-1-i)*dim:], embeddings[i*dim:][:dim])
	}
	row := func(number uint32) uint32 { return uint32(g.Nodes-1) - number }
	node := func(number uint32) uint32 { return number }
	budget := mem.NewBudget(0)
	nodes := []uint32{3, 9, 41}
	want, err := store.Batch(t.Context(), 1, nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	var used int64
	for range 3 {
		if err := e.Near(listsOf(g, node), turned, row, node, budget); err != nil {
			t.Fatal(err)
		}
		got, err := e.Batch(t.Context(), 1, nodes, nil)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("near vectors %v, of the store %v: %v", got, want, err)
		}
		if used == 0 {
			used = budget.Used()
		}
		if used == 0 || budget.Used() != used {
			t.Errorf("near lists take %d bytes, want %d as before", budget.Used(), used)
		}
	}
}

// TestCountsAreNormalized: rows of features that are counts come divided by their sum, and others
// as they are.
func TestCountsAreNormalized(t *testing.T) {
	g := layouttest.Random(5, 20, 60)
	g.Dim, g.Features = 3, make([]float32, 20*3)
	for i := range g.Features {
		g.Features[i] = float32(i % 4)
	}
	for _, counts := range []bool{false, true} {
		store := layouttest.Build(t, vfs.NewMem(), "s", g)
		if counts {
			store.Meta().Stats.CountFeatures = []string{store.Meta().Features[0].Name}
		}
		c := setting.DefaultLink("distmult")
		c.Dim, c.Encoder, c.Fanout, c.EncoderInput = dim, "sage", "2", setting.EncoderFeatures
		e, err := Open(t.Context(), store, devtest.Open(t, blockdev.Options{}),
			Inputs{Settings: &c, Embeddings: make([]float32, 20*dim), Budget: mem.NewBudget(0),
				Pool: kernel.NewPool(1)})
		if err != nil {
			t.Fatal(err)
		}
		for v := range g.Nodes {
			got, want := e.features.values[3*v:][:3], slices.Clone(g.Features[3*v:][:3])
			if sum := want[0] + want[1] + want[2]; counts {
				for j := range want {
					want[j] /= sum
				}
			}
			for j := range want {
				if math.Abs(float64(got[j]-want[j])) > 1e-6 {
					t.Errorf("counts %v: node %d has %v, want %v", counts, v, got, want)
				}
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
