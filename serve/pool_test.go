package serve

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"gdb/internal/mem"

	"golang.org/x/sys/unix"
)

// mustTake takes an arena that is there at once.
func mustTake(t *testing.T, p *pool, size int64) *arena {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := p.Take(ctx, size)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestPoolUsesAgain: arenas that come back are used again, and one that is too small is made anew,
// of which the client hears.
func TestPoolUsesAgain(t *testing.T) {
	budget := mem.NewBudget(1 << 20)
	p := newStock(budget, 2).Pool()
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
	if _, err := p.Take(t.Context(), 1); !errors.Is(err, errClosed) {
		t.Errorf("a closed pool: %v", err)
	}
}

// TestPoolGrowsForWhoKeeps: one more is made only where the client has all and asks, until the
// memory ends.
func TestPoolGrowsForWhoKeeps(t *testing.T) {
	p := newStock(mem.NewBudget(40<<10), 1).Pool()
	defer func() { _ = p.Close() }()
	p.Lend(mustTake(t, p, 16<<10))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Take(ctx, 16<<10); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("taken while the client did not ask: %v", err)
	}
	p.Ask(true)
	p.Lend(mustTake(t, p, 16<<10))
	if _, err := p.Take(t.Context(), 16<<10); !errors.Is(err, errHeld) {
		t.Errorf("beyond the memory: %v", err)
	}
}

// TestPoolWaits: where there is no memory for all arenas, batches wait for those that are there;
// one that is being filled outlives the pool.
func TestPoolWaits(t *testing.T) {
	budget := mem.NewBudget(20 << 10)
	p := newStock(budget, 3).Pool()
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
	p := newStock(mem.NewBudget(32<<10), 2).Pool()
	defer func() { _ = p.Close() }()
	a, b := mustTake(t, p, 8<<10), mustTake(t, p, 8<<10)
	p.Put(a)
	p.Put(b)
	c := mustTake(t, p, 12<<10)
	p.Put(c)
	if d := mustTake(t, p, 28<<10); len(p.stock.mu.made) != 1 || len(d.Bytes()) < 28<<10 {
		t.Errorf("%d arenas, one of %d bytes", len(p.stock.mu.made), len(d.Bytes()))
	} else {
		p.Put(d)
	}
}

// TestStockIsShared: clients have each one arena and one more between them. What one gives back is
// another's next, of which each client is told only once; what a client has when it goes is not
// used again; and the last client leaves nothing behind.
func TestStockIsShared(t *testing.T) {
	budget := mem.NewBudget(3 * 20 << 10) // of three arenas, in whole pages: no more
	s := newStock(budget, 3)
	p, q := s.Pool(), s.Pool()
	a, b, c := mustTake(t, p, 16<<10), mustTake(t, q, 16<<10), mustTake(t, p, 16<<10)
	p.Lend(a)
	q.Lend(b)
	p.Lend(c)
	if err := q.Return([]uint32{a.ID}); err == nil {
		t.Error("a client gave back an arena of another")
	}
	q.Ask(true)
	time.AfterFunc(time.Millisecond, func() { _ = p.Return([]uint32{a.ID}) })
	if d := mustTake(t, q, 16<<10); d != a || d.Known {
		t.Errorf("arena %d, known %v, in the place of %d", d.ID, d.Known, a.ID)
	}
	q.Lend(a)
	q.Ask(false)
	if err := q.Return([]uint32{a.ID}); err != nil {
		t.Fatal(err)
	}
	if d := mustTake(t, p, 16<<10); d != a || !d.Known {
		t.Errorf("arena %d, known %v: the client had it before", d.ID, d.Known)
	}
	p.Put(a)
	if err := p.Close(); err != nil || len(s.mu.made) != 2 { // c is gone with p
		t.Errorf("%v, %d arenas are left", err, len(s.mu.made))
	}
	if err := q.Close(); err != nil || budget.Used() != 0 {
		t.Errorf("%v, %d bytes are still counted", err, budget.Used())
	}
}

// TestStockGrowsForWhoKeep: where clients keep all arenas and one of them asks, one more is made
// for it, though others could give some back.
func TestStockGrowsForWhoKeep(t *testing.T) {
	s := newStock(mem.NewBudget(1<<20), 3)
	p, q := s.Pool(), s.Pool()
	defer func() { _, _ = p.Close(), q.Close() }()
	p.Lend(mustTake(t, p, 16<<10))
	p.Lend(mustTake(t, p, 16<<10))
	q.Lend(mustTake(t, q, 16<<10))
	q.Ask(true)
	if q.Lend(mustTake(t, q, 16<<10)); len(s.mu.made) != 4 {
		t.Errorf("%d arenas", len(s.mu.made))
	}
}

// TestDroppedArenas: an arena that gives way is empty for who has it mapped still, so that it takes
// no memory; one that a client has when it goes keeps what it holds.
func TestDroppedArenas(t *testing.T) {
	s := newStock(mem.NewBudget(1<<20), 2)
	p, q := s.Pool(), s.Pool()
	defer func() { _ = q.Close() }()
	mapped := func(a *arena) []byte {
		m, err := unix.Mmap(a.Descriptor(), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(m) })
		return m
	}
	idle, lent := mustTake(t, p, 4096), mustTake(t, p, 4096)
	idle.Bytes()[0], lent.Bytes()[0] = 7, 8
	old, kept := mapped(idle), mapped(lent)
	p.Lend(idle)
	p.Lend(lent)
	if err := p.Return([]uint32{idle.ID}); err != nil {
		t.Fatal(err)
	}
	larger := mustTake(t, p, 1<<16) // the idle one gives way
	if old[0] != 0 {
		t.Error("an arena that was given back and dropped takes memory still")
	}
	if gone := p.Lend(larger); len(gone) != 1 || gone[0] != idle.ID || len(p.known) != 2 {
		t.Errorf("the client may forget %v, and knows %v", gone, p.known)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if kept[0] != 8 {
		t.Error("a batch that the client has was emptied when it left")
	}
}

// TestKnownFirst: of idle arenas a client has one that it has mapped before, wherever it stands.
func TestKnownFirst(t *testing.T) {
	for _, first := range []bool{true, false} {
		s := newStock(mem.NewBudget(1<<20), 2)
		p, q := s.Pool(), s.Pool()
		defer func() { _, _ = p.Close(), q.Close() }()
		a, b := mustTake(t, p, 4096), mustTake(t, q, 4096)
		p.Lend(a)
		q.Lend(b)
		back := []func() error{func() error { return p.Return([]uint32{a.ID}) },
			func() error { return q.Return([]uint32{b.ID}) }}
		if first {
			back[0], back[1] = back[1], back[0]
		}
		if err := errors.Join(back[0](), back[1]()); err != nil {
			t.Fatal(err)
		}
		if got := mustTake(t, p, 4096); got != a || !got.Known {
			t.Errorf("arena %d, known %v, in the place of %d", got.ID, got.Known, a.ID)
		}
		p.Put(a)
	}
}

// takenAfter returns how long Take waits, by a clock that goes on only while all wait.
func takenAfter(p *pool, size int64) (time.Duration, error) {
	begun := time.Now()
	a, err := p.Take(context.Background(), size)
	after := time.Since(begun)
	if err == nil {
		p.Put(a)
	}
	return after, err
}

// TestPatience: one more arena is made after patience, however often others moved before. Without
// memory for it a client waits patienceMost, and takes what comes back at once.
func TestPatience(t *testing.T) {
	first := newStock(nil, 1).Pool()
	first.Put(mustTake(t, first, 4096)) // it skips where memory is not shared
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	lent := func(memory int64) (p, q *pool) {
		s := newStock(mem.NewBudget(memory), 1)
		p, q = s.Pool(), s.Pool()
		for _, of := range []*pool{p, q} {
			s.most++
			of.Lend(mustTake(t, of, 4096))
		}
		s.most = 2
		q.Ask(true)
		return p, q
	}
	closed := func(p, q *pool) {
		if err := errors.Join(p.Close(), q.Close()); err != nil {
			t.Error(err)
		}
	}
	for name, at := range map[string]time.Duration{"nothing moved": 0,
		"others moved": patience / 4} {
		synctest.Test(t, func(t *testing.T) {
			p, q := lent(1 << 20)
			defer closed(p, q)
			if at > 0 {
				time.AfterFunc(at, func() { p.Ask(true) })
			}
			if after, err := takenAfter(q, 4096); after != patience || err != nil {
				t.Errorf("%s: one more arena is made after %s: %v", name, after, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p, q := lent(3 * 4096)
		defer closed(p, q)
		time.AfterFunc(patience*3/2, func() { p.Ask(true) })
		after, err := takenAfter(q, 8192)
		if after != patienceMost || !errors.Is(err, errHeld) {
			t.Errorf("without memory it ends after %s: %v", after, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p, q := lent(3 * 4096)
		defer closed(p, q)
		back := func() {
			if err := p.Return(p.known); err != nil {
				t.Error(err)
			}
		}
		time.AfterFunc(time.Second, back)
		if after, err := takenAfter(q, 4096); after != time.Second || err != nil {
			t.Errorf("what came back after a second is taken after %s: %v", after, err)
		}
	})
}
