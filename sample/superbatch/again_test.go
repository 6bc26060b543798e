package superbatch

import (
	"errors"
	"io"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/sample"
)

// TestAgain: batches come again as they were. They are not made again if one superbatch has all,
// whose rows are swept for once if a span has all.
func TestAgain(t *testing.T) {
	swept := func(bytes int64) func(c *Config) {
		return func(c *Config) {
			c.Costs, c.SweepBytes = Costs{Read: 1, Byte: 1e-9, Written: 1e-9}, bytes
		}
	}
	for name, of := range map[string]struct {
		change       func(c *Config)
		seqs, sweeps uint64 // in three rounds
	}{
		"kept":               {func(*Config) {}, 1, 0},
		"swept":              {swept(4 << 20), 1, 1},
		"two spans":          {swept(1 << 20), 1, 6},
		"two superbatches":   {func(c *Config) { c.Batches = 7 }, 6, 0},
		"one of few batches": {func(c *Config) { c.StartBatch = 10 }, 1, 0},
	} {
		c := testConfig(t)
		c.Epochs, c.Repeats, c.Slots = 1, true, 30
		of.change(&c)
		want := wantHashes(t, c)
		drawers := uint64(0)
		inner := c.Drawer
		c.Drawer = func(workers int, per, first, end uint64) (sample.Drawer, error) {
			drawers++
			return inner(workers, per, first, end)
		}
		decided := uint64(0)
		c.Decided = func(r Reading) {
			if r.Swept {
				decided++
			}
		}
		l := mustOpen(t, c)
		for round := range 3 {
			if round > 0 {
				if err := l.Again(); err != nil {
					t.Fatal(name, err)
				}
			}
			got, err := stepHashes(l.Epoch, 0, 1)
			if s := l.current; s != nil && s.span != nil && s.span.bytes() > 0 && name != "swept" {
				t.Errorf("%s: rows of %d bytes are kept", name, s.span.bytes())
			}
			if used := c.Budget.Used(); used > keptLoader {
				t.Errorf("%s: %d bytes are kept", name, used)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, round %d: %d of %d batches, %v", name, round, len(got), len(want),
					err)
			}
		}
		if l.builder.seq != of.seqs || drawers != of.seqs || decided != of.sweeps {
			t.Errorf("%s: %d superbatches, drawn %d times, swept %d times, want %d, %d", name,
				l.builder.seq, drawers, decided, of.seqs, of.sweeps)
		}
		closeAll(t, l)
	}
}

// TestAgainInTheMiddle: batches do not begin again before all were handed out.
func TestAgainInTheMiddle(t *testing.T) {
	c := testConfig(t)
	c.Repeats = true
	l := mustOpen(t, c)
	if err := l.Again(); err == nil {
		t.Error("begun again before the first batch")
	}
	closeAll(t, l)
}

// TestRest: what steps keep is given back before each superbatch, unless superbatches overlap.
func TestRest(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		c := testConfig(t)
		c.Batches, c.Overlap = 20, overlap
		rested := uint64(0)
		c.Rest = func() error { rested++; return nil }
		l := mustOpen(t, c)
		if _, err := stepHashes(l.Epoch, 0, c.Epochs); err != nil {
			t.Fatal(err)
		}
		if want := l.builder.seq; overlap && rested > 0 || !overlap && rested != want {
			t.Errorf("overlap %v: rested %d times for %d superbatches", overlap, rested, want)
		}
		closeAll(t, l)
	}
}

// greedy is a drawer that takes all heap that there is when it is closed, and gives it back.
type greedy struct {
	sample.Drawer
	budget *mem.Budget
}

func (g greedy) Close() error {
	all := mem.NewAccount(g.budget, "batches drawn together")
	for all.Add(64<<10) == nil {
		continue
	}
	all.Release()
	return g.Drawer.Close()
}

// TestDrawingGivesItsHeap: planning a superbatch has the heap with which its batches were drawn.
func TestDrawingGivesItsHeap(t *testing.T) {
	c := testConfig(t)
	want := wantHashes(t, c)
	c.Budget = mem.NewProcessBudget(96 << 20)
	c.AccessBytes, c.NextBytes = 4<<20, 4<<20
	inner := c.Drawer
	c.Drawer = func(workers int, per, first, end uint64) (sample.Drawer, error) {
		d, err := inner(workers, per, first, end)
		return greedy{d, c.Budget}, err
	}
	l := mustOpen(t, c)
	got, err := stepHashes(l.Epoch, 0, c.Epochs)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d of %d batches: %v", len(got), len(want), err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestEndedEpochsKeepNoLists: who refers to a batch that was released keeps none of its memory once
// the batches after it are made anew, also if it is released only then.
func TestEndedEpochsKeepNoLists(t *testing.T) {
	for _, late := range []bool{false, true} {
		l := mustOpen(t, testConfig(t))
		e, err := l.Epoch(0)
		if err != nil {
			t.Fatal(err)
		}
		var last *sample.Batch
		var all []*sample.Batch
		for {
			b, err := e.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if last = b; !late {
				b.Release()
			}
			if all = append(all, b); late {
				break
			}
		}
		if last.HeapBytes() == 0 {
			t.Error("a batch has no lists")
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		last.Release()
		for _, b := range all {
			if n := b.HeapBytes(); n > 0 {
				t.Errorf("late %v: %d bytes of a batch are kept", late, n)
			}
		}
		closeAll(t, l)
	}
}
