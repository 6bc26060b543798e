package mem

import (
	"testing"
)

// TestClock: what was used since the hand passed stays one round longer, what is pinned stays.
func TestClock(t *testing.T) {
	c, err := NewFrames(2, nil, "frames")
	if err != nil {
		t.Fatal(err)
	}
	c.Lock()
	defer c.Unlock()
	claim := func(block uint64) int32 {
		t.Helper()
		f, ok := c.ClaimLocked(block, nil)
		if !ok {
			t.Fatalf("no frame for block %d", block)
		}
		return f
	}
	a, b := claim(10), claim(11)
	if _, ok := c.ClaimLocked(12, nil); ok {
		t.Fatal("a pinned frame was taken")
	}
	c.UnpinLocked(a)
	c.UnpinLocked(b)
	if f, _, ok := c.PinLocked(10); !ok || f != a {
		t.Fatalf("block 10 is in frame %d (%t), want %d", f, ok, a)
	}
	c.UnpinLocked(a)
	if f := claim(12); f != b {
		t.Errorf("block 12 took frame %d, want that of block 11, which was not used", f)
	}
	if _, _, ok := c.PinLocked(11); ok {
		t.Error("block 11 is still found")
	}
}

// TestFailedLoad: the blocks of a load that failed are not found, and those who wait learn of it.
func TestFailedLoad(t *testing.T) {
	budget := NewBudget(0)
	c, err := NewBlockCache(4, 4096, budget, "tables", "blocks")
	if err != nil {
		t.Fatal(err)
	}
	l := NewLoad()
	c.Lock()
	f, _ := c.ClaimLocked(7, l)
	_, on, ok := c.PinLocked(7)
	c.Unlock()
	if !ok || on != l {
		t.Fatal("a block on its way is not found")
	}
	c.Each(func(block uint64) { t.Errorf("block %d is not read yet", block) })
	c.Loaded(l, []int32{f}, true)
	if <-l.Done; !l.Failed {
		t.Error("the load did not fail")
	}
	c.Unpin([]int32{f, f})
	c.Lock()
	_, _, ok = c.PinLocked(7)
	c.Unlock()
	if ok {
		t.Error("the block of a failed load is found")
	}
	if err := c.Free(); err != nil || budget.Used() != 0 {
		t.Errorf("%d bytes are left of the budget (%v)", budget.Used(), err)
	}
}
