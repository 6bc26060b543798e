package rowcache

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
	"gdb/sample/sampletest"
)

// gatedDevice waits before each batch of reads until it may go on.
type gatedDevice struct {
	blockdev.Device
	next chan struct{}
}

func (d *gatedDevice) ReadBatch(ctx context.Context, reqs []blockdev.Request) error {
	select {
	case <-d.next:
		return d.Device.ReadBatch(ctx, reqs)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// gatedFile is a file of rows with the values of sampletest.Rows, whose reads wait once it is open.
func gatedFile(t *testing.T, nodes, dim int) (file *rowfile.Reader, next chan struct{}) {
	d := &gatedDevice{layouttest.Device(t), make(chan struct{})}
	open := make(chan struct{})
	close(open)
	next, d.next = d.next, open
	file = layouttest.FloatFile(t, d, dim, nodes, sampletest.Value)
	d.next = next
	return file, next
}

// shuffled are the nodes below n in some order.
func shuffled(n int) (nodes []layout.NodeID) {
	const seed = 5
	for _, v := range rand.New(rand.NewPCG(seed, seed)).Perm(n) {
		nodes = append(nodes, layout.NodeID(v))
	}
	return nodes
}

// TestBackground: gathers of several goroutines beside the pass that loads a cache have the right
// rows at every moment, and in the end all rows are there. What a gather missed is not loaded
// again.
func TestBackground(t *testing.T) {
	const nodes, dim = 4000, 300
	rows := &sampletest.Rows{Count: nodes, Dim: dim}
	file, next := gatedFile(t, nodes, dim)
	hot, budget := shuffled(nodes)[:nodes/2], mem.NewBudget(16<<20)
	f, err := New(t.Context(), rows, NewStatic(hot),
		Options{Bytes: 8 << 20, Budget: budget, Sweep: file})
	if err != nil {
		t.Fatal(err)
	}
	var gathers sync.WaitGroup
	for first := range 4 {
		gathers.Go(func() {
			out := make([]float32, 500*dim)
			for at := first * 100; at+500 < nodes; at += 300 {
				batch := nodesFrom(at, 500)
				if err := f.Gather(t.Context(), batch, out); err != nil {
					t.Error(err)
				}
				checkFilled(t, batch, out, dim)
				select {
				case next <- struct{}{}:
				default: // the pass is over, or at work
				}
			}
		})
	}
	gathers.Wait()
	close(next)
	<-f.background.done
	before, out := f.Stats().Hits, make([]float32, len(hot)*dim)
	if err := f.Gather(t.Context(), hot, out); err != nil {
		t.Fatal(err)
	}
	checkFilled(t, hot, out, dim)
	if n := f.Stats().Hits - before; n != uint64(len(hot)) {
		t.Errorf("%d hits of %d rows that were loaded", n, len(hot))
	}
	if err := f.Close(); err != nil || budget.Used() != 0 {
		t.Errorf("closed: %v, %d bytes are counted", err, budget.Used())
	}
}

// TestBackgroundMisses: before the pass has come to a row it is missed once, and is in its slot
// then.
func TestBackgroundMisses(t *testing.T) {
	const nodes, dim = 1000, 8
	file, _ := gatedFile(t, nodes, dim)
	f, err := New(t.Context(), &sampletest.Rows{Count: nodes, Dim: dim},
		NewStatic(shuffled(nodes)), Options{Bytes: 4 << 20, Sweep: file})
	if err != nil {
		t.Fatal(err)
	}
	batch, out := nodesFrom(300, 200), make([]float32, 200*dim)
	for turn := range uint64(2) {
		if err := f.Gather(t.Context(), batch, out); err != nil {
			t.Fatal(err)
		}
		checkFilled(t, batch, out, dim)
		if got := f.Stats().Hits; got != turn*uint64(len(batch)) {
			t.Errorf("gather %d: %d hits so far", turn, got)
		}
	}
	if err := f.Close(); err != nil { // while the pass waits
		t.Error(err)
	}
}

// TestBackgroundShrinks: a cache gives memory back while it is loaded; no row is written there.
func TestBackgroundShrinks(t *testing.T) {
	const nodes, dim = 40000, 64
	file, next := gatedFile(t, nodes, dim)
	budget := mem.NewBudget(16 << 20)
	f, err := New(t.Context(), &sampletest.Rows{Count: nodes, Dim: dim},
		NewStatic(nodesFrom(0, nodes)), Options{Bytes: 14 << 20, Budget: budget, Sweep: file})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, 1000*dim)
	for taken := 0; budget.Reserve("batches", 1<<20) == nil; taken++ {
		select {
		case next <- struct{}{}:
		case <-f.background.done:
		}
		batch := nodesFrom(taken*1500, 1000)
		if err := f.Gather(t.Context(), batch, out); err != nil {
			t.Fatal(err)
		}
		checkFilled(t, batch, out, dim)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestBackgroundFails: a row that cannot be loaded is an error of a gather that follows.
func TestBackgroundFails(t *testing.T) {
	var fail error
	file := layouttest.FloatFile(t, devtest.Inject(layouttest.Device(t),
		func(string, int64, uint64) devtest.Fault { return devtest.Fault{Err: fail} }),
		8, 1000, sampletest.Value)
	fail = syscall.EIO
	f, err := New(t.Context(), &sampletest.Rows{Count: 1000, Dim: 8},
		NewStatic(nodesFrom(0, 1000)), Options{Bytes: 4 << 20, Sweep: file})
	if err != nil {
		t.Fatal(err)
	}
	<-f.background.done
	err = f.Gather(t.Context(), nodesFrom(0, 10), make([]float32, 80))
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("gathered after rows could not be loaded: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
