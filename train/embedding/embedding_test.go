package embedding

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/sample"
	"gdb/train/runs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func mustNew(t *testing.T, c Config, budget *mem.Budget) *Table {
	t.Helper()
	x, err := New(c, budget)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// TestInit: a vector is a function of the seed and its node, whatever the other nodes and the
// threads.
func TestInit(t *testing.T) {
	few := mustNew(t, Config{Nodes: 10, Dim: 5, Threads: 1}, nil)
	many := mustNew(t, Config{Nodes: 3000, Dim: 5, Threads: 4}, nil)
	few.Init(3)
	many.Init(3)
	if !slices.Equal(few.Rows(), many.Rows()[:50]) {
		t.Error("vectors depend on other nodes or on threads")
	}
	mean, square := 0.0, 0.0
	for _, v := range many.Rows() {
		mean += float64(v) / 15000
		square += float64(v) * float64(v) / 3000
	}
	if mean > 1e-3 || mean < -1e-3 || square < 0.95*initLength*initLength ||
		square > 1.05*initLength*initLength {
		t.Errorf("mean %g, squared length %g", mean, square)
	}
	few.Init(4)
	if slices.Equal(few.Rows(), many.Rows()[:50]) {
		t.Error("another seed gives the same vectors")
	}
}

// TestMemory: what a table takes is what Bytes and InputBytes say, and all of it is given back.
func TestMemory(t *testing.T) {
	for _, c := range []Config{{Nodes: 1000, Dim: 300, Training: true, State: []string{"a", "b"}},
		{Nodes: 1000, Dim: 300, Features: 4}} {
		budget := mem.NewBudget(0)
		x := mustNew(t, c, budget)
		if budget.Used() != c.Bytes() {
			t.Errorf("%d bytes are counted, %d planned", budget.Used(), c.Bytes())
		}
		nodes := make([]sample.NodeID, 1000)
		if _, err := x.Input(nodes, make([]float32, 1000*c.Features)); err != nil {
			t.Fatal(err)
		}
		if got := budget.Used() - c.Bytes(); got > c.InputBytes(1000) {
			t.Errorf("an input of %d bytes, planned %d", got, c.InputBytes(1000))
		}
		if err := x.Trim(); err != nil || budget.Used() != c.Bytes() {
			t.Errorf("%d bytes after trim, %v", budget.Used(), err)
		}
		if err := x.Close(); err != nil || budget.Used() != 0 {
			t.Errorf("%d bytes after close, %v", budget.Used(), err)
		}
	}
	small := mem.NewBudget(1 << 20)
	if _, err := New(Config{Nodes: 1000, Dim: 200, Training: true}, small); err == nil ||
		small.Used() != 0 {
		t.Errorf("error %v, %d bytes are held", err, small.Used())
	}
}

// TestSteps: a step changes the rows of its nodes and their moments; the best vectors stay.
func TestSteps(t *testing.T) {
	c := Config{Nodes: 4, Dim: 2, Features: 1, Training: true, State: []string{"m", "v"}}
	x := mustNew(t, c, nil)
	copy(x.Rows(), []float32{0, 1, 2, 3, 4, 5, 6, 7})
	x.KeepBest()
	in, err := x.Input([]sample.NodeID{3, 1}, []float32{10, 20})
	if err != nil || !slices.Equal(in, []float32{10, 6, 7, 20, 2, 3}) {
		t.Fatalf("input %v, %v", in, err)
	}
	copy(in, []float32{9, 1, -1, 9, 1, 1}) // the gradient
	x.Adam(backend.AdamStep{Step: 1, Rate: 0.5, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8})
	want := []float32{0, 1, 1.5, 2.5, 4, 5, 5.5, 7.5}
	for i, v := range x.Rows() {
		if d := v - want[i]; d > 1e-5 || d < -1e-5 {
			t.Fatalf("vectors %v, want %v", x.Rows(), want)
		}
	}
	for i, m := range x.state[0].values {
		if moved := i/2 == 1 || i/2 == 3; moved != (m != 0) {
			t.Fatalf("moments %v", x.state[0].values)
		}
	}
	x.SwapBest()
	if x.Rows()[2] != 2 || x.best.values[2] == 2 {
		t.Errorf("best %v, last %v", x.Rows(), x.best.values)
	}
	x.Reset()
	if slices.Max(x.state[0].values) != 0 || slices.Max(x.state[1].values) != 0 {
		t.Error("moments are left")
	}
}

// TestRepeats: the gradients of a node that a batch has several times are added up.
func TestRepeats(t *testing.T) {
	c := Config{Nodes: 4, Dim: 1, Features: 1, Training: true, Repeats: true}
	x := mustNew(t, c, mem.NewBudget(0))
	be, err := backend.OpenCPU(backend.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	nodes := []sample.NodeID{2, 0, 2, 3, 0, 2}
	if _, err := x.Input(nodes, make([]float32, 6)); err != nil {
		t.Fatal(err)
	}
	copy(x.Rows(), []float32{10, 20, 30, 40})
	if err := be.Begin(); err != nil {
		t.Fatal(err)
	}
	err = x.TakeGradient(be, be.Host([]float32{9, 1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 6}, 6, 2))
	x.SGD(1)
	if err != nil || !slices.Equal(x.Rows(), []float32{3, 20, 20, 36}) {
		t.Errorf("vectors %v, %v", x.Rows(), err)
	}
}

func FuzzDecodeHeader(f *testing.F) {
	h := fileHeader{nodes: 5, dim: 3, steps: 9, names: []string{"embeddings", "m"},
		sums: []uint32{1, 2}}
	f.Add(h.encode([16]byte{1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeHeader(b, [16]byte{1})
		if err != nil {
			return
		}
		again, err := decodeHeader(h.encode([16]byte{1}), [16]byte{1})
		if err != nil || again.nodes != h.nodes || again.dim != h.dim ||
			!slices.Equal(again.names, h.names) || !slices.Equal(again.sums, h.sums) {
			t.Fatalf("%+v became %+v, %v", h, again, err)
		}
	})
}

// TestLoadKnown: a table takes the vectors of a file with fewer nodes, and keeps what it drew for
// the others. Load refuses such a file, with what to do; a file with more nodes is refused by both.
func TestLoadKnown(t *testing.T) {
	store := layouttest.Build(t, vfs.NewMem(), "g.gdb", layouttest.Graph{Nodes: 3})
	dir := runs.Open(store, "r")
	if err := store.FS().MkdirAll(dir.Path("checkpoint-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	few := mustNew(t, Config{Nodes: 10, Dim: 5, Threads: 1, Training: true}, nil)
	few.Init(3)
	few.KeepBest()
	few.Rows()[0] = 7 // since the best evaluation
	if err := few.Write(dir, dir.Path("checkpoint-1"), 4, true); err != nil {
		t.Fatal(err)
	}
	many, seeded := mustNew(t, Config{Nodes: 12, Dim: 5, Threads: 1}, nil), Known{Seed: 9}
	for _, best := range []bool{true, false} {
		many.Init(9)
		drawn := slices.Clone(many.Rows()[50:])
		if err := many.LoadKnown(dir, "checkpoint-1", 4, best, seeded); err != nil {
			t.Fatal(err)
		}
		want := few.best.values
		if !best {
			want = few.Rows()
		}
		if !slices.Equal(many.Rows()[:50], want) || !slices.Equal(many.Rows()[50:], drawn) {
			t.Errorf("best %v: %v after %v", best, many.Rows(), want)
		}
	}
	err := many.Load(dir, "checkpoint-1", 4, true)
	if err == nil || errors.Is(err, layout.ErrCorrupt) ||
		!strings.Contains(err.Error(), "each of 10 nodes, and the snapshot that is read has 12") {
		t.Errorf("Load: %v", err)
	}
	less := mustNew(t, Config{Nodes: 9, Dim: 5, Threads: 1}, nil)
	if err := less.LoadKnown(dir, "checkpoint-1", 4, true, seeded); !errors.Is(err,
		layout.ErrCorrupt) {
		t.Errorf("fewer nodes than the file: %v", err)
	}
	if err := many.LoadKnown(dir, "checkpoint-1", 5, true, seeded); !errors.Is(err,
		layout.ErrCorrupt) {
		t.Errorf("another step: %v", err)
	}
}
