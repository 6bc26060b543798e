package topology_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// windowGraph takes several windows of the least size. Nodes 0 to 4 have no neighbors, node 7 has
// a list of many blocks.
func windowGraph() layouttest.Graph {
	g := layouttest.Random(21, 30_000, 500_000)
	g.EdgeTypes, g.Weighted, g.Timed = []string{"a", "b", "c"}, true, true
	for i := range 20_000 {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(i), Dst: 7, Weight: 1})
	}
	g.Edges = slices.DeleteFunc(g.Edges, func(e layouttest.Edge) bool { return e.Dst < 5 })
	return g
}

// windowsOf opens windows of bytes bytes over a paged reader.
func windowsOf(t testing.TB, s *layout.Store, bytes int64, budget *mem.Budget) *topology.Windows {
	t.Helper()
	topo := mustTopology(t, s, layout.In, topology.Options{CacheBytes: 1 << 20, Budget: budget})
	w, ok, err := topology.NewWindows(topo, bytes)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// dealt gives each window its part of some ascending nodes.
func dealt(w *topology.Windows, nodes []layout.NodeID) func(window int) [][]layout.NodeID {
	all := make([][]layout.NodeID, w.Count())
	for i := range all {
		n, _ := slices.BinarySearch(nodes, w.After(i))
		all[i], nodes = nodes[:n:n], nodes[n:]
	}
	return func(window int) [][]layout.NodeID { return [][]layout.NodeID{nil, all[window]} }
}

const threeMiB = 3 << 20

// TestWindowsGiveLists checks that lists in windows equal the lists of the graph, for all nodes and
// for few, and that no block is read twice.
func TestWindowsGiveLists(t *testing.T) {
	g := windowGraph()
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	lists := g.Lists(layout.In)
	for _, every := range []int{1, 97, 4001} {
		w := windowsOf(t, s, threeMiB, nil)
		if w.Count() < 3 {
			t.Fatalf("%d windows", w.Count())
		}
		var nodes []layout.NodeID
		for v := 0; v < g.Nodes; v += every {
			nodes = append(nodes, layout.NodeID(v))
		}
		if every > 1 {
			nodes = slices.Insert(nodes, 1, 7)
		}
		of, r, seen := dealt(w, nodes), rand.New(rand.NewPCG(1, 3)), 0
		for range 2 { // passes
			ses := w.NewSession()
			err := w.Each(context.Background(), of, func(window int) error {
				part := of(window)[1]
				checkSession(t, ses, lists, part, r)
				checkLists(t, ses, &g, lists, part)
				seen += len(part)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			ses.Release()
		}
		st, size := w.Stats(), uint64(topologySize(s)/4096)
		if seen != 2*len(nodes) || st.BlocksRead > 2*size ||
			every == 4001 && st.BlocksRead > size/2 || every == 1 && st.BlocksRead < 2*size-8 {
			t.Errorf("every %d: %d of %d nodes, %d of %d blocks", every, seen, 2*len(nodes),
				st.BlocksRead, 2*size)
		}
	}
}

// topologySize is the size of the file of in-lists.
func topologySize(s *layout.Store) int64 {
	path, _ := layout.TopologyPaths(layout.In)
	for _, f := range s.Meta().Files {
		if f.Path == path {
			return f.Size
		}
	}
	return 0
}

// The memory of windows is what they say, and all of it is given back.
func TestWindowsAreCounted(t *testing.T) {
	g := windowGraph()
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	budget := mem.NewBudget(1 << 30)
	topo := mustTopology(t, s, layout.In, topology.Options{CacheBytes: 1 << 20, Budget: budget})
	before := budget.Used()
	w, ok, err := topology.NewWindows(topo, threeMiB)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if used := budget.Used() - before; used != w.Stats().Bytes || used > threeMiB {
		t.Errorf("%d bytes are used, %d said", used, w.Stats().Bytes)
	}
	if err := w.Close(); err != nil || budget.Used() != before {
		t.Errorf("%d bytes left: %v", budget.Used()-before, err)
	}
	small := mem.NewBudget(5 << 20)
	topo = mustTopology(t, s, layout.In, topology.Options{CacheBytes: 1 << 20, Budget: small})
	var full *mem.LimitError
	before = small.Used()
	if _, _, err := topology.NewWindows(topo, 8<<20); !errors.As(err, &full) {
		t.Errorf("windows larger than the budget: %v", err)
	}
	if small.Used() != before {
		t.Errorf("%d bytes left", small.Used()-before)
	}
}

// Where lists have no windows it is said.
func TestNoWindows(t *testing.T) {
	g := layouttest.Graph{Nodes: 700_000}
	for v := range 700_000 {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(v), Dst: 9,
			Weight: float32(v)})
	}
	g.Weighted = true
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	paged := topology.Options{CacheBytes: 1 << 20}
	for _, c := range []struct {
		opt   topology.Options
		bytes int64
	}{{topology.Options{Resident: true}, 64 << 20}, {paged, 5 << 19}, {paged, 1 << 20}} {
		topo := mustTopology(t, s, layout.In, c.opt)
		if w, ok, err := topology.NewWindows(topo, c.bytes); ok || err != nil {
			t.Errorf("%+v in %d bytes has %d windows, %v", c.opt, c.bytes, w.Count(), err)
		}
	}
	if w := windowsOf(t, s, 64<<20, nil); w.Count() != 1 {
		t.Errorf("%d windows", w.Count())
	}
}

// Damage, failed reads and errors of users end a pass, with the block where there is one.
func TestWindowErrors(t *testing.T) {
	g, dir := windowGraph(), t.TempDir()
	s := layouttest.Build(t, vfs.Default, dir, g)
	all := make([]layout.NodeID, g.Nodes)
	for v := range all {
		all[v] = layout.NodeID(v)
	}
	pass := func(ctx context.Context, w *topology.Windows, fn func(int) error) error {
		return w.Each(ctx, dealt(w, all), fn)
	}
	w := windowsOf(t, s, threeMiB, nil)
	mine := errors.New("mine")
	if err := pass(context.Background(), w, func(i int) error {
		if i == 1 {
			return mine
		}
		return nil
	}); !errors.Is(err, mine) {
		t.Errorf("error of a user: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := pass(ctx, w, func(int) error { cancel(); return nil }); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// Not in the first window.
	path, _ := layout.TopologyPaths(layout.In)
	const block = 500
	layouttest.Flip(t, vfs.Default, s.Path(path), listfile.BlockOffset(block, 4096)+77, 4)
	seen := 0
	err := pass(context.Background(), w, func(int) error { seen++; return nil })
	var bad *layout.CorruptionError
	if !errors.As(err, &bad) || bad.Block != block || seen == 0 {
		t.Errorf("after %d windows: %v", seen, err)
	}
	ses := w.NewSession()
	defer ses.Release()
	few := dealt(w, []layout.NodeID{11})
	if err := w.Each(context.Background(), few, func(int) error {
		return ses.Degrees(context.Background(), []layout.NodeID{g.Edges[0].Dst, 20_000},
			make([]uint32, 2))
	}); !errors.Is(err, listfile.ErrBlock) {
		t.Errorf("a node whose list was not asked for: %v", err)
	}
}
