package parts

import (
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// plainDeal is Algorithm 1 as it is written, with sets of the whole in-neighborhoods: the parts of
// the training nodes, and the nodes of each part.
func plainDeal(lists [][]listfile.Edge, train []layout.NodeID, k, hops int) (
	owner map[layout.NodeID]int, nodes []map[layout.NodeID]bool) {
	owner = map[layout.NodeID]int{}
	own := make([]int, k)
	for range k {
		nodes = append(nodes, map[layout.NodeID]bool{})
	}
	share := float64(len(train)) / float64(k)
	most := (len(train) + k - 1) / k
	for _, v := range train {
		in := map[layout.NodeID]bool{v: true}
		level := []layout.NodeID{v}
		for range hops {
			var next []layout.NodeID
			for _, u := range level {
				for _, e := range lists[u] {
					if !in[e.Nbr] {
						in[e.Nbr] = true
						next = append(next, e.Nbr)
					}
				}
			}
			level = next
		}
		best, bestScore := -1, 0.0
		for i := range k {
			common := 0
			for u := range in {
				if part, ok := owner[u]; ok && part == i {
					common++
				}
			}
			score := float64(common) * (share - float64(own[i])) /
				float64(max(1, len(nodes[i])))
			if own[i] < most && (best < 0 || score > bestScore ||
				score == bestScore && len(nodes[i]) < len(nodes[best])) {
				best, bestScore = i, score
			}
		}
		owner[v] = best
		own[best]++
		for u := range in {
			nodes[best][u] = true
		}
	}
	return owner, nodes
}

// TestDealIsAlgorithm1: the dealer and its plain twin agree, and parts are as large as predicted.
func TestDealIsAlgorithm1(t *testing.T) {
	g := graph(400, 900, "dense")
	fs := vfs.NewMem()
	s := layouttest.Build(t, fs, "whole", g)
	const k, hops = 3, 2
	train := g.Splits["train"]
	want, nodes := plainDeal(g.Lists(layout.In), train, k, hops)

	r, err := topology.Open(t.Context(), s, layouttest.Device(t), layout.In, topology.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	ses := r.NewSession()
	defer ses.Release()
	d, err := newDealer(ses, uint64(g.Nodes), uint64(len(train)), &Options{Parts: k, Hops: hops},
		mem.NewBudget(0))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.free() }()
	set, err := s.Split(t.Context(), "train")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.deal(t.Context(), set, func(uint64) {}); err != nil {
		t.Fatal(err)
	}
	for _, v := range train {
		if int(d.owner[v]) != want[v]+1 {
			t.Fatalf("node %d is of part %d, want %d", v, d.owner[v], want[v]+1)
		}
	}
	report, err := Write(t.Context(), s, layouttest.Device(t), fs, Options{Parts: k, Hops: hops,
		Out: "out", Memory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range report.Parts {
		if int(p.Nodes) != len(nodes[i]) || d.size[i] != p.Nodes {
			t.Errorf("part %d has %d nodes, predicted %d and %d", i, p.Nodes, len(nodes[i]),
				d.size[i])
		}
	}
}

// TestLookIsBounded: around a hub the neighbors that are looked at are spread over its list.
func TestLookIsBounded(t *testing.T) {
	const nodes = 5 * lookMost
	g := layouttest.Graph{Nodes: nodes}
	for u := 1; u < nodes; u++ {
		g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID(u)})
	}
	s := layouttest.Build(t, vfs.NewMem(), "hub", g)
	r, err := topology.Open(t.Context(), s, layouttest.Device(t), layout.In, topology.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	ses := r.NewSession()
	defer ses.Release()
	d, err := newDealer(ses, nodes, 1, &Options{Parts: 1, Hops: 3}, mem.NewBudget(0))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.free() }()
	if err := d.look(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if n := len(d.near); n > lookMost || n < lookMost*3/4 || slices.Max(d.near) < nodes*9/10 {
		t.Errorf("%d neighbors up to %d", n, slices.Max(d.near))
	}
}

// TestDrawIsSpread: of neighbors that are too many, every so-manieth of all lists together is read,
// and no more than was asked for, be the lists long or of one neighbor.
func TestDrawIsSpread(t *testing.T) {
	g := layouttest.Graph{Nodes: 500}
	for v := range 500 {
		for i := range []int{1, 1, 1, 0, 2, 7}[v%6] {
			g.Edges = append(g.Edges, layouttest.Edge{Src: layout.NodeID((v + i*31) % 500),
				Dst: layout.NodeID(v)})
		}
	}
	s := layouttest.Build(t, vfs.NewMem(), "short", g)
	r, err := topology.Open(t.Context(), s, layouttest.Device(t), layout.In, topology.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	d := &dealer{ses: r.NewSession()}
	defer d.ses.Release()
	var nodes, all []layout.NodeID
	lists := g.Lists(layout.In)
	for v := range layout.NodeID(500) {
		nodes = append(nodes, v)
		for _, e := range lists[v] {
			all = append(all, e.Nbr)
		}
	}
	for _, most := range []int{1, 40, 333, len(all), 2 * len(all)} {
		if err := d.draw(t.Context(), nodes, most); err != nil {
			t.Fatal(err)
		}
		var want []layout.NodeID
		for i := 0; i < len(all); i += (len(all) + most - 1) / most {
			want = append(want, all[i])
		}
		if !slices.Equal(d.found, want) || len(d.found) > most {
			t.Errorf("%d of %d neighbors at most: found %d, want %d: %v, want %v", most, len(all),
				len(d.found), len(want), d.found, want)
		}
	}
}
