package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/train/runs"
)

// manyLists returns a graph whose lists have no place in the least block cache. Most edges begin in
// few nodes.
func manyLists() layouttest.Graph {
	const nodes, edges, dim = 60_000, 3_000_000, 8
	draw := rng.NewStream(4)
	g := layouttest.Graph{Nodes: nodes, Dim: dim, Labels: make([]int32, nodes),
		Classes: []string{"a", "b"}, Features: make([]float32, nodes*dim),
		Splits: map[string][]layout.NodeID{}}
	for range edges {
		g.Edges = append(g.Edges, layouttest.Edge{
			Src: layout.NodeID(draw.Below(1 + draw.Below(nodes))),
			Dst: layout.NodeID(draw.Below(nodes))})
	}
	for v := range nodes {
		g.Labels[v] = int32(v % 2)
		if v%100 < 2 {
			name := []string{"train", "val"}[v%100]
			g.Splits[name] = append(g.Splits[name], layout.NodeID(v))
		}
	}
	return g
}

// setCosts makes the plans of a store believe in a device.
func setCosts(t *testing.T, s *layout.Store, c Config, set func(p *Profile)) {
	t.Helper()
	tr := &trainer{cfg: c, obs: func(Event) {}}
	err := tr.prepare(t.Context(), s)
	if err == nil {
		err = tr.plans(t.Context(), s, mustDevice(t))
	}
	if err == nil {
		var p *Profile
		if p, err = tr.profile(t.Context()); err == nil {
			set(p)
			p.news = true
			err = tr.keepProfile(t.Context(), p)
		}
	}
	if err = errors.Join(err, tr.close()); err != nil {
		t.Fatal(err)
	}
}

// TestNeighborsAreChosen: where reads are slow the plan takes a neighbor cache, whose hits are
// those of the run; a run too short for what making it takes has none, unless it is kept.
func TestNeighborsAreChosen(t *testing.T) {
	s, c := mustBuild(t, manyLists()), testConfig()
	c.Fanout, c.Batch, c.Epochs, c.EvalEvery = []int{5, 5}, 60, 2, 2
	c.Topology, c.Cache, c.EvalMode = "paged", "none", runs.EvalSampled
	c.Memory = 1 << 20
	c.Memory = leastMemory(t, s, c) + 4<<20
	setCosts(t, s, c, func(p *Profile) { p.ReadSeconds, p.Sequential = 1e-3, 1 })
	plan := func() *Plan {
		t.Helper()
		p, err := MakePlan(context.Background(), s, mustDevice(t), c)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := plan(); p.Lists == nil || p.Lists.Neighbors != 0 ||
		!strings.Contains(p.Why(), "no neighbor cache: it would take") {
		t.Errorf("a short run: %+v, %q", p.Lists, p.Why())
	}
	setCosts(t, s, c, func(p *Profile) { p.Sequential = 1e9 })
	p := plan()
	if p.Lists == nil || p.Lists.Neighbors == 0 || p.Lists.Hit <= 0 || p.Lists.Make <= 0 ||
		!strings.Contains(p.Why(), "to make: ") {
		t.Fatalf("%+v, %q", p.Lists, p.Why())
	}
	t.Logf("%+v", p.Lists)
	c.NeighborCache = 0
	if none := plan(); none.Lists.Neighbors != 0 || none.Forecast.Time <= p.Forecast.Time {
		t.Errorf("chosen %+v in %g s, without %g s", p.Lists, p.Forecast.Time, none.Forecast.Time)
	}
	c.NeighborCache = runs.NeighborAuto
	var hit *float64
	_, err := Run(context.Background(), s, mustDevice(t), c, func(e Event) {
		if e.Epoch != nil {
			hit = e.Epoch.NeighborHit
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if hit == nil || math.Abs(*hit-p.Lists.Hit) > 0.05 {
		t.Errorf("hits planned %.3f, in the run %v", p.Lists.Hit, hit)
	}
	if again := plan(); again.Lists.Neighbors != p.Lists.Neighbors || again.Lists.Make != 0 ||
		!strings.Contains(again.Why(), "kept from before") {
		t.Errorf("%+v, then %+v, %q", p.Lists, again.Lists, again.Why())
	}
}

// TestListsShareOneBudget: whatever share of them the neighbor cache has, the caches of lists take
// no more than the block cache alone would, by the plan and by what is counted.
func TestListsShareOneBudget(t *testing.T) {
	s, c := mustBuild(t, manyLists()), testConfig()
	for _, most := range []int64{2 << 20, 3 << 20, 8 << 20, 12 << 20} {
		alone := s.PagedBytes(layout.In, most) + 2*sessionBytes
		for _, quarters := range []int64{0, 1, 2, 3} {
			p := &planner{c: &c, store: s, nodes: s.Meta().Nodes, quarters: quarters,
				Plan: &Plan{Memory: 1 << 30}}
			p.setPaged(most)
			what := fmt.Sprintf("%d bytes, %d quarters: %+v", most, quarters, p.Lists)
			if all := p.Topology + p.Neighbor; all > alone || p.listCaches > most ||
				p.Lists.Neighbors != p.neighborCache || p.Lists.Blocks != p.blockCache ||
				4*p.Lists.Neighbors < p.listCaches*quarters/2 {
				t.Errorf("%s take %d, blocks alone %d", what, all, alone)
			}
			for _, limit := range []int64{0, p.Topology + p.Neighbor} { // made, then kept
				in := &inputs{budget: mem.NewBudget(limit)}
				topo, err := s.Topology(t.Context(), mustDevice(t), layout.In, p.graph(in))
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				used, st := in.budget.Used(), topo.Stats()
				if err := topo.Close(); err != nil {
					t.Fatal(err)
				}
				if used < st.Bytes || used > p.Topology+p.Neighbor || in.budget.Used() != 0 ||
					(st.Neighbors.Lists > 0) != (quarters > 0) {
					t.Errorf("%s: %d bytes are counted, planned were %d and %d; %+v", what, used,
						p.Topology, p.Neighbor, st)
				}
			}
		}
	}
}

func TestNeighborSize(t *testing.T) {
	draw := rng.NewStream(5)
	for most := int64(1); most < 1<<40; most += 1 + int64(draw.Below(uint64(most))) {
		n := neighborSize(most)
		if arenaBytes(n) > most && n > 0 || n > 0 && n < neighborsLeast/2 {
			t.Fatalf("%d of %d bytes, which take %d", n, most, arenaBytes(n))
		}
		if n == 0 && most > neighborsLeast*2 || n > 0 && n < most/2 && most > 32<<20 {
			t.Fatalf("%d of %d bytes", n, most)
		}
		again := n
		for again > 7 {
			again /= 2
		}
		if n > 0 && n%again != 0 {
			t.Fatalf("%d has more than three leading bits", n)
		}
	}
}

func TestThinned(t *testing.T) {
	for _, sizes := range [][]int64{{5}, {2, 1}, {3, 1, 2, 9, 4, 4, 7, 8}} {
		got := thinned(sizes)
		if got[0] != slices.Min(sizes) || got[len(got)-1] != slices.Max(sizes) ||
			len(got) > triedSizes {
			t.Errorf("%v of %v", got, sizes)
		}
	}
	if a, b, at := around([]int64{2, 4, 8}, 6); a != 4 || b != 8 || at != 0.5 {
		t.Errorf("6 is between %d and %d at %g", a, b, at)
	}
	for size, want := range map[int64]int64{1: 2, 2: 2, 9: 8} {
		a, b, at := around([]int64{2, 4, 8}, size)
		if got := float64(a) + at*float64(b-a); int64(got) != want {
			t.Errorf("%d is taken for %g", size, got)
		}
	}
}
