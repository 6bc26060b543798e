package sample

import (
	"fmt"
	"slices"
	"testing"
)

func mustOrder(t testing.TB, train []NodeID, seed, epoch uint64, size int) *Order {
	t.Helper()
	o, err := EpochOrder(train, seed, epoch, size)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// someNodes are n distinct ids.
func someNodes(n int) []NodeID {
	out := make([]NodeID, n)
	for i := range out {
		out[i] = NodeID(3*i + 1)
	}
	return out
}

func TestEpochOrder(t *testing.T) {
	for _, c := range []struct{ nodes, size, batches, last int }{
		{1, 1, 1, 1}, {1, 10, 1, 1}, {10, 10, 1, 10}, {10, 3, 4, 1}, {12, 3, 4, 3},
		{1000, 7, 143, 6}, {1000, 1, 1000, 1}, {5, 1000, 1, 5},
	} {
		t.Run(fmt.Sprintf("nodes=%d/size=%d", c.nodes, c.size), func(t *testing.T) {
			train := someNodes(c.nodes)
			o := mustOrder(t, train, 5, 2, c.size)
			if o.Batches() != uint64(c.batches) {
				t.Fatalf("%d batches, want %d", o.Batches(), c.batches)
			}
			var all []NodeID
			for i := range o.Batches() {
				b := o.Seeds(i, nil)
				want := c.size
				if i == o.Batches()-1 {
					want = c.last
				}
				if len(b) != want {
					t.Fatalf("batch %d has %d seeds, want %d", i, len(b), want)
				}
				all = append(all, b...)
			}
			shuffled := slices.Clone(all)
			slices.Sort(all)
			if !slices.Equal(all, train) {
				t.Error("the batches together are not the training nodes, each once")
			}
			if c.nodes > 100 && slices.Equal(shuffled, train) {
				t.Error("not shuffled")
			}
			// Any batch alone, from another value of the same order.
			last := mustOrder(t, train, 5, 2, c.size).Seeds(o.Batches()-1, nil)
			if !slices.Equal(last, shuffled[len(shuffled)-c.last:]) {
				t.Error("the last batch alone is another one")
			}
			for _, other := range []*Order{mustOrder(t, train, 5, 3, c.size),
				mustOrder(t, train, 6, 2, c.size)} {
				if c.nodes > 100 && slices.Equal(other.Seeds(1, nil), o.Seeds(1, nil)) {
					t.Error("seed or epoch do not change the order")
				}
			}
		})
	}
	if _, err := EpochOrder(nil, 1, 1, 10); err == nil {
		t.Error("an epoch without nodes is taken")
	}
	if _, err := EpochOrder(someNodes(3), 1, 1, 0); err == nil {
		t.Error("batches of no seeds are taken")
	}
}

// TestOrderSplit: parts of a batch are its seeds in their order, equally many but for one.
func TestOrderSplit(t *testing.T) {
	whole := mustOrder(t, someNodes(101), 5, 2, 10)
	for _, parts := range []int{1, 2, 3, 4} {
		split := whole.Split(parts)
		if split.Batches() != whole.Batches()*uint64(parts) {
			t.Fatalf("%d batches in %d parts are %d", whole.Batches(), parts, split.Batches())
		}
		for i := range whole.Batches() {
			want, got := whole.Seeds(i, nil), []NodeID(nil)
			for p := range uint64(parts) {
				before := len(got)
				got = split.Seeds(i*uint64(parts)+p, got)
				if n := len(got) - before; n < len(want)/parts || n > len(want)/parts+1 {
					t.Errorf("batch %d of %d seeds: part %d of %d has %d", i, len(want), p, parts,
						n)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("batch %d in %d parts has the seeds %v, not %v", i, parts, got, want)
			}
		}
	}
}

// TestInParts: batches of sizes of their own have the seeds in their order, split too, and sizes
// that are not those of the seeds are errors.
func TestInParts(t *testing.T) {
	nodes := []NodeID{9, 8, 7, 6, 5, 4}
	o, err := InParts(nodes, 3, []uint32{1, 3, 2})
	if err != nil || o.Batches() != 3 || o.Epoch() != 3 {
		t.Fatal(o, err)
	}
	for i, want := range [][]NodeID{{9}, {8, 7, 6}, {5, 4}} {
		if got := o.Seeds(uint64(i), nil); !slices.Equal(got, want) {
			t.Errorf("batch %d is %v, want %v", i, got, want)
		}
	}
	s := o.Split(2)
	for i, want := range [][]NodeID{{}, {9}, {8}, {7, 6}, {5}, {4}} {
		if got := s.Seeds(uint64(i), nil); s.Batches() != 6 || !slices.Equal(got, want) {
			t.Errorf("half %d of %d is %v, want %v", i, s.Batches(), got, want)
		}
	}
	for _, sizes := range [][]uint32{{1, 2}, {6, 1}, {6, 0}, {}} {
		if _, err := InParts(nodes, 0, sizes); err == nil {
			t.Errorf("batches of %v of 6 seeds", sizes)
		}
	}
}
