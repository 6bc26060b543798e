package partitioner

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/listfile"
)

// TestCoarsen: clusters have no more nodes than they may, and the graph of them has the edges
// between them, as a map of pairs counts them; twice, so that clusters are clustered.
func TestCoarsen(t *testing.T) {
	lists, labels := communities(3, 600, 9, 12)
	for _, most := range []int{1, 1000} {
		g := graphOf(lists, labels, 2, most)
		opt := &Options{Parts: 2, Budget: mem.NewBudget(1 << 30)}
		for round := range 2 {
			lv, err := coarsen(t.Context(), g, opt)
			if err != nil || lv == nil {
				t.Fatalf("round %d: %v, %v", round, lv, err)
			}
			if full := 600 / 2 / uint32(clustersOfPart); slices.Max(lv.g.sizes) > full {
				t.Errorf("a cluster of %d nodes, at most %d", slices.Max(lv.g.sizes), full)
			}
			want := map[[2]uint32]uint32{}
			pairs(t, g, func(v, u kv.NodeID, n uint32) {
				if a, b := lv.of[v], lv.of[u]; a != b {
					want[[2]uint32{a, b}] += n
				}
			})
			pairs(t, &lv.g, func(v, u kv.NodeID, n uint32) {
				if key := [2]uint32{uint32(v), uint32(u)}; want[key] != n {
					t.Errorf("%v: %d edges, want %d", key, n, want[key])
				} else {
					delete(want, key)
				}
			})
			sum := uint32(0)
			for _, n := range lv.g.sizes {
				sum += n
			}
			if len(want) > 0 || sum != 600 || lv.g.all() != 600 {
				t.Errorf("%d pairs are missing; clusters of %d nodes", len(want), sum)
			}
			g = &lv.g
		}
	}
}

// pairs calls fn with all entries of the lists of a graph, and what each stands for.
func pairs(t *testing.T, g *Graph, fn func(v, u kv.NodeID, n uint32)) {
	t.Helper()
	err := g.Scan(t.Context(), func(first kv.NodeID, _ bool, l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			for k := l.Off[i]; k < l.Off[i+1]; k++ {
				fn(first+kv.NodeID(i), l.Nbrs[k], g.weight(l, k))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestClustered: with clusters fewer edges are cut, partitions are as balanced, and all memory is
// given back.
func TestClustered(t *testing.T) {
	lists, labels := communities(5, 4000, 100, 8)
	for _, method := range Methods {
		g := graphOf(lists, labels, 2, 1000)
		cut := func(cluster bool) float64 {
			budget := mem.NewBudget(1 << 30)
			p, r, err := Measure(t.Context(), g, Options{Method: method, Parts: 8, Passes: 2,
				Cluster: cluster, Budget: budget})
			if err != nil {
				t.Fatal(err)
			}
			if r.Nodes > 1.06 || method == GAP && r.Labels > 1.06 {
				t.Errorf("%s: %+v", method, r)
			}
			if err := p.Close(); err != nil || budget.Used() > 0 {
				t.Errorf("%v, %d bytes stay counted", err, budget.Used())
			}
			return r.Cut
		}
		if with, without := cut(true), cut(false); with >= without {
			t.Errorf("%s: %g of edges are cut with clusters, %g without", method, with, without)
		}
	}
	g := graphOf(lists, labels, 2, 1000)
	if _, err := Deal(t.Context(), g, Options{Method: Range, Parts: 2, Passes: 1, Cluster: true,
		Budget: mem.NewBudget(1 << 30)}); !errors.Is(err, ErrOptions) {
		t.Errorf("clusters of ranges: %v", err)
	}
	var limit *mem.LimitError
	if _, err := Deal(context.Background(), g, Options{Method: LDG, Parts: 2, Passes: 1,
		Cluster: true, Budget: mem.NewBudget(90 << 10)}); !errors.As(err, &limit) {
		t.Errorf("little memory: %v", err)
	}
}
