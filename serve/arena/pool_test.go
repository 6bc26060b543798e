package arena

import (
	"context"
	"errors"
	"testing"
	"time"

	"gdb/internal/mem"
)

// mustTake takes an arena that is there at once.
func mustTake(t *testing.T, p *Pool, size int64) *Arena {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	a, err := p.Take(ctx, size)
	if errors.Is(err, mem.ErrNoSharing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestPoolUsesAgain: arenas that come back are used again, and one that is too small is made anew,
// of which the client hears.
func TestPoolUsesAgain(t *testing.T) {
	budget := mem.NewBudget(1 << 20)
	p := NewPool(budget, 2)
	a := mustTake(t, p, 10_000)
	p.Lend(a)
	if err := p.Return([]uint32{a.ID}); err != nil {
		t.Fatal(err)
	}
	if b := mustTake(t, p, 9_000); b != a || !b.Known {
		t.Errorf("arena %d in the place of %d", b.ID, a.ID)
	}
	p.Put(a)
	c := mustTake(t, p, 50_000)
	if gone := p.Lend(c); c.ID == a.ID || len(gone) != 1 || gone[0] != a.ID {
		t.Errorf("arena %d, the client may forget %v", c.ID, gone)
	}
	if err := p.Return([]uint32{a.ID}); err == nil {
		t.Error("an arena came back that the client does not have")
	}
	if err := p.Close(); err != nil || budget.Used() != 0 {
		t.Errorf("%v, %d bytes are still counted", err, budget.Used())
	}
	if _, err := p.Take(t.Context(), 1); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed pool: %v", err)
	}
}

// TestPoolGrowsForWhoKeeps: one more is made only where the client has all and asks, until the
// memory ends.
func TestPoolGrowsForWhoKeeps(t *testing.T) {
	p := NewPool(mem.NewBudget(40<<10), 1)
	defer func() { _ = p.Close() }()
	p.Lend(mustTake(t, p, 16<<10))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Take(ctx, 16<<10); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("taken while the client did not ask: %v", err)
	}
	p.Ask(true)
	p.Lend(mustTake(t, p, 16<<10))
	if _, err := p.Take(t.Context(), 16<<10); !errors.Is(err, ErrHeld) {
		t.Errorf("beyond the memory: %v", err)
	}
}

// TestPoolWaits: where there is no memory for all arenas, batches wait for those that are there;
// one that is being filled outlives the pool.
func TestPoolWaits(t *testing.T) {
	budget := mem.NewBudget(20 << 10)
	p := NewPool(budget, 3)
	a := mustTake(t, p, 16<<10)
	got := make(chan error)
	go func() {
		b, err := p.Take(t.Context(), 16<<10)
		if err == nil && b != a {
			err = errors.New("another arena")
		}
		got <- err
	}()
	time.Sleep(10 * time.Millisecond)
	p.Put(a)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil || budget.Used() == 0 {
		t.Errorf("%v, %d bytes counted while one is being filled", err, budget.Used())
	}
	if p.Put(a); budget.Used() != 0 {
		t.Errorf("%d bytes are still counted", budget.Used())
	}
}

// TestPoolReplaces: where all arenas that are there are too small, some give way, also where there
// is no memory beside them.
func TestPoolReplaces(t *testing.T) {
	p := NewPool(mem.NewBudget(32<<10), 2)
	defer func() { _ = p.Close() }()
	a, b := mustTake(t, p, 8<<10), mustTake(t, p, 8<<10)
	p.Put(a)
	p.Put(b)
	c := mustTake(t, p, 12<<10)
	p.Put(c)
	if d := mustTake(t, p, 28<<10); len(p.mu.made) != 1 || len(d.Bytes()) < 28<<10 {
		t.Errorf("%d arenas, one of %d bytes", len(p.mu.made), len(d.Bytes()))
	}
}
