package topology_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

const neighborsFile = "s/prep/neighbors-in.lists"

// readFrontier reads a frontier of all nodes and returns what the reader did for it.
func readFrontier(t *testing.T, s *layout.Store, g *layouttest.Graph,
	opt topology.Options) topology.Stats {
	t.Helper()
	topo, err := topology.Open(context.Background(), s, layouttest.Device(t), layout.In, opt)
	if err != nil {
		t.Fatal(err)
	}
	nodes := make([]layout.NodeID, g.Nodes)
	for i := range nodes {
		nodes[i] = layout.NodeID(i)
	}
	ses := topo.NewSession()
	checkSession(t, ses, g.Lists(layout.In), nodes, rand.New(rand.NewPCG(1, 2)))
	ses.Release()
	st := topo.Stats()
	if err := topo.Close(); err != nil {
		t.Fatal(err)
	}
	return st
}

// A cache that is large enough holds every list, empty ones and hubs too, and no block is read.
func TestNeighborCacheHoldsAll(t *testing.T) {
	g := layouttest.Random(11, 20000, 100000)
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	for _, raw := range []bool{false, true} {
		st := readFrontier(t, s, &g, topology.Options{CacheBytes: 1, NeighborBytes: 1 << 20,
			NeighborsRaw: raw})
		n := st.Neighbors
		if st.BlocksRead != 0 || n.Requests != uint64(g.Nodes) || n.Hits != n.Requests ||
			n.Lists != uint64(g.Nodes) || n.Entries != uint64(len(g.Edges)) || !n.Made {
			t.Errorf("raw %v: %+v", raw, st)
		}
		if r := n.Ratio(); raw == (r > 1) {
			t.Errorf("raw %v: lists are %.2f times smaller", raw, r)
		}
	}
}

// Compressed, the same bytes hold more lists, and more of what is asked for.
func TestNeighborCacheCompressed(t *testing.T) {
	g := layouttest.Random(12, 20000, 300000)
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	opt := topology.Options{CacheBytes: 1 << 20, NeighborBytes: 256 << 10}
	small := readFrontier(t, s, &g, opt).Neighbors
	opt.NeighborsRaw = true
	raw := readFrontier(t, s, &g, opt).Neighbors
	if small.Entries < raw.Entries*5/4 || small.Hits <= raw.Hits || raw.Hits == 0 ||
		small.Bytes > opt.NeighborBytes || raw.Bytes > opt.NeighborBytes {
		t.Errorf("compressed %+v, raw %+v", small, raw)
	}
}

// A second reader takes what the first one made; damage, or another size, makes it anew.
func TestNeighborCacheIsKept(t *testing.T) {
	fs := vfs.NewMem()
	g := layouttest.Random(13, 9000, 60000)
	s := layouttest.Build(t, fs, "s", g)
	opt := topology.Options{CacheBytes: 1 << 16, NeighborBytes: 100 << 10}
	first := readFrontier(t, s, &g, opt).Neighbors
	again := readFrontier(t, s, &g, opt).Neighbors
	if !first.Made || first.Note != "" || again.Made || again.Hits != first.Hits ||
		again.Entries != first.Entries || again.ListBytes != first.ListBytes {
		t.Fatalf("first %+v, then %+v", first, again)
	}
	size := mustSize(t, fs, neighborsFile)
	for _, at := range []int64{0, 5, 40, 4096, 4200, size / 2, size - 1} {
		layouttest.Flip(t, fs, neighborsFile, at, 4)
		if n := readFrontier(t, s, &g, opt).Neighbors; !n.Made || n.Hits != first.Hits ||
			!strings.Contains(n.Note, "neighbors-in.lists") {
			t.Errorf("byte %d damaged: %+v", at, n)
		}
		if n := readFrontier(t, s, &g, opt).Neighbors; n.Made || n.Note != "" {
			t.Errorf("after byte %d was damaged: %+v", at, n)
		}
	}
	for _, other := range []topology.Options{
		{CacheBytes: 1 << 16, NeighborBytes: 80 << 10},
		{CacheBytes: 1 << 16, NeighborBytes: 80 << 10, NeighborsRaw: true}} {
		if n := readFrontier(t, s, &g, other).Neighbors; !n.Made || n.Note != "" {
			t.Errorf("another size: %+v", n)
		}
	}
}

// A file that is shorter than it says is damaged too.
func TestNeighborCacheCutShort(t *testing.T) {
	fs := vfs.NewMem()
	g := layouttest.Random(14, 3000, 20000)
	s := layouttest.Build(t, fs, "s", g)
	opt := topology.Options{CacheBytes: 1 << 16, NeighborBytes: 100 << 10}
	readFrontier(t, s, &g, opt)
	b := layouttest.ReadFile(t, fs, neighborsFile)
	for _, n := range []int{0, 100, 4096, len(b) - 4096} {
		layouttest.WriteFile(t, fs, neighborsFile, b[:n])
		if st := readFrontier(t, s, &g, opt).Neighbors; !st.Made || st.Note == "" {
			t.Errorf("%d of %d bytes: %+v", n, len(b), st)
		}
	}
}

// A store that cannot be written to is read all the same, and the reader says why it will be slow
// to open again.
func TestNeighborCacheNotKept(t *testing.T) {
	g := layouttest.Random(15, 3000, 20000)
	base := vfs.NewMem()
	s := layouttest.Build(t, base, "s", g)
	failing := errorfs.Wrap(base, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".tmp") {
			return errors.New("the disk is full")
		}
		return nil
	}))
	ro := layout.NewStore(failing, "s", s.Meta())
	for range 2 {
		n := readFrontier(t, ro, &g, topology.Options{CacheBytes: 1 << 16,
			NeighborBytes: 100 << 10}).Neighbors
		if !n.Made || !strings.Contains(n.Note, "the disk is full") || n.Hits == 0 {
			t.Errorf("%+v", n)
		}
	}
}

// savedPerByte is the rule of the choice, plainly, for lists that are kept raw.
func savedPerByte(t *testing.T, s *layout.Store, lists [][]listfile.Edge) []float64 {
	t.Helper()
	ix, err := listfile.LoadIndex(t.Context(), s, layouttest.Device(t), layout.In, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := ix.Free(); err != nil {
			t.Error(err)
		}
	}()
	score, total := make([]float64, len(lists)), 0.0
	for _, l := range lists {
		for _, e := range l {
			score[e.Nbr] += min(1, 10/float64(len(l)))
		}
		total += min(10, float64(len(l)))
	}
	shared := max(math.Exp(-50_000/float64(ix.Blocks)), 1.0/64)
	for v, l := range lists {
		saved := shared
		last := listfile.Upper(ix.Keys, listfile.Key(layout.NodeID(v), 1<<32-1)) - 1
		switch n := ix.Run(layout.NodeID(v), last); {
		case n >= 8:
			saved = 10
		case n >= 4:
			saved = 5
		case n >= 2:
			saved = 3
		}
		score[v] = (1 - math.Exp(-score[v]*50_000/total)) * saved / float64(4*len(l)+10)
	}
	return score
}

// What is chosen saves more blocks a byte than what is not, but for the width of a bucket; scored
// range by range it is the same.
func TestNeighborCacheChoice(t *testing.T) {
	const nodes = 150_000
	g := layouttest.Random(16, nodes, 400_000)
	g.NoCatalog = true
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	lists := g.Lists(layout.In)
	score := savedPerByte(t, s, lists)
	opt := topology.Options{CacheBytes: 1 << 18, NeighborBytes: 300 << 10, NeighborsRaw: true}
	all := hits(t, s, nodes, opt)
	least, most := 1e9, 0.0
	for v, hit := range all {
		if hit {
			least = min(least, score[v])
		} else {
			most = max(most, score[v])
		}
	}
	if least < 0.9*most || least == 1e9 {
		t.Errorf("chosen with %g blocks a byte, not chosen with %g", least, most)
	}
	s = layouttest.Build(t, vfs.NewMem(), "s", g) // without the cache that was kept
	opt.Budget = mem.NewBudget(2 << 20)
	for v, hit := range hits(t, s, nodes, opt) {
		if hit != all[v] {
			t.Fatalf("range by range node %d is in the cache: %v", v, hit)
		}
	}
	if opt.Budget.Used() != 0 {
		t.Errorf("%d bytes are still counted", opt.Budget.Used())
	}
}

// hits says which nodes are in the neighbor cache.
func hits(t *testing.T, s *layout.Store, nodes int, opt topology.Options) []bool {
	t.Helper()
	topo, err := topology.Open(context.Background(), s, layouttest.Device(t), layout.In, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := topo.Close(); err != nil {
			t.Error(err)
		}
	}()
	ses, out, before := topo.NewSession(), make([]bool, nodes), uint64(0)
	defer ses.Release()
	for v := range out {
		err := ses.Degrees(context.Background(), []layout.NodeID{layout.NodeID(v)},
			make([]uint32, 1))
		if err != nil {
			t.Fatal(err)
		}
		now := topo.Stats().Neighbors.Hits
		out[v], before = now > before, now
	}
	return out
}

func mustSize(t *testing.T, fs vfs.FS, path string) int64 {
	return int64(len(layouttest.ReadFile(t, fs, path)))
}
