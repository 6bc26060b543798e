package history

import (
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/sample"
	"gdb/train/runs"
)

// computes is a backend that has computed some rows.
type computes struct {
	backend.Backend
	rows []float32
}

func (c *computes) Read(to []float32, _ backend.Tensor) { copy(to, c.rows) }

// TestLayers: the states of two layers are kept apart, and those of nodes outside memory come back
// to the hop from which the next layer reads: a hop later where the first layer reads one.
func TestLayers(t *testing.T) {
	for _, summed := range []bool{false, true} {
		h, err := New(Config{Nodes: 8, Widths: []int{1, 2}, Summed: summed, Threads: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := &sample.Batch{Epoch: 4} // the first layer computes 5, 3 and 1, the second 3 and 1
		b.Dense.NodeIDs = []sample.NodeID{6, 5, 3, 1}
		b.Dense.NodeIDOffsets = []uint32{0, 1, 2, 3, 4}
		if summed {
			b.Dense.NodeIDs = b.Dense.NodeIDs[1:]
			b.Dense.NodeIDOffsets = []uint32{0, 1, 2, 3}
		}
		be := &computes{}
		halo, err := h.Halo(be, b)
		if err != nil {
			t.Fatal(err)
		}
		for layer, rows := range [][]float32{{50, 30, 10}, {31, 32, 11, 12}} {
			be.rows = rows
			halo.Computed(layer, backend.Tensor{Rows: len(rows), Cols: 1})
		}
		h.InMemory(func(v sample.NodeID) bool { return v != 3 })
		b.Epoch = 5
		if halo, err = h.Halo(be, b); err != nil {
			t.Fatal(err)
		}
		checkLayers(t, h, halo, summed)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// checkLayers checks what is known of node 3.
func checkLayers(t *testing.T, h *History, halo *program.Halo, summed bool) {
	t.Helper()
	if len(halo.States) != 2 || !slices.Equal(halo.States[0], []float32{0, 30, 0}) ||
		!slices.Equal(halo.States[1], []float32{31, 32, 0, 0}) {
		t.Errorf("summed %v: the states are %v", summed, halo.States)
	}
	missing, inside := halo.Missing, halo.Inside
	if !summed { // the first layer reads features, and node 6 has no states
		if missing[0] != nil {
			t.Errorf("of the first hop %v are missing", missing[0])
		}
		missing, inside = missing[1:], inside[1:]
	}
	if len(missing) != 2 || slices.Contains(missing[0], true) ||
		slices.Contains(missing[1], true) || !slices.Equal(inside, []float32{1, 0, 1}) {
		t.Errorf("summed %v: missing are %v, inside are %v", summed, missing, inside)
	}
	if got, want := h.Used(), (runs.Stale{States: 2, Sum: 2, Most: 1}); got != want {
		t.Errorf("summed %v: used were %+v, want %+v", summed, got, want)
	}
}
