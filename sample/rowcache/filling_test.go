package rowcache

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"gdb/layout"
	"gdb/sample/sampletest"
)

// slowRows deliver rows in two parts: the second when told to, or never.
type slowRows struct {
	*sampletest.Rows
	before func() // the second part
	err    error  // instead of the second part
}

func (r *slowRows) GatherParts(ctx context.Context, nodes []layout.NodeID, at []uint32,
	out []float32,
	arrived func(keys []uint64)) error {
	half := (len(nodes) + 1) / 2
	for part := range 2 {
		first, end := part*half, min((part+1)*half, len(nodes))
		if part == 1 && r.before != nil {
			r.before()
		}
		if part == 1 && r.err != nil {
			return r.err
		}
		err := r.Rows.Gather(ctx, nodes[first:end], at[first:end], out)
		if err != nil {
			return err
		}
		var keys []uint64
		for i := first; i < end; i++ {
			keys = append(keys, uint64(nodes[i])<<32|uint64(i))
		}
		arrived(keys)
	}
	return nil
}

// toldPolicy is a policy that calls back when it has placed a given number of rows.
type toldPolicy struct {
	Policy
	left int
	all  func()
}

func (p *toldPolicy) Place(v layout.NodeID) (uint32, bool) {
	if p.left--; p.left == 0 {
		p.all()
	}
	return p.Policy.Place(v)
}

func (p *toldPolicy) Start(held []layout.NodeID) []layout.NodeID { return p.Policy.Start(held) }

func nodesFrom(first, n int) (nodes []layout.NodeID) {
	for i := range n {
		nodes = append(nodes, layout.NodeID(first+i))
	}
	return nodes
}

func checkFilled(t *testing.T, nodes []layout.NodeID, out []float32, dim int) {
	t.Helper()
	for i, v := range nodes {
		for j := range dim {
			if got, want := out[i*dim+j], sampletest.Value(v, j); got != want {
				t.Fatalf("node %d, element %d: %v, want %v", v, j, got, want)
			}
		}
	}
}

// TestSlotsWhileReading holds that hits are copied and rows get their slots while they are being
// read: the second half is only read once all have theirs.
func TestSlotsWhileReading(t *testing.T) {
	const dim = 5
	placed := make(chan struct{})
	policy := &toldPolicy{Policy: NewSIEVE(), left: 40,
		all: sync.OnceFunc(func() { close(placed) })}
	rows := &slowRows{Rows: &sampletest.Rows{Count: 100, Dim: dim}}
	f, err := New(t.Context(), rows, policy, Options{Bytes: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := make([]float32, 100*dim)
	for i, c := range []struct{ first, n, hits int }{{0, 20, 0}, {10, 30, 10}, {0, 40, 50}} {
		if i == 1 {
			rows.before = func() { <-placed }
		}
		nodes := nodesFrom(c.first, c.n)
		if err := f.Gather(t.Context(), nodes, out); err != nil {
			t.Fatal(err)
		}
		checkFilled(t, nodes, out, dim)
		if s := f.Stats(); s.Hits != uint64(c.hits) {
			t.Errorf("gather %d: %d hits, want %d", i, s.Hits, c.hits)
		}
	}
}

// TestSlotsAfterError holds that of a gather that fails half way the first half is kept, and that
// the slots of the others are filled by the next.
func TestSlotsAfterError(t *testing.T) {
	const dim = 3
	rows := &slowRows{Rows: &sampletest.Rows{Count: 100, Dim: dim}, err: syscall.EIO}
	f, err := New(t.Context(), rows, NewSIEVE(), Options{Bytes: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	nodes, out, hits := nodesFrom(0, 50), make([]float32, 50*dim), uint64(0)
	for i, more := range []uint64{0, 25, 50} {
		err := f.Gather(t.Context(), nodes, out)
		if !errors.Is(err, rows.err) {
			t.Fatalf("%v", err)
		}
		if err == nil {
			checkFilled(t, nodes, out, dim)
		}
		rows.err = nil
		if hits += more; f.Stats().Hits != hits {
			t.Errorf("gather %d: %d hits, want %d", i, f.Stats().Hits, hits)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestSlotsOfManyGathers runs gathers at once through a small cache, so that slots are taken away
// while they are pending; run it with -race.
func TestSlotsOfManyGathers(t *testing.T) {
	const dim = 4
	rows := &slowRows{Rows: &sampletest.Rows{Count: 400, Dim: dim}}
	f, err := New(t.Context(), rows, NewSIEVE(), Options{Bytes: 3 << 10})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			out := make([]float32, 50*dim)
			for k := range 60 {
				nodes := nodesFrom((w*37+k*k*13)%350, 50)
				if err := f.Gather(context.Background(), nodes, out); err != nil {
					t.Error(err)
					return
				}
				for i, v := range nodes {
					if got := out[i*dim+dim-1]; got != sampletest.Value(v, dim-1) {
						t.Errorf("node %d has %v", v, got)
						return
					}
				}
			}
		})
	}
	all.Wait()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestParallel: all parts are done when it returns, each once, whatever the sizes.
func TestParallel(t *testing.T) {
	for _, n := range []int{0, 1, 3, 1000} {
		for threads := range 5 {
			var done [1000]atomic.Int32
			Parallel(n, threads, threads*copyRowsMin, func(first, end int) {
				for range 100 {
					runtime.Gosched()
				}
				for i := first; i < end; i++ {
					done[i].Add(1)
				}
			})
			for i := range done {
				if got, want := done[i].Load(), int32(1); got != want && i < n || got > want {
					t.Fatalf("%d threads: %d of %d was done %d times", threads, i, n, got)
				}
			}
		}
	}
}
