package devicecache

import (
	"slices"
	"testing"

	"gdb/sample"
	"gdb/sample/sampletest"
)

// mustShare opens rows that batches share before a cache.
func mustShare(t *testing.T, rows int) (*Shared, *sampletest.Rows) {
	t.Helper()
	c, from, _ := mustOpen(t)
	s := Share(c)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if rows > 0 {
		if err := s.Open(rows); err != nil {
			t.Fatal(err)
		}
	}
	return s, from
}

// gathered is a batch of some nodes, gathered with what is shared.
func gathered(t *testing.T, s *Shared, nodes []sample.NodeID) *sample.Batch {
	t.Helper()
	b := newBatch(nodes, SharedPlaces)
	if err := s.For(b).Gather(t.Context(), nodes, b.X); err != nil {
		t.Fatal(err)
	}
	return b
}

// checkShared compares what a step reads of a batch with the rows of its nodes.
func checkShared(t *testing.T, s *Shared, b *sample.Batch) {
	t.Helper()
	checkInput(t, s.Cache, b, s.Input)
}

// TestShared: batches have their rows, whichever the block has, and rows that a batch before had
// are not gathered again until the block is full.
func TestShared(t *testing.T) {
	for _, filled := range []bool{false, true} {
		s, from := mustShare(t, 500)
		if filled {
			if err := s.Fill(t.Context(), from, someNodes(60, 3), testNodes); err != nil {
				t.Fatal(err)
			}
		}
		checkShared(t, s, gathered(t, s, someNodes(200, 0)))
		checkShared(t, s, gathered(t, s, someNodes(600, 1))) // more than there is room for
		before := from.BytesRead()
		again := append(someNodes(200, 0), someNodes(10, 2)...)
		slices.Reverse(again)
		checkShared(t, s, gathered(t, s, again))
		if n := (from.BytesRead() - before) / (4 * testDim); n > 10 {
			t.Errorf("%d rows were read for 10 new ones", n)
		}
		checkShared(t, s, gathered(t, s, someNodes(200, 0))) // nothing new
		checkShared(t, s, gathered(t, s, someNodes(400, 5))) // which fills the block anew
		checkShared(t, s, gathered(t, s, someNodes(300, 5)))
		if u := s.Used(); u.Rows != 200+600+210+200+400+300 || u.Hits < 200+200+300 {
			t.Errorf("the counts are %+v", u)
		}
	}
}

// TestSharedLeftOut: a batch that no step is given takes nothing from the batches behind it, which
// were told that its rows are there.
func TestSharedLeftOut(t *testing.T) {
	s, _ := mustShare(t, 900)
	first := gathered(t, s, someNodes(100, 0))
	gathered(t, s, someNodes(300, 0))
	behind := gathered(t, s, someNodes(310, 0))
	last := gathered(t, s, someNodes(320, 0))
	checkShared(t, s, first)
	checkShared(t, s, behind)
	checkShared(t, s, last)
	hits := s.Used().Hits
	for range 2 { // the block is begun anew
		checkShared(t, s, gathered(t, s, someNodes(310, 0)))
	}
	if got := s.Used().Hits - hits; got != 310 {
		t.Errorf("%d rows hit afterwards", got)
	}
}

// TestSharedGivenUp: when a batch is gathered a second time into the same memory, the second
// gathering counts.
func TestSharedGivenUp(t *testing.T) {
	s, _ := mustShare(t, 900)
	b := gathered(t, s, someNodes(100, 0))
	b.Dense.NodeIDs = someNodes(90, 7)
	b.Prepared = newBatch(b.Dense.NodeIDs, SharedPlaces).Prepared
	if err := s.For(b).Gather(t.Context(), b.Dense.NodeIDs, b.X); err != nil {
		t.Fatal(err)
	}
	checkShared(t, s, b)
	checkShared(t, s, gathered(t, s, someNodes(100, 0)))
}
