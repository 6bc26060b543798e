package topology_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// asOf are the entries of a list that count at a time, in the order of time.
func asOf(list []listfile.Edge, at, window int64) (left []listfile.Edge) {
	for _, e := range list {
		if e.Time == kv.NoTime || e.Time <= at && (window == 0 || e.Time > at-window) {
			left = append(left, e)
		}
	}
	slices.SortStableFunc(left, func(a, b listfile.Edge) int { return cmp.Compare(a.Time, b.Time) })
	return left
}

// A list as of a time has the entries that are not later, whichever reader is beneath, and another
// time for each place of a frontier, the same node's too.
func TestAsOfIsTheListOfThatTime(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	rapid.Check(t, func(rt *rapid.T) {
		g := drawGraph(rt)
		g.Timed = true
		for i := range g.Edges {
			if i%7 == 0 {
				g.Edges[i].Time = kv.NoTime
			}
		}
		s := layouttest.Build(t, vfs.NewMem(), "s", g)
		all := g.Lists(layout.In)
		window := int64(rapid.SampledFrom([]int{0, 1, 10, 1000}).Draw(rt, "window"))
		for _, opt := range readers {
			budget := mem.NewBudget(0)
			opt.Budget, opt.Times = budget, true
			under, err := topology.Open(context.Background(), s, layouttest.Device(t), layout.In,
				opt)
			if err != nil {
				rt.Fatal(err)
			}
			topo := topology.AsOf(under, window, budget)
			ses := topo.NewSession().(topology.TimedSession)
			checkSession(rt, ses, all, []layout.NodeID{0, layout.NodeID(g.Nodes - 1)}, r)
			for range 2 {
				nodes := make([]layout.NodeID, r.IntN(2*g.Nodes)+1)
				times, left := make([]int64, len(nodes)), make([][]listfile.Edge, len(nodes))
				for i := range nodes {
					nodes[i] = layout.NodeID(r.IntN(g.Nodes))
					times[i] = int64(r.IntN(len(g.Edges)+20) - 10)
					left[i] = asOf(all[nodes[i]], times[i], window)
				}
				ses.AsOf(times)
				checkPlaces(rt, ses, all, nodes, left)
			}
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

// checkPlaces reads the list at each place of a frontier whole, last entry first, and where its
// entries are in whole lists.
func checkPlaces(rt *rapid.T, ses topology.Session, whole [][]listfile.Edge, nodes []layout.NodeID,
	want [][]listfile.Edge) {
	deg := make([]uint32, len(nodes))
	if err := ses.Degrees(context.Background(), nodes, deg); err != nil {
		rt.Fatal(err)
	}
	off, pos := []uint32{0}, []uint32(nil)
	for i, d := range deg {
		if int(d) != len(want[i]) {
			rt.Fatalf("place %d, node %d: %d entries, want %d", i, nodes[i], d, len(want[i]))
		}
		for p := range d {
			pos = append(pos, d-1-p)
		}
		off = append(off, uint32(len(pos)))
	}
	out := make([]layout.NodeID, len(pos))
	if err := ses.Gather(context.Background(), off, pos, out); err != nil {
		rt.Fatal(err)
	}
	at := make([]uint32, len(pos))
	err := ses.(topology.AttributeReader).GatherAttributes(context.Background(), off, pos,
		topology.Attributes{Places: at})
	if err != nil {
		rt.Fatal(err)
	}
	for i, l := range want {
		for k, e := range l {
			if p := at[off[i+1]-1-uint32(k)]; whole[nodes[i]][p] != e {
				rt.Fatalf("place %d, node %d, entry %d is at %d", i, nodes[i], k, p)
			}
			if got := out[off[i+1]-1-uint32(k)]; got != e.Nbr {
				rt.Fatalf("place %d, node %d, entry %d: %d, want %d", i, nodes[i], k, got, e.Nbr)
			}
		}
	}
}
