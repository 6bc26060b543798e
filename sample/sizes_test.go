package sample

import (
	"testing"

	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample/sampletest"
)

// TestBatchSize: what is planned for a batch and for a sampler's scratch is what they take, with
// the quarter that lists have to spare, or hardly more.
func TestBatchSize(t *testing.T) {
	graph := sampletest.RMAT(12, 60000, 3)
	seeds := make([]NodeID, 300)
	for i := range seeds {
		seeds[i] = NodeID(7 * i)
	}
	for _, fanout := range [][]int{{5}, {10, 10}, {20, 10, 5}} {
		s, err := NewSampler([]topology.Reader{graph}, Config{Fanout: fanout, Seed: 1,
			Budget: mem.NewBudget(0)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var b Batch
		if err := s.Sample(t.Context(), 0, 0, seeds, &b.Dense); err != nil {
			t.Fatal(err)
		}
		size := BatchSize{Nodes: int64(len(b.Dense.NodeIDs)), Edges: int64(len(b.Dense.Nbrs)),
			Inner: int64(b.Dense.Inner())}
		for what, c := range map[string]struct{ planned, taken int64 }{
			"scratch": {size.ScratchBytes(0), s.held.Bytes()},
			"lists":   {size.ListBytes(), b.HeapBytes()},
		} {
			const ends = 64 // of offsets
			most := c.planned * GrowthSixteenths / 16
			if c.taken > most+ends || c.taken < most/2 {
				t.Errorf("fanout %v: %s of %d bytes, planned were %d", fanout, what, c.taken, most)
			}
		}
	}
}
