package rowcache

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample/sampletest"
)

// gatedRows wait before each row of a pass until they may go on.
type gatedRows struct {
	sampletest.Rows
	next chan struct{}
}

func (r *gatedRows) Sweep(ctx context.Context, keys []uint64, buf []byte,
	emit func(list uint32, row []byte) error) error {
	return r.Rows.Sweep(ctx, keys, buf, func(list uint32, row []byte) error {
		select {
		case <-r.next:
			return emit(list, row)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
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
// rows
// at every moment, and in the end all rows are there. What a gather missed is not loaded again.
func TestBackground(t *testing.T) {
	const nodes, dim = 4000, 8
	rows := &gatedRows{Rows: sampletest.Rows{Count: nodes, Dim: dim},
		next: make(chan struct{}, nodes)}
	hot, budget := shuffled(nodes)[:nodes/2], mem.NewBudget(16<<20)
	f, err := New(t.Context(), rows, NewStatic(hot),
		Options{Bytes: 4 << 20, Budget: budget, Background: true})
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
				for range 60 {
					rows.next <- struct{}{}
				}
			}
		})
	}
	gathers.Wait()
	for range len(hot) {
		select {
		case rows.next <- struct{}{}:
		default:
		}
	}
	<-f.(*cached).background.done
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
	rows := &gatedRows{Rows: sampletest.Rows{Count: nodes, Dim: dim}, next: make(chan struct{})}
	f, err := New(t.Context(), rows, NewStatic(shuffled(nodes)),
		Options{Bytes: 4 << 20, Background: true})
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
	rows := &gatedRows{Rows: sampletest.Rows{Count: nodes, Dim: dim},
		next: make(chan struct{}, nodes)}
	budget := mem.NewBudget(16 << 20)
	f, err := New(t.Context(), rows, NewStatic(nodesFrom(0, nodes)),
		Options{Bytes: 14 << 20, Budget: budget, Background: true})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, 1000*dim)
	for taken := 0; budget.Reserve("batches", 1<<20) == nil; taken++ {
		for range 2500 {
			rows.next <- struct{}{}
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
	bad := layout.NodeID(700)
	rows := &sampletest.Rows{Count: 1000, Dim: 8, Fail: &bad}
	f, err := New(t.Context(), rows, NewStatic(nodesFrom(0, 1000)),
		Options{Bytes: 4 << 20, Background: true})
	if err != nil {
		t.Fatal(err)
	}
	<-f.(*cached).background.done
	err = f.Gather(t.Context(), nodesFrom(0, 10), make([]float32, 80))
	if err == nil || !strings.Contains(err.Error(), "700") || errors.Is(err, context.Canceled) {
		t.Errorf("gathered after row 700 could not be loaded: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
