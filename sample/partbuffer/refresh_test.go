package partbuffer

import (
	"slices"
	"testing"

	"gdb/sample"
)

// TestRefreshed: the first two epochs compute all states, and of any four epochs that follow each
// has about a fourth, ascending, so that each state is computed once.
func TestRefreshed(t *testing.T) {
	c := &Config{}
	if got := c.refreshed(0); got != nil {
		t.Errorf("without macro-batches %d nodes", len(got))
	}
	c.Macro = &Macro{}
	for v := range sample.NodeID(4000) {
		c.Macro.Refresh = append(c.Macro.Refresh, 3*v)
	}
	for epoch := range uint64(2) {
		if got := c.refreshed(epoch); !slices.Equal(got, c.Macro.Refresh) {
			t.Errorf("epoch %d has %d nodes", epoch, len(got))
		}
	}
	for _, first := range []uint64{2, 7} {
		var all []sample.NodeID
		for epoch := first; epoch < first+4; epoch++ {
			got := c.refreshed(epoch)
			if len(got) < 800 || len(got) > 1200 || !slices.IsSorted(got) {
				t.Errorf("epoch %d has %d nodes", epoch, len(got))
			}
			all = append(all, got...)
		}
		slices.Sort(all)
		if !slices.Equal(all, c.Macro.Refresh) {
			t.Errorf("four epochs from %d on have %d nodes", first, len(all))
		}
	}
}
