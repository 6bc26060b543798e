package mem

import (
	"errors"
	"testing"
)

// TestProcessBudget: heap counts at its peak and with garbage, arenas as they are.
func TestProcessBudget(t *testing.T) {
	const room = 100 << 20
	b := NewProcessBudget(ProcessBytes + room)
	if err := b.Reserve("lists", 40<<20); err != nil {
		t.Fatal(err)
	}
	b.Release(30 << 20)
	if got := b.Used(); got != 50<<20 {
		t.Errorf("40 MiB of heap, 30 given back, count for %d bytes", got)
	}
	if err := b.Reserve("lists", 20<<20); err != nil || b.Used() != 50<<20 {
		t.Errorf("heap below its peak counts again: %d bytes, %v", b.Used(), err)
	}
	a, err := NewArena(b, "cache", 50<<20)
	if err != nil {
		t.Fatal(err)
	}
	var limit *LimitError
	if err := b.Reserve("more", 11<<20); !errors.As(err, &limit) {
		t.Errorf("heap beyond the bound: %v", err)
	}
	if err := a.Free(); err != nil || b.Used() != 50<<20 || b.Peak() != 100<<20 {
		t.Errorf("used %d, peak %d, %v", b.Used(), b.Peak(), err)
	}
}

// TestRelief: who can give memory back is asked for what is short, in order, and no more.
func TestRelief(t *testing.T) {
	b := NewBudget(16 << 20)
	a, err := NewArena(b, "cache", 16<<20)
	if err != nil {
		t.Fatal(err)
	}
	given := 0
	end := b.Relieve(func(n int64) bool {
		given++
		size := int(n)
		if err := a.Discard(16<<20-given*size, 16<<20-(given-1)*size); err != nil {
			t.Error(err)
		}
		return true
	})
	if err := b.Reserve("batch", 1<<20); err != nil || given != 1 || b.Used() != 16<<20 {
		t.Errorf("1 MiB: %v, asked %d times, %d bytes counted", err, given, b.Used())
	}
	end()
	var limit *LimitError
	if err := b.Reserve("batch", 1<<20); !errors.As(err, &limit) || given != 1 {
		t.Errorf("nobody to ask: %v, asked %d times", err, given)
	}
	b.Release(1 << 20)
	if err := a.Free(); err != nil || b.Used() != 0 {
		t.Errorf("%d bytes stay counted, %v", b.Used(), err)
	}
}

func TestAccount(t *testing.T) {
	b := NewBudget(100)
	a := NewAccount(b, "scratch")
	err := errors.Join(a.AtLeast(60), a.AtLeast(40), a.AtLeast(70))
	if err != nil || b.Used() != 70 {
		t.Errorf("%d bytes counted, %v", b.Used(), err)
	}
	var limit *LimitError
	if err := a.AtLeast(101); !errors.As(err, &limit) || b.Used() != 70 {
		t.Errorf("beyond the limit: %v, %d bytes counted", err, b.Used())
	}
	a.Release()
	if b.Used() != 0 {
		t.Errorf("%d bytes stay counted", b.Used())
	}
	if unlimited := NewAccount(nil, "scratch"); unlimited.AtLeast(1<<50) != nil {
		t.Error("an account without a budget has a limit")
	}
}

// TestPart: what a part counts is counted in the whole too, and refused where either is full;
// limits may change.
func TestPart(t *testing.T) {
	whole := NewBudget(1 << 20)
	part := whole.Part(256 << 10)
	if err := part.Reserve("a", 300<<10); err == nil || whole.Used() != 0 {
		t.Errorf("more than the part: %v, %d bytes", err, whole.Used())
	}
	a, err := NewArena(part, "b", 128<<10)
	if err != nil || part.Used() != whole.Used() || part.Used() < 128<<10 {
		t.Fatal(err, part.Used(), whole.Used())
	}
	if err := whole.Reserve("c", 880<<10); err != nil {
		t.Fatal(err)
	}
	before := part.Used()
	if err := part.Reserve("d", 100<<10); err == nil || part.Used() != before {
		t.Errorf("the whole is full: %v, the part has %d bytes", err, part.Used())
	}
	whole.Bound(2 << 20)
	if err := part.Reserve("d", 100<<10); err != nil {
		t.Errorf("with more memory: %v", err)
	}
	whole.Release(880 << 10)
	if err := part.Close(); err != nil || part.Used() != whole.Used() || part.Used() < 128<<10 {
		t.Errorf("%v, %d and %d bytes are left of an arena of 128 KiB", err, part.Used(),
			whole.Used())
	}
	if err := a.Free(); err != nil || part.Used() != 0 || whole.Used() != 0 {
		t.Errorf("%v, %d and %d bytes are left", err, part.Used(), whole.Used())
	}
}
