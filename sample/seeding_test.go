package sample

import (
	"cmp"
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/topology"
	"gdb/sample/draw"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// timesOf are seeds as of a time each.
type timesOf []int64

func (t timesOf) Expand(_ context.Context, seeds []NodeID, out *Seeded) error {
	out.Nodes = append(out.Nodes, seeds...)
	for _, v := range seeds {
		out.Times = append(out.Times, t[v])
	}
	return nil
}

// timedGraph is a graph with a hub, edges of equal times and edges without a time, and times of its
// nodes.
func timedGraph(seed uint64, nodes, edges int) (layouttest.Graph, timesOf) {
	r := rand.New(rand.NewPCG(seed, 1))
	g := layouttest.Graph{Nodes: nodes, Timed: true}
	for i := range edges {
		e := layouttest.Edge{Src: layout.NodeID(r.IntN(nodes)), Dst: layout.NodeID(r.IntN(nodes)),
			Time: int64(r.IntN(1000))}
		if i%3 == 0 {
			e.Dst = 0
		}
		if i%11 == 0 {
			e.Time = kv.NoTime
		}
		g.Edges = append(g.Edges, e)
	}
	times := make(timesOf, nodes)
	for v := range times {
		times[v] = int64(r.IntN(12)) * 100
	}
	return g, times
}

func openTimed(t *testing.T, g layouttest.Graph, opt topology.Options,
	window int64) topology.Reader {
	t.Helper()
	opt.Times = opt.Resident
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	r, err := topology.Open(t.Context(), s, layouttest.Device(t), layout.In, opt)
	if err != nil {
		t.Fatal(err)
	}
	topo := topology.AsOf(r, window, nil)
	t.Cleanup(func() { _ = topo.Close() })
	return topo
}

type pair struct {
	node NodeID
	time int64
}

// plainTimed draws as a Sampler with a Seeding does, node by node: the neighbors of each pair.
func plainTimed(lists [][]listfile.Edge, c Config, window int64, epoch, batch uint64,
	seeds []pair) map[pair][]NodeID {
	drawn := map[pair][]NodeID{}
	known, front := map[pair]bool{}, seeds
	for _, p := range seeds {
		known[p] = true
	}
	for hop, fanout := range c.Fanout {
		key, next := rng.Key(c.Seed, epoch, batch, uint64(hop)), []pair(nil)
		for _, p := range front {
			var left []listfile.Edge
			for _, e := range lists[p.node] {
				late := e.Time > p.time || window > 0 && e.Time <= p.time-window
				if e.Time == kv.NoTime || !late {
					left = append(left, e)
				}
			}
			slices.SortStableFunc(left, func(a, b listfile.Edge) int {
				return cmp.Compare(a.Time, b.Time)
			})
			take := make([]uint32, min(len(left), max(fanout, len(left)*btoi(fanout == All))))
			if c.Draw == DrawLatest {
				for j := range take {
					take[j] = uint32(len(left) - len(take) + j)
				}
			} else {
				slots := make([]uint32, draw.ChooseSlots(len(take)))
				draw.Choose(rng.Sub(rng.Sub(key, uint64(p.node)), uint64(p.time)),
					uint32(len(left)), take, slots)
			}
			drawn[p] = []NodeID{}
			for _, i := range take {
				q := pair{left[i].Nbr, p.time}
				drawn[p] = append(drawn[p], q.node)
				if !known[q] {
					known[q] = true
					next = append(next, q)
				}
			}
		}
		front = next
	}
	return drawn
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A batch as of times equals a plain sampler's, in whatever way lists are read; its pairs of node
// and time stand there once, and neighbors have the time of the node that they are drawn for.
func TestTimedEqualsReference(t *testing.T) {
	g, times := timedGraph(1, 60, 4000)
	lists := g.Lists(layout.In)
	for name, opt := range map[string]topology.Options{"paged": {CacheBytes: 8 << 10},
		"plain": {Resident: true}, "compact": {Resident: true, Form: topology.Compact}} {
		for _, window := range []int64{0, 150} {
			topo := openTimed(t, g, opt, window)
			for _, c := range []Config{{Fanout: []int{3, 2, 4}}, {Fanout: []int{50, 40}},
				{Fanout: []int{All, 2}}, {Fanout: []int{4, 3}, Draw: DrawLatest}} {
				c.Seeding, c.Seed = times, 7
				s := mustSampler(t, c, topo)
				for batch := range uint64(5) {
					seeds := []NodeID{NodeID(batch), 10, 11, 0, 30, 59}
					if batch == 0 {
						seeds = seeds[1:]
					}
					slices.Sort(seeds)
					seeds = slices.Compact(seeds)
					var d Dense
					if err := s.Sample(t.Context(), 2, batch, seeds, &d); err != nil {
						t.Fatal(err)
					}
					var first []pair
					for _, v := range seeds {
						first = append(first, pair{v, times[v]})
					}
					checkTimed(t, name, &d, plainTimed(lists, c, window, 2, batch, first), seeds)
				}
			}
		}
	}
}

func checkTimed(t *testing.T, name string, d *Dense, want map[pair][]NodeID, seeds []NodeID) {
	t.Helper()
	if got := d.NodeIDs[len(d.NodeIDs)-len(seeds):]; !slices.Equal(got, seeds) {
		t.Fatalf("%s: seeds %v, want %v", name, got, seeds)
	}
	inner, seen := int(d.NodeIDOffsets[1]), map[pair]bool{}
	for i, v := range d.NodeIDs {
		p := pair{v, d.Times[i]}
		if seen[p] {
			t.Fatalf("%s: %v stands twice", name, p)
		}
		seen[p] = true
		if i < inner {
			continue
		}
		lo, hi := d.NbrOffsets[i-inner], d.NbrOffsets[i-inner+1]
		if !slices.Equal(d.Nbrs[lo:hi], want[p]) {
			t.Fatalf("%s: of %v were drawn %v, want %v", name, p, d.Nbrs[lo:hi], want[p])
		}
		for e := lo; e < hi; e++ {
			if at := d.ReprMap[e]; d.NodeIDs[at] != d.Nbrs[e] || d.Times[at] != p.time {
				t.Fatalf("%s: neighbor %d of %v is node %d at %d", name, d.Nbrs[e], p,
					d.NodeIDs[at], d.Times[at])
			}
		}
	}
	if len(d.NodeIDs)-inner != len(want) {
		t.Fatalf("%s: %d nodes have lists, want %d", name, len(d.NodeIDs)-inner, len(want))
	}
}

var timedDraws = flag.Int("timed-draws", 1e5, "draws of which none may be later than its seed")

// No draw sees the future: of each entry that is drawn, the graph has one that is not later than
// the time of its seed. Each pair of nodes has one edge, so the entry tells its time.
func TestNoDrawIsLate(t *testing.T) {
	const nodes = 1 << 12
	r := rand.New(rand.NewPCG(9, 9))
	g, at := layouttest.Graph{Nodes: nodes, Timed: true}, map[[2]NodeID]int64{}
	for range 60 * nodes {
		e := layouttest.Edge{Src: NodeID(r.IntN(nodes)),
			Dst: NodeID(float64(nodes) * r.Float64() * r.Float64()), Time: int64(r.IntN(1 << 20))}
		if _, twice := at[[2]NodeID{e.Src, e.Dst}]; !twice {
			at[[2]NodeID{e.Src, e.Dst}] = e.Time
			g.Edges = append(g.Edges, e)
		}
	}
	times := make(timesOf, nodes)
	for v := range times {
		times[v] = int64(r.IntN(1 << 20))
	}
	all := make([]NodeID, nodes)
	for v := range all {
		all[v] = NodeID(v)
	}
	topo := openTimed(t, g, topology.Options{Resident: true}, 0)
	late, drawn := 0, 0
	for epoch := uint64(0); drawn < *timedDraws; epoch++ {
		for _, how := range []Draw{DrawUniform, DrawLatest} {
			s := mustSampler(t, Config{Fanout: []int{10, 10}, Seeding: times, Draw: how,
				Seed: epoch, Budget: mem.NewBudget(0)}, topo)
			order, err := EpochOrder(all, epoch, epoch, 512)
			if err != nil {
				t.Fatal(err)
			}
			var d Dense
			for b := range order.Batches() {
				if err := s.Sample(t.Context(), epoch, b, order.Seeds(b, nil), &d); err != nil {
					t.Fatal(err)
				}
				inner := d.NodeIDOffsets[1]
				for i := range d.NbrOffsets[1:] {
					v, time := d.NodeIDs[int(inner)+i], d.Times[int(inner)+i]
					for _, u := range d.Nbrs[d.NbrOffsets[i]:d.NbrOffsets[i+1]] {
						drawn++
						if at[[2]NodeID{u, v}] > time {
							late++
						}
					}
				}
			}
		}
	}
	t.Logf("%d draws, %d late", drawn, late)
	if late > 0 || drawn == 0 {
		t.Errorf("%d of %d draws are later than their seed", late, drawn)
	}
}
