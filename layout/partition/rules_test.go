package partition

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestChoose: what is chosen fits in the memory, is an order that can be, and a buffer larger by a
// partition of each group would not fit.
func TestChoose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Facts{Nodes: rapid.Uint64Range(1000, 1e8).Draw(t, "nodes"),
			RowBytes: 4 * rapid.Int64Range(1, 500).Draw(t, "row"),
			Edges:    rapid.Uint64Range(1000, 1e10).Draw(t, "edges"),
			Memory:   rapid.Int64Range(1<<20, 1<<40).Draw(t, "memory"),
			Prefetch: rapid.Bool().Draw(t, "prefetch"), NodeTask: rapid.Bool().Draw(t, "nodes?"),
			EdgeBytes: 10, EdgeMemory: 20, BlockBytes: 64 << 10,
			EdgeSeconds: rapid.SampledFrom([]float64{0, 1e-7, 1e-5}).Draw(t, "seconds")}
		c, err := ChooseOrder(f)
		if err != nil {
			if !strings.Contains(err.Error(), "give more memory") {
				t.Fatal(err)
			}
			return
		}
		s := OrderSpec{Policy: TwoLevel, Parts: c.Parts, Capacity: c.Capacity, Logical: c.Logical}
		if f.NodeTask {
			s.Policy = Dispersed
		}
		if c.InMemory {
			s.Policy = InMemory
		}
		if _, err := NewOrder(s); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if c.Bytes > f.Memory || len(c.Lines) < 3 {
			t.Fatalf("%+v in %d bytes", c, f.Memory)
		}
		held := 2
		if f.NodeTask {
			held = 1
		} else if f.EdgeSeconds > 0 && !c.InMemory {
			held, _ = f.weigh(c.Parts)
			if held > 2 && f.moved(c.Parts, held) >= f.moved(c.Parts, 2) {
				t.Fatalf("%d logical partitions in the buffer move more than two", held)
			}
		}
		if larger := c.Capacity/held + 1; !c.InMemory && larger*held < c.Parts &&
			f.groupBytes(c.Parts, larger, held) <= f.Memory {
			t.Fatalf("%+v, and %d partitions would fit too", c, larger*held)
		}
	})
}

// TestChooseExample works a graph of the size of Freebase86m out: 86 million nodes, vectors of 100
// columns with Adagrad's state, 338 million edges, in 16 GiB.
func TestChooseExample(t *testing.T) {
	c, err := ChooseOrder(Facts{Nodes: 86_054_151, RowBytes: 800, Edges: 304_727_650, EdgeBytes: 10,
		EdgeMemory: 20, Memory: 16 << 30, BlockBytes: 64 << 10, Prefetch: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(strings.Join(c.Lines, "\n"))
	if c.Parts != 215 || c.InMemory || c.Capacity%2 != 0 || c.Logical < 3 {
		t.Errorf("%+v", c)
	}
}

// TestWeigh: the buffer holds two logical partitions where computing takes longer than to move
// them, and as many more as are needed for that otherwise; an epoch moves what was said.
func TestWeigh(t *testing.T) {
	for seconds, want := range map[float64]int{1e-5: 2, 2.2e-6: 3, 1e-7: heldMost} {
		f := Facts{Nodes: 1 << 24, RowBytes: 512, Edges: 32e6, EdgeBytes: 8, EdgeMemory: 20,
			Memory: 940 << 20, BlockBytes: 4096, Prefetch: true, EdgeSeconds: seconds}
		c, err := ChooseOrder(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(c.Lines[len(c.Lines)-1])
		o, err := NewOrder(OrderSpec{Policy: TwoLevel, Parts: c.Parts, Capacity: c.Capacity,
			Logical: c.Logical})
		if err != nil {
			t.Fatal(err)
		}
		part := int64(f.Nodes) * f.RowBytes / int64(c.Parts)
		moved := o.Epoch(0).Cost(func(int) int64 { return part },
			func(Bucket) int64 { return 0 }, true).ReadBytes
		said := f.moved(c.Parts, want)
		if o.hold != want || float64(moved) < .95*said || float64(moved) > 1.01*said {
			t.Errorf("%v s an edge: %d logical partitions in the buffer, want %d; %d bytes are "+
				"read, want %.0f", seconds, o.hold, want, moved, said)
		}
	}
	for n := 2; n < 40; n++ {
		for hold := 2; hold <= n; hold++ {
			if got, want := swaps(n, hold), len(beta(n, hold))-1; got != want {
				t.Errorf("%d of %d: %d swaps, want %d", hold, n, got, want)
			}
		}
	}
}
