package bulk

import (
	"errors"
	"testing"

	"gdb/layout/topology"
	"gdb/sample"
)

// TestPassesEnd: after the last batch nothing is drawn, and nothing is read for it.
func TestPassesEnd(t *testing.T) {
	f := newFixture(t)
	g, _ := f.group(t, sample.Config{Fanout: []int{2}, Seed: 9}, 5<<20, 64<<20, 0, nil, nil)
	var d sample.Dense
	last := g.cfg.PerEpoch - 1
	if ok, err := g.Take(t.Context(), 1, last, &d); !ok || err != nil {
		t.Fatalf("the last batch: %v, %v", ok, err)
	}
	g.cfg.Windows = func() (*topology.Windows, error) {
		return nil, errors.New("windows are opened after the end")
	}
	for _, epoch := range []uint64{2, 3} {
		if ok, err := g.Take(t.Context(), epoch, 0, &d); ok || err != nil {
			t.Errorf("a batch of epoch %d, after the end: %v, %v", epoch, ok, err)
		}
	}
}

// TestOldMacroBatches: a macro-batch of which a batch was never taken is dropped once the second
// one after it is asked for, and those of an epoch once the next one begins.
func TestOldMacroBatches(t *testing.T) {
	f := newMacroFixture(t)
	b := f.batches(t, configs()["plain"], 4, 1)
	held := func() map[place]bool {
		b.work.Wait() // those that are drawn ahead are old only when they are done
		b.mu.Lock()
		defer b.mu.Unlock()
		at := map[place]bool{}
		for p := range b.mu.macros {
			at[p] = true
		}
		return at
	}
	var d sample.Dense
	mustTake(t, b, 0, 0, &d)
	if at := held(); !at[place{0, 0}] || !at[place{0, 1}] {
		t.Fatalf("after the first batch: %v, want the first macro-batch and the next", at)
	}
	mustTake(t, b, 0, 8, &d)
	if at := held(); at[place{0, 0}] || !at[place{0, 2}] || !at[place{0, 3}] {
		t.Errorf("in the third macro-batch: %v", at)
	}
	mustTake(t, b, 0, 0, &d) // drawn anew
	held()
	mustTake(t, b, 1, 0, &d)
	for p := range held() {
		if p.epoch == 0 {
			t.Errorf("in epoch 1 there is %v of the epoch before", p)
		}
	}
}
