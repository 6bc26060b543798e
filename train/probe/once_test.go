package probe

import (
	"slices"
	"testing"

	"gdb/sample"
)

// TestOnce: rows are asked of a cache once a batch, though a batch as of times has a node several
// times, and its own nodes stay as they are.
func TestOnce(t *testing.T) {
	nodes := []sample.NodeID{7, 2, 7, 7, 0, 2}
	if got := once(nodes); !slices.Equal(got, []sample.NodeID{0, 2, 7}) || nodes[0] != 7 {
		t.Errorf("%v of %v", got, nodes)
	}
}
