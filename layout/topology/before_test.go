package topology_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// earlier are the lists without entries whose time is not below limit.
func earlier(lists [][]listfile.Edge, limit int64) [][]listfile.Edge {
	left := make([][]listfile.Edge, len(lists))
	for v, l := range lists {
		for _, e := range l {
			if e.Time < limit {
				left[v] = append(left[v], e)
			}
		}
	}
	return left
}

// Before is the reader of a graph that has no later edges, whichever reader is beneath: entries of
// the very time are not there.
func TestBeforeIsTheGraphOfEarlierEdges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	rapid.Check(t, func(rt *rapid.T) {
		g := drawGraph(rt)
		g.Timed = true
		s := layouttest.Build(t, vfs.NewMem(), "s", g)
		all := g.Lists(layout.In)
		limit := int64(rapid.SampledFrom([]int{-100, -5, 0, 1, len(g.Edges) / 3, len(g.Edges) - 6,
			1 << 40}).Draw(rt, "limit"))
		left := earlier(all, limit)
		for _, opt := range readers {
			budget := mem.NewBudget(0)
			opt.Budget, opt.Weights, opt.Times = budget, g.Weighted, true
			opt.Types = len(g.EdgeTypes) > 0
			under, err := topology.Open(context.Background(), s, layouttest.Device(t), layout.In,
				opt)
			if err != nil {
				rt.Fatal(err)
			}
			topo := topology.Before(under, limit, budget)
			nodes := make([]layout.NodeID, r.IntN(2*g.Nodes)+1)
			for i := range nodes {
				nodes[i] = layout.NodeID(r.IntN(g.Nodes))
			}
			ses := topo.NewSession()
			checkSession(rt, ses, left, nodes, r)
			checkLists(rt, ses, &g, left, nodes[:min(len(nodes), 50)])
			checkColumns(rt, ses, &g, left, nodes, r)
			checkAttributes(rt, ses, &g, left, all, nodes, r)
			checkSession(rt, ses, left, nodes[:len(nodes)/2], r)
			ses.Release()
			twice := topology.Before(topology.Before(under, limit, budget), limit/2, budget)
			ses = twice.NewSession()
			checkSession(rt, ses, earlier(left, limit/2), nodes, r)
			checkColumns(rt, ses, &g, earlier(left, limit/2), nodes, r)
			ses.Release()
			if err := topo.Close(); err != nil {
				rt.Fatal(err)
			}
			if budget.Used() != 0 {
				rt.Fatalf("%d bytes are still counted", budget.Used())
			}
		}
	})
}

// Positions that begin late in a batch's arrays are found there, as those of a later hop are.
func TestBeforeGathersIntoTheMiddle(t *testing.T) {
	g := layouttest.Graph{Nodes: 40, Timed: true}
	for i := range 3000 {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(i * 7 % 40),
			Dst: layout.NodeID(i * 11 % 37), Time: int64(i * 13 % 3000)})
	}
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	left := earlier(g.Lists(layout.In), 1000)
	topo := topology.Before(mustTopology(t, s, layout.In, topology.Options{}), 1000, nil)
	ses, deg := topo.NewSession(), make([]uint32, 2)
	defer ses.Release()
	if err := ses.Degrees(t.Context(), []layout.NodeID{7, 3}, deg); err != nil {
		t.Fatal(err)
	}
	out := make([]layout.NodeID, 8)
	pos := []uint32{9e8, 9e8, 9e8, 2, 0, 1, deg[1] - 1}
	err := ses.Gather(t.Context(), []uint32{3, 5, 7}, pos, out)
	if err != nil || out[3] != left[7][2].Nbr || out[4] != left[7][0].Nbr ||
		out[5] != left[3][1].Nbr || out[6] != left[3][deg[1]-1].Nbr || out[0]|out[7] != 0 {
		t.Errorf("gathered %v: %v", out, err)
	}
}

func TestBeforeNeedsTimes(t *testing.T) {
	s := layouttest.Build(t, vfs.NewMem(), "s", layouttest.Random(1, 50, 100))
	ses := topology.Before(mustTopology(t, s, layout.In, topology.Options{}), 5, nil).NewSession()
	defer ses.Release()
	err := ses.Degrees(t.Context(), []layout.NodeID{1}, make([]uint32, 1))
	if !errors.Is(err, topology.ErrNoTimes) {
		t.Errorf("degrees: %v", err)
	}
	if _, err := ses.Lists(t.Context(), []layout.NodeID{1, 2, 3}); !errors.Is(err,
		topology.ErrNoTimes) {
		t.Errorf("lists: %v", err)
	}
}

// What a session takes grows with its frontier and with what is gathered, not with the lists: a
// hub's is not in memory, and only the blocks that hold what is gathered are read for it.
func TestBeforeMemory(t *testing.T) {
	const entries, asked = 1 << 20, 100
	g := layouttest.Graph{Nodes: 2, Timed: true}
	for i := range entries {
		g.Edges = append(g.Edges, layouttest.Edge{Src: 1, Dst: 0, Time: int64(i * 7 % 1000)})
	}
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	budget := mem.NewBudget(0)
	under := mustTopology(t, s, layout.In, topology.Options{CacheBytes: 1, Budget: budget})
	plain := budget.Used()
	ses, deg := topology.Before(under, 500, budget).NewSession(), make([]uint32, 2)
	if err := ses.Degrees(t.Context(), []layout.NodeID{0, 1}, deg); err != nil {
		t.Fatal(err)
	}
	if deg[0] < entries/2-1000 || deg[0] > entries/2+1000 || deg[1] != 0 {
		t.Fatalf("degrees %v", deg)
	}
	pos, out := make([]uint32, asked), make([]layout.NodeID, asked)
	for i := range pos {
		pos[i] = deg[0] - 1 - uint32(i)
	}
	read := under.Stats().BlocksRead
	if err := ses.Gather(t.Context(), []uint32{0, asked, asked}, pos, out); err != nil {
		t.Fatal(err)
	}
	// About 340 entries of the hub are in a block; one look finds them, and one takes them.
	if read = under.Stats().BlocksRead - read; read > 6 {
		t.Errorf("%d blocks were read for %d entries at the end of a hub", read, asked)
	}
	_, times := columnsOf(t, ses, topology.Columns{Times: true}, 2)
	if len(times[0]) != int(deg[0]) {
		t.Errorf("%d times of %d entries", len(times[0]), deg[0])
	}
	// 24 bytes for each block of the hub are the paged reader's, and its blocks beyond the cache.
	if held := budget.Used() - plain; held > (24+12)*entries/300*2+1<<20 || held < 12*asked {
		t.Errorf("%d bytes are held", held)
	}
	ses.Release()
	if budget.Used() != plain {
		t.Errorf("%d bytes are still counted", budget.Used()-plain)
	}
	small := topology.Before(under, 500, mem.NewBudget(8)).NewSession()
	defer small.Release()
	var full *mem.LimitError
	if err := small.Degrees(t.Context(), []layout.NodeID{0, 1}, deg); !errors.As(err, &full) {
		t.Errorf("over the budget: %v", err)
	}
}

// The least and the largest time are limits like any other.
func TestBeforeTheEndsOfTime(t *testing.T) {
	g := layouttest.Graph{Nodes: 1, Timed: true}
	for _, at := range []int64{math.MinInt64, 0, math.MaxInt64} {
		g.Edges = append(g.Edges, layouttest.Edge{Time: at})
	}
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	under := mustTopology(t, s, layout.In, topology.Options{})
	for limit, want := range map[int64]uint32{math.MinInt64: 0, math.MinInt64 + 1: 1, 0: 1, 1: 2,
		math.MaxInt64: 2} {
		ses, deg := topology.Before(under, limit, nil).NewSession(), make([]uint32, 1)
		err := ses.Degrees(t.Context(), []layout.NodeID{0}, deg)
		if err != nil || deg[0] != want {
			t.Errorf("before %d there are %d edges, want %d: %v", limit, deg[0], want, err)
		}
		ses.Release()
	}
}
