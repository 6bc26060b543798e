//go:build cuda && cgo && linux

package cuda

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/cuda"
	"gdb/internal/cuda/cudatest"
	"gdb/internal/mem"
)

// mustOpenGPU opens the device, whose memory and whose count of it must be given back.
func mustOpenGPU(t *testing.T, budget *mem.Budget) (*gpu, *cudatest.Emulator) {
	t.Helper()
	emulator := cudatest.Start(t, "kernels/kernels.cu")
	be, err := Open(backend.Options{Workers: 1, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := be.Close(); err != nil {
			t.Error(err)
		}
		if n, m := budget.Used(), emulator.Count("allocated_bytes"); n != 0 || m != 0 {
			t.Errorf("after Close %d bytes are counted, and the device has %d", n, m)
		}
	})
	return be.(*gpu), emulator
}

// mustBegin begins a step.
func mustBegin(t *testing.T, g *gpu) {
	t.Helper()
	if err := g.Begin(); err != nil {
		t.Fatal(err)
	}
}

// TestStepsOverlap runs steps that nobody waits for, whose inputs change as soon as they were
// given: each computes with its own.
func TestStepsOverlap(t *testing.T) {
	g, emulator := mustOpenGPU(t, mem.NewBudget(0))
	for seed := range int64(5) {
		emulator.Set(t, "seed", seed)
		sum, err := g.Params("sum", 1000)
		if err != nil {
			t.Fatal(err)
		}
		want, x := make([]float32, 1000), make([]float32, 1000*8)
		for step := range 8 {
			mustBegin(t, g)
			n := 1 + step%3 // rows, so that memory grows and settles
			for i := range x[:1000*n] {
				x[i] = float32(step + i%7)
				want[i%1000] += x[i]
			}
			all, row := g.Host(x, n, 1000), g.Scratch(1, 1000)
			calls{g}.ColumnSum(row, all)
			for i := range x { // the step has its own by now
				x[i] = -1
			}
			calls{g}.Add(sum, row)
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
		}
		got := make([]float32, 1000)
		if g.Read(got, sum); !slices.Equal(got, want) {
			t.Fatalf("seed %d: the sums are %v, not %v", seed, got[:5], want[:5])
		}
	}
}

// TestSameBits runs operations in other orders of blocks, threads and streams: they give the same
// bits.
func TestSameBits(t *testing.T) {
	g, emulator := mustOpenGPU(t, mem.NewBudget(0))
	var first [][]float32
	for seed := range int64(3) {
		emulator.Set(t, "seed", seed+1)
		mustBegin(t, g)
		o := newTrial(t, g, "same bits")
		sums(o, "huge", 40, 20)
		weighted(o, "huge", 40, 20)
		halfSums(o, "huge", 20)
		attention(o, "huge", 40, 20)
		normed(o, 700, 20)
		lossesOf(o, 700, 20)
		optimized(o, 9000)
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = o.x
		}
		for i := range first {
			if !slices.Equal(mem.BytesOf(first[i]), mem.BytesOf(o.x[i])) {
				t.Errorf("seed %d: result %d has other bits", seed, i)
			}
		}
	}
}

// TestTables: a table is read where it lies, and may change between steps.
func TestTables(t *testing.T) {
	g, emulator := mustOpenGPU(t, mem.NewBudget(0))
	a, err := mem.NewArena(nil, "rows", 24)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Free(); err != nil {
			t.Error(err)
		}
	}()
	x, got := mem.View[float32](a.Bytes()), make([]float32, 2)
	for step := range 3 {
		mustBegin(t, g)
		x[1], x[5] = float32(step), 7
		s := g.Segments(backend.Lists{Off: []uint32{0, 2}, Idx: []uint32{0, 2}})
		out := g.Scratch(1, 2)
		calls{g}.lists("pull-sum", out, s, g.Table(x, 3, 2))
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		x[1] = 100 // the step is at its end
		if g.Read(got, out); got[1] != float32(step)+7 {
			t.Errorf("step %d: %v", step, got)
		}
	}
	locked := emulator.Count("locked")
	if g.Forget(x); g.Err() != nil || emulator.Emulated() && emulator.Count("locked") >= locked {
		t.Errorf("%d ranges are locked, before %d, %v", emulator.Count("locked"), locked, g.Err())
	}
}

// TestShortOfMemory: the error says what was asked for and what the device has, and stays until the
// next step.
func TestShortOfMemory(t *testing.T) {
	g, emulator := mustOpenGPU(t, mem.NewBudget(0))
	emulator.Set(t, "memory", 12<<20)
	mustBegin(t, g)
	g.Scratch(1000, 1000)
	big := g.Scratch(4000, 1000)
	first := g.Err()
	if !errors.Is(first, cuda.ErrOutOfMemory) {
		t.Fatal(first)
	}
	for _, says := range []string{"activations and gradients of a step, beside", "need 15.3 MiB of",
		"3.7 MiB of 12.0 MiB are free", "lower --batch"} {
		if !strings.Contains(first.Error(), says) {
			t.Errorf("%q is not in: %v", says, first)
		}
	}
	calls{g}.Zero(big)
	calls{g}.Add(big, big)
	if g.Err() != first {
		t.Errorf("then %v", g.Err())
	}
}

// TestBudgetIsKept: page-locked memory is counted.
func TestBudgetIsKept(t *testing.T) {
	budget := mem.NewBudget(1 << 20)
	g, _ := mustOpenGPU(t, budget)
	mustBegin(t, g)
	x := g.Host(make([]float32, 1<<20), 1<<10, 1<<10)
	calls{g}.Scale(x, 2)
	var limit *mem.LimitError
	if err := g.Err(); !errors.As(err, &limit) {
		t.Errorf("beyond the budget: %v", err)
	}
}

// TestFailedLosses: losses of a lost device are none, and its error is told.
func TestFailedLosses(t *testing.T) {
	g, emulator := mustOpenGPU(t, mem.NewBudget(0))
	mustBegin(t, g)
	x := g.Scratch(3, 4)
	calls{g}.Zero(x)
	backend.SoftmaxCrossEntropy(g, x, x, tensor{}, []int32{0, 1, -1})
	if all := g.Losses(nil); len(all) != 1 || all[0].Rows != 2 {
		t.Fatalf("%+v, %v", all, g.Err())
	}
	calls{g}.Zero(x)
	backend.SoftmaxCrossEntropy(g, x, x, tensor{}, []int32{0, 1, -1})
	emulator.Set(t, "fail_copy", 1)
	if all := g.Losses(nil); len(all) != 0 || !errors.Is(g.Err(), cuda.ErrLost) {
		t.Errorf("%+v, %v", all, g.Err())
	}
	if err := g.Close(); err == nil {
		t.Error("a lost device closes well")
	}
}
