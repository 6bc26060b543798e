package sample

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample/sampletest"

	"pgregory.net/rapid"
)

func mustSampler(t testing.TB, c Config, topos ...topology.Reader) *Sampler {
	t.Helper()
	s, err := NewSampler(topos, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// joined is the list of a node over both graphs.
func joined(gs ...*sampletest.Graph) func(NodeID) []NodeID {
	return func(v NodeID) (l []NodeID) {
		for _, g := range gs {
			l = append(l, g.List(v)...)
		}
		return l
	}
}

func drawGraph(t *rapid.T, nodes int, name string) *sampletest.Graph {
	lists := make([][]NodeID, nodes)
	for v := range lists {
		n := rapid.SampledFrom([]int{0, 1, 2, 3, 8, 40, 100}).Draw(t, name)
		for range n {
			lists[v] = append(lists[v], NodeID(rapid.IntRange(0, nodes-1).Draw(t, "neighbor")))
		}
		slices.Sort(lists[v])
	}
	return sampletest.FromLists(lists...)
}

func TestSamplerEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		graphs := drawGraphs(t)
		checkReference(t, graphs, edgeColumns{}, Config{}, func(d *Dense, fanout []int) error {
			return verifyDense(d, fanout, joined(graphs...))
		})
	})
}

// drawGraphs draws one direction, or both.
func drawGraphs(t *rapid.T) []*sampletest.Graph {
	nodes := rapid.IntRange(1, 60).Draw(t, "nodes")
	graphs := []*sampletest.Graph{drawGraph(t, nodes, "in")}
	if rapid.Bool().Draw(t, "both") {
		graphs = append(graphs, drawGraph(t, nodes, "out"))
	}
	return graphs
}

// checkReference compares batches of any fanouts with the reference, after they passed verify.
func checkReference(t *rapid.T, graphs []*sampletest.Graph, edges edgeColumns,
	c Config, verify func(d *Dense, fanout []int) error) {
	var topos []topology.Reader
	for _, g := range graphs {
		topos = append(topos, g)
	}
	c.Seed = rapid.Uint64().Draw(t, "seed")
	if len(c.LayerSize) == 0 {
		c.Fanout = rapid.SliceOfN(rapid.SampledFrom([]int{All, 1, 2, 5, 33, 70}), 1, 4).
			Draw(t, "fanout")
	}
	s, err := NewSampler(topos, c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var d Dense
	nodes := int(graphs[0].Nodes())
	for batch := range uint64(3) {
		seeds := rapid.SliceOfNDistinct(rapid.Map(rapid.IntRange(0, nodes-1),
			func(i int) NodeID { return NodeID(i) }), 1, nodes, rapid.ID).Draw(t, "seeds")
		if err := s.Sample(context.Background(), 5, batch, seeds, &d); err != nil {
			t.Fatal(err)
		}
		if err := verify(&d, c.Fanout); err != nil {
			t.Fatal(err)
		}
		want := reference(joined(graphs...), edges, c, 5, batch, seeds)
		if !equalDense(&d, &want) {
			t.Fatalf("batch %d:\n got %v\nwant %v", batch, d, want)
		}
	}
}

// equalDense compares contents: nil and empty are one.
func equalDense(a, b *Dense) bool {
	return slices.Equal(a.NodeIDOffsets, b.NodeIDOffsets) && slices.Equal(a.NodeIDs, b.NodeIDs) &&
		slices.Equal(a.NbrOffsets, b.NbrOffsets) && slices.Equal(a.Nbrs, b.Nbrs) &&
		slices.Equal(a.ReprMap, b.ReprMap) && slices.Equal(a.Weights, b.Weights)
}

// A hub, nodes without neighbors, and a table that has to grow in the middle of a hop.
func TestSampleHubs(t *testing.T) {
	const n = 100000
	lists := make([][]NodeID, n)
	for v := range NodeID(n) {
		lists[0] = append(lists[0], v)
	}
	lists[1] = lists[0][5:100]
	g := sampletest.FromLists(lists...)
	for _, fanout := range [][]int{{All}, {80000, 3}, {40, 40}, {1000, 1}} {
		c := Config{Fanout: fanout, Seed: 4}
		s := mustSampler(t, c, g)
		var d Dense
		for _, seeds := range [][]NodeID{{1, 0}, {0}, {2}, {n - 1, 3, 0}} {
			if err := s.Sample(context.Background(), 1, 2, seeds, &d); err != nil {
				t.Fatal(err)
			}
			if err := verifyDense(&d, fanout, g.List); err != nil {
				t.Fatalf("fanout %v, seeds %v: %v", fanout, seeds, err)
			}
		}
	}
}

func TestSampleErrors(t *testing.T) {
	g := sampletest.FromLists([]NodeID{1, 2}, []NodeID{0}, nil)
	for _, c := range []struct {
		seeds []NodeID
		want  string
	}{
		{nil, "without seeds"},
		{[]NodeID{0, 3}, "seed 3 is out of range: the graph has 3 nodes"},
		{[]NodeID{2, 1, 2}, "seed 2 is given twice"},
	} {
		s := mustSampler(t, Config{Fanout: []int{2}}, g)
		var d Dense
		err := s.Sample(context.Background(), 0, 0, c.seeds, &d)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("seeds %v: error %v, want %q", c.seeds, err, c.want)
		}
	}
	for _, fanout := range [][]int{{0}, {3, -2}} {
		if _, err := NewSampler([]topology.Reader{g}, Config{Fanout: fanout}); err == nil {
			t.Errorf("fanout %v is taken", fanout)
		}
	}
	other := sampletest.FromLists(nil)
	if _, err := NewSampler([]topology.Reader{g, other}, Config{Fanout: []int{1}}); err == nil {
		t.Error("directions of different graphs are taken")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := mustSampler(t, Config{Fanout: []int{2}}, g)
	if err := s.Sample(ctx, 0, 0, []NodeID{0}, &Dense{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancellation: %v", err)
	}
}

func TestSamplerMemory(t *testing.T) {
	g := sampletest.RMAT(12, 60000, 3)
	checkSamplerMemory(t, g, Config{Fanout: []int{10, 40}}, 8)
	small := mustSampler(t, Config{Fanout: []int{10, 40}, Budget: mem.NewBudget(4096)}, g)
	var limit *mem.LimitError
	if err := small.Sample(context.Background(), 0, 0, memorySeeds, &Dense{}); !errors.As(err,
		&limit) {
		t.Errorf("over the budget: %v", err)
	}
}

var memorySeeds = []NodeID{1, 2, 3, 4, 5, 6, 7, 8, 9}

// checkSamplerMemory samples again and again: nothing is allocated, at least perEdge bytes are
// counted for each edge and 20 for each node, and none in the end.
func checkSamplerMemory(t *testing.T, g *sampletest.Graph, c Config, perEdge int) {
	t.Helper()
	c.Budget = mem.NewBudget(0)
	s := mustSampler(t, c, g)
	var d Dense
	draw := func() {
		if err := s.Sample(context.Background(), 0, 0, memorySeeds, &d); err != nil {
			t.Fatal(err)
		}
	}
	draw()
	if n := testing.AllocsPerRun(20, draw); n != 0 {
		t.Errorf("%v allocations a batch after the first", n)
	}
	got, least := c.Budget.Used(), int64(perEdge*len(d.Nbrs)+20*len(d.NodeIDs))
	if got < least {
		t.Errorf("%d bytes counted, at least %d are held", got, least)
	}
	s.Close()
	if c.Budget.Used() != 0 {
		t.Errorf("%d bytes still counted after Close", c.Budget.Used())
	}
}

// TestSampleWithoutHops: a batch without hops is its seeds.
func TestSampleWithoutHops(t *testing.T) {
	s := mustSampler(t, Config{}, sampletest.FromLists([]NodeID{1, 2}, []NodeID{0}, nil))
	var d Dense
	if err := s.Sample(context.Background(), 0, 0, []NodeID{2, 1}, &d); err != nil {
		t.Fatal(err)
	}
	if d.Layers() != 0 || d.Inner() != 2 || len(d.Nbrs) != 0 || len(d.NodeIDs) != 2 ||
		d.NodeIDs[0] != 2 {
		t.Errorf("sampled %+v", d)
	}
}
