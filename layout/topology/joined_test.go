package topology_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Readers by node hand out the lists of a typed store one after the other, with the relation of
// each as the type of its entries, in both directions, and so do scans.
func TestJoinedLists(t *testing.T) {
	g := layouttest.Shop(3, 300, 90, 12_000)
	g.Both = true
	s := layouttest.Build(t, vfs.NewMem(), "s", g)
	r := rand.New(rand.NewPCG(1, 2))
	for _, dir := range []layout.Direction{layout.In, layout.Out} {
		lists := g.Lists(dir)
		for _, opt := range readers {
			opt.Budget, opt.Weights, opt.Times = mem.NewBudget(0), true, true
			opt.Types = true
			topo, err := topology.Open(t.Context(), s, layouttest.Device(t), dir, opt)
			if err != nil {
				t.Fatal(err)
			}
			if topo.Nodes() != uint64(g.Nodes) {
				t.Fatalf("%d nodes, want %d", topo.Nodes(), g.Nodes)
			}
			nodes := []layout.NodeID{0, 299, 300, 300, 389, 390, 409}
			for range 100 {
				nodes = append(nodes, layout.NodeID(r.IntN(g.Nodes)))
			}
			ses := topo.NewSession()
			checkSession(t, ses, lists, nodes, r)
			checkLists(t, ses, &g, lists, nodes)
			checkPart(t, ses, &g, lists, r)
			checkJoinedColumns(t, ses, lists, nodes)
			ses.Release()
			got := rangeOf(t, topo, 100, 400)
			for v := 100; v < 400; v++ {
				if len(got[v]) != len(lists[v]) || len(got[v]) > 0 &&
					got[v][len(got[v])-1] != lists[v][len(got[v])-1].Nbr {
					t.Fatalf("range: %d entries of node %d, want %d", len(got[v]), v, len(lists[v]))
				}
			}
			if err := topo.Close(); err != nil || opt.Budget.Used() != 0 {
				t.Fatal(err, opt.Budget.Used())
			}
		}
		checkScan(t, s, dir, lists, listfile.Scan)
		checkScan(t, s, dir, lists, listfile.ScanTogether)
	}
}

// rangeOf reads the lists of a range of nodes.
func rangeOf(t *testing.T, topo topology.Reader, from, to layout.NodeID) [][]layout.NodeID {
	all := make([][]layout.NodeID, topo.Nodes())
	err := topology.EachInRange(t.Context(), topo, from, to,
		func(first layout.NodeID, _ bool, l *listfile.Lists) error {
			for i := range len(l.Off) - 1 {
				v := int(first) + i
				all[v] = append(all[v], l.Nbrs[l.Off[i]:l.Off[i+1]]...)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// checkJoinedColumns compares weights and times of whole lists, whose parts come in order.
func checkJoinedColumns(t *testing.T, ses topology.Session, lists [][]listfile.Edge,
	nodes []layout.NodeID) {
	t.Helper()
	deg := make([]uint32, len(nodes))
	if err := ses.Degrees(t.Context(), nodes, deg); err != nil {
		t.Fatal(err)
	}
	next := make([]uint32, len(nodes))
	err := ses.(topology.ColumnReader).Columns(t.Context(), topology.Columns{Weights: true,
		Times: true}, func(p topology.Part) error {
		for k, w := range p.Weights {
			e := lists[nodes[p.List]][next[p.List]]
			if p.From+uint32(k) != next[p.List] || e.Weight != w || e.Time != p.Times[k] {
				t.Fatalf("entry %d of node %d: weight %v, want %v", p.From+uint32(k),
					nodes[p.List], w, e.Weight)
			}
			next[p.List]++
		}
		return nil
	})
	if err != nil || !slices.Equal(next, deg) {
		t.Fatal(err, "columns of other lengths")
	}
}

// checkScan compares a scan of all lists: every node comes once, in order.
func checkScan(t *testing.T, s *layout.Store, dir layout.Direction, lists [][]listfile.Edge,
	scan func(context.Context, *layout.Store, blockdev.Device, layout.Direction,
		func(layout.NodeID, bool, *listfile.Lists) error) error) {
	t.Helper()
	next, at := 0, 0
	err := scan(t.Context(), s, layouttest.Device(t), dir,
		func(first layout.NodeID, cont bool, l *listfile.Lists) error {
			for i := range len(l.Off) - 1 {
				if !cont || i > 0 {
					next, at = next+1, 0
				}
				if int(first)+i != next-1 {
					t.Fatalf("node %d comes for node %d", int(first)+i, next-1)
				}
				for e := l.Off[i]; e < l.Off[i+1]; e++ {
					if want := lists[next-1][at]; l.Nbrs[e] != want.Nbr || l.Types[e] != want.Type {
						t.Fatalf("entry %d of node %d is another", at, next-1)
					}
					at++
				}
			}
			return nil
		})
	if err != nil || next != len(lists) {
		t.Fatal(err, next)
	}
}
