package sample

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"gdb/internal/mem"
)

// TestGroupStops: the first error of a stage stops the others, and is the one that is reported.
func TestGroupStops(t *testing.T) {
	g, first := NewStageGroup(t.Context()), errors.New("first")
	never := make(chan int)
	var wait atomic.Int64
	g.Start(func() error {
		if _, ok := Receive(g, never, &wait); ok {
			t.Error("received from a channel that nobody sends to")
		}
		return errors.New("second")
	})
	g.Start(func() error { return first })
	<-g.Done()
	g.Stop(errors.New("closed"))
	if !errors.Is(g.Err(), first) || wait.Load() == 0 {
		t.Errorf("%v, %d ns of waiting", g.Err(), wait.Load())
	}
}

// TestBuffers: buffers that are lent outlive their pipeline, others do not; what is given back
// later
// is freed then.
func TestBuffers(t *testing.T) {
	budget, g := mem.NewBudget(1<<20), NewStageGroup(t.Context())
	p := NewBuffers(2, "rows", budget)
	var wait atomic.Int64
	a, _ := p.Take(g, &wait)
	b, _ := p.Take(g, &wait)
	if err := errors.Join(p.Fit(a, 100, 8<<10), p.Fit(b, 5000, 0)); err != nil {
		t.Fatal(err)
	}
	if n := len(a.Floats()); n != 2<<10 || 4*len(b.Floats()) < 5000 {
		t.Errorf("buffers of %d and %d values", n, len(b.Floats()))
	}
	held := budget.Used()
	if !p.Lend(a) || !p.Lend(b) || !p.Return(b) {
		t.Fatal("an open pipeline does not lend")
	}
	if p.FreeIdle(); budget.Used() >= held {
		t.Error("an idle buffer keeps its memory")
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	a.Floats()[0] = 1 // still there
	if p.Return(a) || budget.Used() != 0 {
		t.Errorf("a buffer of a closed pipeline is used again, %d bytes are held", budget.Used())
	}
	if p.Lend(b) {
		t.Error("a closed pipeline lends")
	}
}

// TestTakeMade: where there is no memory for all buffers, those that have some are used.
func TestTakeMade(t *testing.T) {
	budget, g := mem.NewBudget(12<<10), NewStageGroup(t.Context())
	p := NewBuffers(3, "rows", budget)
	var wait atomic.Int64
	one, err := p.TakeMade(g, 8<<10, &wait)
	if err != nil {
		t.Fatal(err)
	}
	p.Put(one)
	for range 5 {
		if again, err := p.TakeMade(g, 8<<10, &wait); err != nil || again != one {
			t.Fatalf("%p after %p, %v", again, one, err)
		}
		p.Put(one)
	}
	g.Stop(context.Canceled)
	if b, err := NewBuffers(1, "rows", mem.NewBudget(1)).TakeMade(g, 1, &wait); err == nil &&
		b != nil {
		t.Error("no memory at all, and no error")
	}
	if err := p.Close(); err != nil || budget.Used() != 0 {
		t.Errorf("%d bytes are held, %v", budget.Used(), err)
	}
}

// TestBuffersRest: what a pipeline leaves is what the next one has, unless the budget is short, and
// then it is given before what others give.
func TestBuffersRest(t *testing.T) {
	budget, g := mem.NewBudget(64<<10), NewStageGroup(t.Context())
	defer budget.Relieve(func(int64) bool {
		t.Error("others gave memory")
		return false
	})()
	p := NewBuffers(2, "rows", budget)
	var wait atomic.Int64
	fitted := func(n int64) *Buffer {
		b, _ := p.Take(g, &wait)
		if err := p.Fit(b, n, 0); err != nil {
			t.Fatal(err)
		}
		return b
	}
	p.Use()
	small, lent := fitted(4000), fitted(30_000)
	p.Lend(lent)
	p.Rest() // with the small one in a stage
	p.Use()
	if b := fitted(3000); b != small {
		t.Error("the memory that was left is not used")
	}
	if !p.Return(lent) {
		t.Error("a buffer that was lent by the pipeline before is not taken back")
	}
	p.Rest()
	if held := budget.Used(); held < 34_000 {
		t.Errorf("%d bytes are kept", held)
	}
	if err := budget.Reserve("others", 64<<10); err != nil {
		t.Error(err)
	}
	budget.Release(64 << 10)
	p.Use()
	fitted(100)
	p.Rest()
	if err := p.Close(); err != nil || budget.Used() != 0 {
		t.Errorf("%v, %d bytes are held in the end", err, budget.Used())
	}
}
