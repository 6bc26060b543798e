package graph_test

import (
	"errors"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/shell/graph"
)

// TestBitsBudget holds that sets which do not fit are an error that names them.
func TestBitsBudget(t *testing.T) {
	set := graph.NewBits(mem.NewBudget(100))
	defer set.Free()
	var full *mem.LimitError
	nodes := make([]layout.NodeID, 1000)
	for i := range nodes {
		nodes[i] = layout.NodeID(i * 3)
	}
	if err := set.Add(nodes); !errors.As(err, &full) {
		t.Errorf("1,000 nodes in 100 bytes: %v", err)
	}
}
