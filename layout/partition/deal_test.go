package partition

import (
	"fmt"
	"slices"
	"testing"

	"gdb/kv"

	"pgregory.net/rapid"
)

// drawDeal draws how nodes are dealt out.
func drawDeal(t *rapid.T) *Deal {
	s := DealSpec{Nodes: rapid.Uint64Range(1, 400).Draw(t, "nodes"),
		Seed: rapid.Uint64().Draw(t, "seed")}
	if rapid.Bool().Draw(t, "ranges") {
		s.Bounds = []kv.NodeID{0}
		for v := kv.NodeID(1); uint64(v) < s.Nodes; v++ {
			if rapid.IntRange(0, 20).Draw(t, "ends") == 0 {
				s.Bounds = append(s.Bounds, v)
			}
		}
		s.Bounds = append(s.Bounds, kv.NodeID(s.Nodes))
		d, err := NewDeal(s)
		if err != nil {
			t.Fatal(s, err)
		}
		return d
	}
	s.Piece = rapid.Uint64Range(1, 1+s.Nodes/8).Draw(t, "piece")
	s.Parts = rapid.IntRange(1, int((s.Nodes+s.Piece-1)/s.Piece)).Draw(t, "parts")
	if rapid.Bool().Draw(t, "first") {
		for v := range s.Nodes {
			if rapid.IntRange(0, 3).Draw(t, "is first") == 0 {
				s.First = append(s.First, kv.NodeID(v))
			}
		}
	}
	d, err := NewDeal(s)
	if err != nil {
		t.Fatal(s, err)
	}
	return d
}

// TestDeal: each node is in one partition, that which Part says; nodes come in their order; those
// that are first fill the first partitions; and sizes are right.
func TestDeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDeal(t)
		seen := make([]int, d.spec.Nodes)
		most := uint64(0)
		for p := range d.Parts() {
			in := make([]bool, d.Parts())
			in[p] = true
			var nodes []kv.NodeID
			d.EachNode(in, func(_ int, v kv.NodeID) {
				nodes = append(nodes, v)
				seen[v]++
				if d.Part(v) != p {
					t.Fatalf("node %d is in partition %d, Part says %d", v, p, d.Part(v))
				}
			})
			if !slices.IsSorted(nodes) || uint64(len(nodes)) != d.Size(p) {
				t.Fatalf("partition %d of %d nodes: %v", p, d.Size(p), nodes)
			}
			most = max(most, d.Size(p))
		}
		for v, n := range seen {
			if n != 1 {
				t.Fatalf("node %d is in %d partitions", v, n)
			}
		}
		if d.Most(1) != most || d.Most(d.Parts()) != d.spec.Nodes {
			t.Fatalf("at most %d and %d nodes, want %d and %d", d.Most(1), d.Most(d.Parts()), most,
				d.spec.Nodes)
		}
		for _, v := range d.spec.First {
			if p := d.Part(v); p >= TrainParts(d.spec.Nodes, d.Parts(), len(d.spec.First)) {
				t.Fatalf("node %d, one of the first, is in partition %d", v, p)
			}
		}
	})
}

// TestRangesRefused: bounds that do not ascend from 0 to the number of nodes.
func TestRangesRefused(t *testing.T) {
	for _, bounds := range [][]kv.NodeID{{}, {0}, {1, 9}, {0, 8}, {0, 5, 5, 9}, {0, 6, 5, 9},
		{0, 9, 9}} {
		if _, err := NewDeal(DealSpec{Nodes: 9, Bounds: bounds}); err == nil {
			t.Errorf("%v is taken", bounds)
		}
	}
}

// TestDealIsEven holds that partitions of pieces have about equally many nodes.
func TestDealIsEven(t *testing.T) {
	var train []kv.NodeID
	for v := kv.NodeID(3); v < 100_000; v += 40 {
		train = append(train, v)
	}
	for _, first := range [][]kv.NodeID{nil, train} {
		d, err := NewDeal(DealSpec{Nodes: 100_000, Parts: 16, Piece: 7, Seed: 5, First: first})
		if err != nil {
			t.Fatal(err)
		}
		for p := range 16 {
			if n := d.Size(p); n < 5900 || n > 6600 {
				if p > 0 || first == nil { // the train nodes do not fill the first one
					t.Errorf("partition %d has %d nodes of 100000 in 16 partitions", p, n)
				}
			}
		}
	}
	if _, err := NewDeal(DealSpec{Nodes: 10, Parts: 11, Piece: 1}); err == nil {
		t.Error("more partitions than nodes were dealt to")
	}
}

// ExampleTrainParts tells how many partitions 1,000 training nodes fill.
func ExampleTrainParts() {
	fmt.Println(TrainParts(10_000, 16, 1_000))
	// Output: 2
}
