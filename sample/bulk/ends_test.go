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
	if ok, err := g.take(t.Context(), 1, last, &d); !ok || err != nil {
		t.Fatalf("the last batch: %v, %v", ok, err)
	}
	g.cfg.Windows = func() (*topology.Windows, error) {
		return nil, errors.New("windows are opened after the end")
	}
	for _, epoch := range []uint64{2, 3} {
		if ok, err := g.take(t.Context(), epoch, 0, &d); ok || err != nil {
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

// TestMacroBytes compares what the plan takes for macro-batches with what two of them take once
// they are drawn, for few batches and for enough of them to have most nodes of the graph.
func TestMacroBytes(t *testing.T) {
	f := newMacroFixture(t)
	for name, c := range configs() {
		if len(c.Fanout) == 0 {
			continue
		}
		for _, n := range []uint64{3, 11} {
			b := f.batches(t, c, n, 1)
			var d sample.Dense
			mustTake(t, b, 0, 0, &d)
			b.work.Wait()
			used := b.cfg.Budget.Used()
			most := MacroBytes(int(n), &d, int64(d.Inner()), f.topo.Nodes())
			if most < used || most > 5*used/2 {
				t.Errorf("%s, %d batches: %d bytes are taken, %d were planned", name, n, used, most)
			}
		}
	}
}

// TestMacroBytesOfGraph: macro-batches have no more nodes than the graph, nor more lists.
func TestMacroBytesOfGraph(t *testing.T) {
	d := &sample.Dense{NodeIDs: make([]sample.NodeID, 10), Nbrs: make([]sample.NodeID, 40)}
	d.NodeIDOffsets = []uint32{0, 5, 10}
	of := func(count int, graph uint64) int64 { return MacroBytes(count, d, 5, graph) }
	if of(1, 1000) != 0 {
		t.Error("batches that are drawn by themselves take memory for macro-batches")
	}
	if a, b := of(4, 1<<30), of(8, 1<<30); b != 2*a {
		t.Errorf("4 batches take %d bytes, 8 take %d, want twice as much", a, b)
	}
	if a, b := of(40, 40), of(8, 40); a != b || a >= of(8, 1<<30) {
		t.Errorf("of 40 nodes, 40 batches take %d bytes, 8 batches %d, want as much", a, b)
	}
	if most := of(40, 20); most >= of(40, 40) {
		t.Errorf("of 20 nodes, %d bytes", most)
	}
}
