package topology_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

func mustTopology(t testing.TB, s *layout.Store, dir layout.Direction,
	opt topology.Options) topology.Reader {
	t.Helper()
	topo, err := topology.Open(context.Background(), s, layouttest.Device(t), dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := topo.Close(); err != nil {
			t.Error(err)
		}
	})
	return topo
}

// readers are the ways to read a topology whose answers must be equal.
var readers = []topology.Options{
	{Resident: true},
	{Resident: true, Form: topology.Packed},
	{Resident: true, Form: topology.Compact},
	{CacheBytes: 1},         // one block
	{CacheBytes: 5 * 4096},  // five blocks of 4 KiB, still one of 64 KiB
	{CacheBytes: 64 * 4096}, // enough for small graphs
	{CacheBytes: 1 << 24},
	{CacheBytes: 5 * 4096, NeighborBytes: 64 << 10},
	{CacheBytes: 5 * 4096, NeighborBytes: 64 << 10, NeighborsRaw: true},
	{CacheBytes: 1, NeighborBytes: 1 << 20},
}

// fatal is what testing.TB and rapid.T have in common.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkSession compares answers for a frontier with the lists in memory.
func checkSession(t fatal, s topology.Session, lists [][]listfile.Edge, nodes []layout.NodeID,
	r *rand.Rand) {
	t.Helper()
	ctx := context.Background()
	deg := make([]uint32, len(nodes))
	if err := s.Degrees(ctx, nodes, deg); err != nil {
		t.Fatalf("degrees: %v", err)
	}
	off, pos, want := []uint32{0}, []uint32{}, []layout.NodeID{}
	for i, v := range nodes {
		if int(deg[i]) != len(lists[v]) {
			t.Fatalf("degree of node %d is %d, want %d", v, deg[i], len(lists[v]))
		}
		for range min(len(lists[v]), 1+r.IntN(12)) {
			p := r.IntN(len(lists[v]))
			pos = append(pos, uint32(p))
			want = append(want, lists[v][p].Nbr)
		}
		off = append(off, uint32(len(pos)))
	}
	for range 2 { // Gather may be called again
		got := make([]layout.NodeID, len(pos))
		if err := s.Gather(ctx, off, pos, got); err != nil {
			t.Fatalf("gather: %v", err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("gather of %d entries differs", len(want))
		}
	}
}

// checkLists compares whole lists with those in memory.
func checkLists(t fatal, s topology.Session, g *layouttest.Graph, lists [][]listfile.Edge,
	nodes []layout.NodeID) {
	t.Helper()
	l, err := s.Lists(context.Background(), nodes)
	if err != nil {
		t.Fatalf("lists: %v", err)
	}
	for i, v := range nodes {
		checkList(t, g, l, i, lists[v])
	}
}

// checkPart compares a part of the longest list, and of another one.
func checkPart(t fatal, s topology.Session, g *layouttest.Graph, lists [][]listfile.Edge,
	r *rand.Rand) {
	t.Helper()
	p, ok := s.(topology.PartReader)
	if !ok {
		return
	}
	longest := 0
	for v := range lists {
		if len(lists[v]) > len(lists[longest]) {
			longest = v
		}
	}
	for _, v := range []int{longest, r.IntN(len(lists))} {
		from := r.IntN(len(lists[v]) + 1)
		to := from + r.IntN(len(lists[v])-from+1)
		l, err := p.ListPart(context.Background(), layout.NodeID(v), uint32(from), uint32(to))
		if err != nil {
			t.Fatalf("entries %d to %d of list %d: %v", from, to, v, err)
		}
		checkList(t, g, l, 0, lists[v][from:to])
		if _, err := p.ListPart(context.Background(), layout.NodeID(v), uint32(from),
			uint32(len(lists[v])+1)); err == nil {
			t.Fatalf("entry %d of list %d is there", len(lists[v]), v)
		}
	}
}

func checkList(t fatal, g *layouttest.Graph, l *listfile.Lists, i int, want []listfile.Edge) {
	t.Helper()
	from, to := l.Off[i], l.Off[i+1]
	if int(to-from) != len(want) {
		t.Fatalf("list %d has %d entries, want %d", i, to-from, len(want))
	}
	if (l.Types != nil) != (len(g.EdgeTypes) > 0) && to > from {
		t.Fatalf("list %d: types are there: %v", i, l.Types != nil)
	}
	for j, e := range want {
		k := from + uint64(j)
		if l.Nbrs[k] != e.Nbr || len(g.EdgeTypes) > 0 && l.Types[k] != e.Type ||
			g.Weighted && l.Weights[k] != e.Weight || g.Timed && l.Times[k] != e.Time {
			t.Fatalf("list %d entry %d differs from %+v", i, j, e)
		}
	}
}

// drawGraph draws a graph with hubs, gaps and any attributes.
func drawGraph(t *rapid.T) layouttest.Graph {
	nodes := rapid.SampledFrom([]int{1, 2, 50, 700, 9000}).Draw(t, "nodes")
	edges := rapid.SampledFrom([]int{0, 1, 40, 1500, 12000}).Draw(t, "edges")
	g := layouttest.Random(rapid.Uint64().Draw(t, "seed"), nodes, edges)
	g.NoCatalog = true
	g.BlockBytes = rapid.SampledFrom([]int{4096, 8192, 65536, 512 << 10}).Draw(t, "block")
	if rapid.Bool().Draw(t, "types") {
		g.EdgeTypes = []string{"a", "b", "c"}
	}
	g.Weighted = rapid.Bool().Draw(t, "weights")
	g.Timed = rapid.Bool().Draw(t, "times")
	// Lists that end exactly where a block does, and a little to either side.
	if full := 1015 + rapid.IntRange(-3, 3).Draw(t, "full"); rapid.Bool().Draw(t, "exact") {
		for i := range full {
			g.Edges = append(g.Edges, layouttest.Edge{Dst: layout.NodeID(nodes - 1),
				Src: layout.NodeID(i % nodes)})
		}
	}
	return g
}

func TestReadersAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	rapid.Check(t, func(rt *rapid.T) {
		g := drawGraph(rt)
		dir := layout.Direction(rapid.IntRange(0, 1).Draw(rt, "direction"))
		g.Both = dir == layout.Out
		s := layouttest.Build(t, vfs.NewMem(), "s", g)
		lists := g.Lists(dir)
		for _, opt := range readers {
			budget := mem.NewBudget(0)
			opt.Budget, opt.Weights, opt.Times = budget, g.Weighted, g.Timed
			opt.Types = len(g.EdgeTypes) > 0
			topo, err := topology.Open(context.Background(), s, layouttest.Device(t), dir, opt)
			if err != nil {
				rt.Fatal(err)
			}
			for range 3 {
				nodes := make([]layout.NodeID, r.IntN(2*g.Nodes)+1)
				for i := range nodes {
					nodes[i] = layout.NodeID(r.IntN(g.Nodes))
				}
				ses := topo.NewSession()
				checkSession(rt, ses, lists, nodes, r)
				checkLists(rt, ses, &g, lists, nodes[:min(len(nodes), 50)])
				if g.Weighted || g.Timed {
					checkColumns(rt, ses, &g, lists, nodes, r)
				}
				checkAttributes(rt, ses, &g, lists, lists, nodes, r)
				checkSession(rt, ses, lists, nodes[:len(nodes)/2], r)
				checkPart(rt, ses, &g, lists, r)
				ses.Release()
			}
			if err := topo.Close(); err != nil {
				rt.Fatal(err)
			}
			if budget.Used() != 0 {
				rt.Fatalf("%d bytes are still counted", budget.Used())
			}
		}
	})
}

func TestScanGivesEveryList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := drawGraph(rt)
		s := layouttest.Build(t, vfs.NewMem(), "s", g)
		lists, next := g.Lists(layout.In), 0
		rest := []listfile.Edge{} // of the list that goes on
		err := listfile.Scan(context.Background(), s, layouttest.Device(t), layout.In,
			func(first layout.NodeID, cont bool, l *listfile.Lists) error {
				for i := range len(l.Off) - 1 {
					if i > 0 || !cont {
						if len(rest) > 0 || int(first)+i != next {
							return fmt.Errorf("node %d comes, want %d; %d entries left",
								int(first)+i, next, len(rest))
						}
						rest = lists[next]
						next++
					}
					n := int(l.Off[i+1] - l.Off[i])
					checkList(rt, &g, l, i, rest[:min(n, len(rest))])
					rest = rest[n:]
				}
				return nil
			})
		if err != nil {
			rt.Fatal(err)
		}
		if next != g.Nodes || len(rest) > 0 {
			rt.Fatalf("scan ended at node %d of %d", next, g.Nodes)
		}
	})
}

// TestEachInRange: the lists of a range come whole and in order, from memory and from the file.
func TestEachInRange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := drawGraph(rt)
		s := layouttest.Build(t, vfs.NewMem(), "s", g)
		lists := g.Lists(layout.In)
		for _, opt := range []topology.Options{{}, {Resident: true, Form: topology.Plain}} {
			topo := mustTopology(t, s, layout.In, opt)
			from := rapid.IntRange(0, g.Nodes).Draw(rt, "from")
			to := rapid.IntRange(from, g.Nodes).Draw(rt, "to")
			got, last := make([][]layout.NodeID, g.Nodes), -1
			err := topology.EachInRange(t.Context(), topo, layout.NodeID(from), layout.NodeID(to),
				func(first layout.NodeID, cont bool, l *listfile.Lists) error {
					for i := range len(l.Off) - 1 {
						v := int(first) + i
						if v < from || v >= to || v < last || v == last && (i > 0 || !cont) {
							return fmt.Errorf("node %d comes after %d", v, last)
						}
						last = v
						got[v] = append(got[v], l.Nbrs[l.Off[i]:l.Off[i+1]]...)
					}
					return nil
				})
			if err != nil {
				rt.Fatal(err)
			}
			for v := range got {
				var want []layout.NodeID
				if v >= from && v < to {
					for _, e := range lists[v] {
						want = append(want, e.Nbr)
					}
				}
				if !slices.Equal(got[v], want) {
					rt.Fatalf("nodes %d to %d: list of %d is %v, want %v", from, to, v, got[v],
						want)
				}
			}
		}
	})
}

func TestConcurrentSessions(t *testing.T) {
	g := layouttest.Random(3, 5000, 60000)
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	lists := g.Lists(layout.In)
	topo := mustTopology(t, s, layout.In, topology.Options{CacheBytes: 12 * 4096})
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 9))
			ses := topo.NewSession()
			defer ses.Release()
			for range 30 {
				nodes := make([]layout.NodeID, r.IntN(300)+1)
				for i := range nodes {
					nodes[i] = layout.NodeID(r.IntN(g.Nodes))
				}
				checkSession(noFatal{t}, ses, lists, nodes, r)
			}
		})
	}
	wg.Wait()
	st := topo.Stats()
	if st.Kind != "paged" || st.Hits == 0 || st.Misses == 0 || st.BlocksRead != st.Misses ||
		st.BytesRead != st.BlocksRead*4096 {
		t.Errorf("stats are %+v", st)
	}
}

// noFatal reports from goroutines, where FailNow may not be called.
type noFatal struct{ testing.TB }

func (t noFatal) Fatalf(format string, args ...any) { t.TB.Errorf(format, args...) }

// TestHubReads holds the promise that k positions of a hub cost at most k block reads and the one
// for its degree.
func TestHubReads(t *testing.T) {
	g := layouttest.Graph{Nodes: 1 << 17}
	for i := range 100_000 {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(i), Dst: 77})
	}
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	topo := mustTopology(t, s, layout.In, topology.Options{CacheBytes: 1 << 20})
	ses := topo.NewSession()
	defer ses.Release()
	checkSession(t, ses, g.Lists(layout.In), []layout.NodeID{77}, rand.New(rand.NewPCG(1, 1)))
	if st := topo.Stats(); st.BlocksRead > 13 {
		t.Errorf("%d blocks were read for a degree and at most 12 positions", st.BlocksRead)
	}
}

// TestEmptyRuns holds the promise that nodes without neighbors are cheap.
func TestEmptyRuns(t *testing.T) {
	g := layouttest.Graph{Nodes: 3_000_000, Edges: []layouttest.Edge{{Src: 1, Dst: 5},
		{Src: 2, Dst: 2_999_000}}}
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	if size := s.Meta().Files[0].Size; size > 3*4096 {
		t.Errorf("two edges among 3 M nodes take %d bytes", size)
	}
	topo := mustTopology(t, s, layout.In, topology.Options{})
	ses := topo.NewSession()
	defer ses.Release()
	checkSession(t, ses, g.Lists(layout.In), []layout.NodeID{0, 5, 6, 2_000_000, 2_999_000,
		2_999_999}, rand.New(rand.NewPCG(1, 1)))
}

func TestNodeOutOfRange(t *testing.T) {
	s := layouttest.Build(t, vfs.NewMem(), "s", layouttest.Random(1, 10, 20))
	for _, opt := range readers {
		ses := mustTopology(t, s, layout.In, opt).NewSession()
		if err := ses.Degrees(context.Background(), []layout.NodeID{3, 10},
			make([]uint32, 2)); err == nil {
			t.Errorf("%+v: no error for a node that is not there", opt)
		}
		if _, err := ses.Lists(context.Background(), []layout.NodeID{1 << 31}); err == nil {
			t.Errorf("%+v: no error for lists of a node that is not there", opt)
		}
		ses.Release()
	}
}

func TestTopologyWriterRefuses(t *testing.T) {
	type add struct {
		node, nbr layout.NodeID
	}
	for _, c := range []struct {
		name string
		adds []add
	}{
		{"node too large", []add{{10, 0}}},
		{"neighbor too large", []add{{1, 10}}},
		{"nodes descend", []add{{2, 0}, {1, 0}}},
		{"neighbors descend", []add{{2, 3}, {2, 2}}},
	} {
		w, err := listfile.NewWriter(vfs.NewMem(), "x", listfile.Spec{Nodes: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range c.adds {
			err = w.AddEdge(a.node, listfile.Edge{Nbr: a.nbr})
		}
		if err == nil {
			t.Errorf("%s: no error", c.name)
		}
		if err := w.Abort(); err != nil {
			t.Error(err)
		}
	}
	for _, size := range []int{1024, 5000, 2 << 20} {
		if _, err := listfile.NewWriter(vfs.NewMem(), "x",
			listfile.Spec{BlockBytes: size}); err == nil {
			t.Errorf("block size %d was accepted", size)
		}
	}
}
