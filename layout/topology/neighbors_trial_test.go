package topology_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/neighborcache"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// playHops reads frontiers with one session: all entries of lists no longer than draws, else the
// first draws of a random order. It returns what the hops from number from on took.
func playHops(t *testing.T, s *layout.Store, hops []neighborcache.Frontier, opt topology.Options,
	from int) (r neighborcache.Counts) {
	t.Helper()
	topo, err := topology.Open(context.Background(), s, layouttest.Device(t), layout.In, opt)
	if err != nil {
		t.Fatal(err)
	}
	ses, rnd := topo.NewSession(), rand.New(rand.NewPCG(5, 6))
	var before topology.Stats
	for h, hop := range hops {
		if h == from {
			before = topo.Stats()
		}
		deg := make([]uint32, len(hop.Nodes))
		if err := ses.Degrees(t.Context(), hop.Nodes, deg); err != nil {
			t.Fatal(err)
		}
		off, pos := []uint32{0}, []uint32(nil)
		for _, d := range deg {
			drawn := rnd.Perm(int(d))[:min(int(d), hop.Draws)]
			slices.Sort(drawn)
			for _, x := range drawn {
				pos = append(pos, uint32(x))
			}
			off = append(off, uint32(len(pos)))
		}
		if err := ses.Gather(t.Context(), off, pos, make([]layout.NodeID, len(pos))); err != nil {
			t.Fatal(err)
		}
	}
	ses.Release()
	st := topo.Stats()
	if err := topo.Close(); err != nil {
		t.Fatal(err)
	}
	return neighborcache.Counts{Lists: st.Neighbors.Requests - before.Neighbors.Requests,
		Hits:  st.Neighbors.Hits - before.Neighbors.Hits,
		Reads: st.BlocksRead - before.BlocksRead}
}

// TestListTrial: what a trial says is what a session does with the caches, but for the bucket of
// scores that is only held in part, and for the entries that are drawn of hubs.
func TestListTrial(t *testing.T) {
	const nodes = 30_000
	g := layouttest.Random(17, nodes, 300_000)
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 60_000 { // hubs, and nodes that many lists have
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(rnd.IntN(1 + rnd.IntN(nodes))),
			Dst: layout.NodeID(rnd.IntN(8) * 1000)})
	}
	g.NoCatalog = true
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	var hops []neighborcache.Frontier
	for h := range 24 {
		hop := neighborcache.Frontier{Draws: 5 + h%2*5}
		for range 200 + h%2*1500 {
			hop.Nodes = append(hop.Nodes, layout.NodeID(rnd.IntN(1+rnd.IntN(nodes))))
		}
		slices.Sort(hop.Nodes)
		hop.Nodes = slices.Compact(hop.Nodes)
		hops = append(hops, hop)
	}
	for _, limit := range []int64{0, 2 << 20} { // 2 MiB: range by range
		budget := mem.NewBudget(limit)
		trial, err := neighborcache.NewTrial(t.Context(), s, layouttest.Device(t), layout.In, hops,
			budget)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []neighborcache.Caches{
			{Blocks: 64 << 10}, {Blocks: 512 << 10}, {Blocks: 4 << 20},
			{Blocks: 256 << 10, Neighbors: 64 << 10}, {Blocks: 256 << 10, Neighbors: 256 << 10},
			{Blocks: 4096, Neighbors: 512 << 10}, {Blocks: 4096, Neighbors: 4 << 20}} {
			c.Sessions = 1
			got, err := trial.Reads(c, 6)
			if err != nil {
				t.Fatal(err)
			}
			want := playHops(t, s, hops, topology.Options{CacheBytes: c.Blocks,
				NeighborBytes: c.Neighbors}, 6)
			if !about(got.Hits, want.Hits) || !about(got.Reads, want.Reads) {
				t.Errorf("%+v: tried %+v, read %+v", c, got, want)
			}
			if c.Neighbors > 0 && got.Lists != want.Lists {
				t.Errorf("%+v: tried %+v, read %+v", c, got, want)
			}
		}
		trial.Close()
		if budget.Used() != 0 {
			t.Errorf("%d bytes are still counted", budget.Used())
		}
	}
	if _, err := neighborcache.NewTrial(t.Context(), s, layouttest.Device(t), layout.In,
		[]neighborcache.Frontier{{Nodes: []layout.NodeID{nodes}}}, nil); err == nil {
		t.Error("a node past the last is tried")
	}
}

// about says that two counts differ by 3 % and 5 at most.
func about(a, b uint64) bool { return max(a, b) <= min(a, b)*103/100+5 }

func TestNeighborsKept(t *testing.T) {
	g := layouttest.Random(18, 3000, 20000)
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	opt := topology.Options{CacheBytes: 1 << 16, NeighborBytes: 100 << 10}
	kept := func(bytes int64) bool {
		t.Helper()
		ok, err := neighborcache.Kept(t.Context(), s, layouttest.Device(t), layout.In, bytes)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if kept(100 << 10) {
		t.Error("one is kept before it is made")
	}
	readFrontier(t, s, &g, opt)
	if !kept(100<<10) || kept(80<<10) {
		t.Error("the one that was made is not kept, or another one is")
	}
}

func TestNeighborScans(t *testing.T) {
	g := layouttest.Random(19, 150_000, 1000)
	g.NoCatalog = true
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	if made, tried := neighborcache.Scans(s, 1<<20); made != 2 || tried != 1 {
		t.Errorf("with room for all nodes: %d and %d scans", made, tried)
	}
	if made, tried := neighborcache.Scans(s, 0); made != 7 || tried != 3 {
		t.Errorf("in ranges of 65536 nodes: %d and %d scans", made, tried)
	}
}
