package sample

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"gdb/internal/rng"
	"gdb/layout/topology"
	"gdb/sample/sampletest"

	"pgregory.net/rapid"
)

// timed gives the edges of a graph times.
func timed(g *sampletest.Graph, at func(i int) int64) *sampletest.Graph {
	g.Times = make([]int64, len(g.Nbrs))
	for i := range g.Times {
		g.Times[i] = at(i)
	}
	return g
}

// fewTimes has many ties.
func fewTimes(i int) int64 { return int64(rng.Key(78, uint64(i))%41) - 1 }

// anyTimes are from the least to the largest.
func anyTimes(i int) int64 { return int64(rng.Key(79, uint64(i))) }

// timeLaws are ways in which times may lie.
var timeLaws = []func(int) int64{fewTimes, anyTimes,
	func(int) int64 { return 5 },
	func(i int) int64 { return int64(i) },
	func(i int) int64 { return -int64(i) },
	func(i int) int64 { return int64(i%3-1) * math.MaxInt64 },
	// Times that differ by less than a float64 tells apart.
	func(i int) int64 { return 1700000000_000000000 + int64(i%7) },
	func(i int) int64 { return math.MinInt64 + int64(i%2) }}

// The sampler takes what entries that are sorted by time give, over one direction and two, and what
// is before a time alone.
func TestLatestEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		graphs, at := drawGraphs(t), rapid.SampledFrom(timeLaws).Draw(t, "times")
		for _, g := range graphs {
			timed(g, at)
		}
		checkReference(t, graphs, joinedColumns(graphs...), Config{Draw: DrawLatest},
			func(d *Dense, _ []int) error { return verifyLayers(d) })
	})
}

// Hubs: entries come in their order, or against it, or all at one time.
func TestLatestHub(t *testing.T) {
	const n = 50000
	hub := make([]NodeID, n)
	for i := range hub {
		hub[i] = NodeID(i)
	}
	for i, at := range timeLaws {
		g := timed(sampletest.FromLists(append([][]NodeID{hub}, make([][]NodeID, n-1)...)...), at)
		for _, fanout := range []int{1, 10, 1000, n - 1, n, All} {
			c := Config{Fanout: []int{fanout}, Draw: DrawLatest, Seed: 6}
			s := mustSampler(t, c, g)
			var d Dense
			if err := s.Sample(t.Context(), 0, 0, []NodeID{0}, &d); err != nil {
				t.Fatal(err)
			}
			want := reference(g.List, joinedColumns(g), c, 0, 0, []NodeID{0})
			if !equalDense(&d, &want) {
				t.Errorf("times %d, fanout %d: %d neighbors differ from the reference's %d", i,
					fanout, len(d.Nbrs), len(want.Nbrs))
			}
		}
	}
}

// What is taken is a function of the list: neither seed nor epoch nor batch changes it. Of equal
// times the later positions are taken, and a list is never read that is taken whole.
func TestLatestIsOfTheList(t *testing.T) {
	g := sampletest.FromLists([]NodeID{1, 2, 3, 4, 5}, nil, nil, nil, nil, nil)
	g.Times = []int64{7, 9, 7, 2, 7}
	for i := range uint64(5) {
		s := mustSampler(t, Config{Fanout: []int{3}, Draw: DrawLatest, Seed: i}, g)
		var d Dense
		if err := s.Sample(t.Context(), i, 2*i, []NodeID{0}, &d); err != nil {
			t.Fatal(err)
		}
		if len(d.Nbrs) != 3 || d.Nbrs[0] != 2 || d.Nbrs[1] != 3 || d.Nbrs[2] != 5 {
			t.Errorf("seed %d: took %v, want 2 3 5", i, d.Nbrs)
		}
	}
	whole := countingGraph{Graph: g, t: t}
	s, err := NewSampler([]topology.Reader{whole}, Config{Fanout: []int{5, All}, Draw: DrawLatest})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var d Dense
	if err := s.Sample(t.Context(), 0, 0, []NodeID{0}, &d); err != nil || len(d.Nbrs) != 5 {
		t.Errorf("took %v: %v", d.Nbrs, err)
	}
}

// countingGraph fails where a part of a list is given.
type countingGraph struct {
	*sampletest.Graph
	t *testing.T
}

func (c countingGraph) NewSession() topology.Session {
	return countingSession{c.Graph.NewSession().(topology.ColumnReader), c.t}
}

type countingSession struct {
	topology.ColumnReader
	t *testing.T
}

func (c countingSession) Columns(ctx context.Context, want topology.Columns,
	fn func(p topology.Part) error) error {
	return c.ColumnReader.Columns(ctx, want, func(p topology.Part) error {
		c.t.Errorf("%d times of list %d were read", len(p.Times), p.List)
		return fn(p)
	})
}

func TestLatestErrors(t *testing.T) {
	g := sampletest.FromLists([]NodeID{1, 2, 2}, []NodeID{0}, nil)
	s := mustSampler(t, Config{Fanout: []int{2}, Draw: DrawLatest}, g)
	err := s.Sample(t.Context(), 0, 0, []NodeID{0}, &Dense{})
	if !errors.Is(err, topology.ErrNoTimes) {
		t.Errorf("without times: %v", err)
	}
	_, err = NewSampler([]topology.Reader{unweighable{g}}, Config{Fanout: []int{1},
		Draw: DrawLatest})
	if err == nil || !strings.Contains(err.Error(), "times of edges cannot be read") {
		t.Errorf("a topology that reads no times: %v", err)
	}
	if _, err = NewSampler([]topology.Reader{g}, Config{Fanout: []int{1}, Draw: 9}); err == nil {
		t.Error("an unknown way to draw is taken")
	}
}

func TestLatestMemory(t *testing.T) {
	g := timed(sampletest.RMAT(12, 60000, 3), fewTimes)
	checkSamplerMemory(t, g, Config{Fanout: []int{10, 40}, Draw: DrawLatest}, 8)
}
