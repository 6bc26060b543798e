package query

import (
	"runtime"
	"testing"

	"gdb/internal/mem"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestSetThreads: statements compute on as many goroutines as a program says, and else as there are
// processors, of which GOMAXPROCS says nothing: gdb raises it for reads.
func TestSetThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 14))
	fs := vfs.NewMem()
	st := layouttest.Build(t, fs, "s.gdb", layouttest.Random(1, 20, 50))
	e := NewEngine(st, layouttest.Device(t), mem.NewBudget(0), 1)
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	if n := e.graph.Threads; n != runtime.NumCPU() {
		t.Errorf("%d goroutines, want %d", n, runtime.NumCPU())
	}
	e.SetThreads(3)
	e.SetThreads(0)
	if n := e.graph.Threads; n != 3 {
		t.Errorf("%d goroutines, want 3", n)
	}
}
