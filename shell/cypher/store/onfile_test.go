package store

import (
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/shell/cypher/adjacency"
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/engine"
	"gdb/shell/exec"
	"gdb/shell/graph"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestReadSome compares lists that are read with the edges: of nodes that are near one another,
// whose lists are read with all between them, and of others.
func TestReadSome(t *testing.T) {
	random := layouttest.Random(21, 20_000, 120_000)
	random.Both = true
	for v := range layout.NodeID(3000) { // one list is longer than a block
		random.Edges = append(random.Edges, layouttest.Edge{Src: 9, Dst: v})
	}
	st := layouttest.Build(t, vfs.NewMem(), "s", random)
	want := make([][]uint32, 20_000)
	for _, e := range random.Edges {
		want[e.Src] = append(want[e.Src], uint32(e.Dst))
	}
	for v := range want {
		slices.Sort(want[v])
	}
	budget := mem.NewBudget(64 << 20)
	g := graph.New(st, layouttest.Device(t), budget)
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	held := mem.NewAccount(budget, "lists")
	defer held.Release()
	s := newSource(newStore(t.Context(), &exec.Execution{Graph: g}, nil), &held)
	for _, step := range []int{1, 2, 3, 5, 19} {
		var nodes []uint32
		for v := step; v < 20_000; v += step {
			nodes = append(nodes, uint32(v))
		}
		if dense := step < denseShare; s.dense(nodes) != dense || s.dense(nodes[:denseLeast-1]) {
			t.Errorf("every %d. node is dense: %v", step, !dense)
		}
		var got adjacency.Lists
		if err := s.Read(t.Context(), engine.Want{Dir: ast.Out}, nodes, &got, 32<<20); err != nil {
			t.Fatal(err)
		}
		for _, v := range nodes {
			lo, hi := got.Of(v)
			if !slices.Equal(got.Nbr[lo:hi], want[v]) {
				t.Fatalf("every %d., node %d: %v, want %v", step, v, got.Nbr[lo:hi], want[v])
			}
		}
	}
}
