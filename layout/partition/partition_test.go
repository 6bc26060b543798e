package partition

import (
	"testing"

	"gdb/kv"

	"pgregory.net/rapid"
)

// TestPlace: each node has a place of its own, partitions are of one size, and Node inverts Place.
func TestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.Uint64Range(1, 3000).Draw(t, "nodes")
		spec := Spec{Nodes: nodes, Parts: rapid.IntRange(1, int(min(nodes, 40))).Draw(t, "parts"),
			Random: rapid.Bool().Draw(t, "random"), Seed: rapid.Uint64().Draw(t, "seed")}
		m, err := New(spec)
		if err != nil {
			t.Fatal(err)
		}
		sizes, last := make([]uint64, spec.Parts), -1
		for v := range nodes {
			part, row := m.Place(kv.NodeID(v))
			if part < 0 || part >= m.Parts() || row >= m.Size(part) ||
				m.Node(part, row) != kv.NodeID(v) {
				t.Fatalf("node %d is row %d of partition %d, where %d is", v, row, part,
					m.Node(part, row))
			}
			if !spec.Random && part < last {
				t.Fatalf("node %d is in partition %d, the one before in %d", v, part, last)
			}
			sizes[part]++
			last = part
		}
		for part, n := range sizes {
			if n != m.Size(part) || m.MaxSize()-n > 1 {
				t.Fatalf("partition %d has %d nodes, want %d of at most %d", part, n, m.Size(part),
					m.MaxSize())
			}
		}
	})
}

// TestAllNodes: the largest ids have places too.
func TestAllNodes(t *testing.T) {
	m, err := New(Spec{Nodes: 1 << 32, Parts: 1000, Random: true, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []kv.NodeID{0, 1 << 31, 1<<32 - 1} {
		if part, row := m.Place(v); m.Node(part, row) != v {
			t.Errorf("node %d is row %d of partition %d, where another is", v, row, part)
		}
	}
}

// TestRefused: partitions that cannot be.
func TestRefused(t *testing.T) {
	for _, s := range []Spec{{Nodes: 10}, {Nodes: 10, Parts: 11}, {Nodes: 1e6, Parts: Most + 1}} {
		if _, err := New(s); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}
