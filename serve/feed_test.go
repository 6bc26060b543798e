package serve

import (
	"context"
	"errors"
	"testing"

	"gdb/internal/dense"
	"gdb/internal/mem"
	"gdb/sample"
)

// oneNode is a batch of a node without neighbors.
func oneNode() *sample.Batch {
	return &sample.Batch{Seeds: []sample.NodeID{7}, Dense: sample.Dense{
		Lists: dense.Lists{NodeIDOffsets: []uint32{0, 1}}, NodeIDs: []sample.NodeID{7}}}
}

// TestDealtArenasComeBack: the arena of a batch that a client left before it took it is given back,
// whether the batch was ready then or waited to be.
func TestDealtArenasComeBack(t *testing.T) {
	for _, ready := range []int{0, 1} {
		budget := mem.NewBudget(0)
		stock := newStock(budget, 2)
		f := &feed{stock: stock, world: 1, times: &times{}}
		s := &seat{pool: stock.Pool(), taken: make(chan struct{}), ready: make(chan item, ready),
			round: &round{cancel: func() {}}}
		s.round.seats = []*seat{s}
		s.left, s.leave = context.WithCancelCause(t.Context())
		close(s.taken)
		done := make(chan error, 1)
		go func() { done <- f.dealOne(s, oneNode()) }()
		eventually(t, "no batch was made", func() bool { return f.times.batches.Load() == 1 })
		if ready > 0 {
			done <- errors.Join(<-done) // it is ready
		}
		s.end()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := s.pool.Close(); err != nil || budget.Used() != 0 {
			t.Errorf("%d ready: %v, %d bytes are still counted", ready, err, budget.Used())
		}
	}
}

// TestLostRanks: a rank is lost when its last client is gone without a word, until another comes.
func TestLostRanks(t *testing.T) {
	f := &feed{world: 2}
	steps := []struct {
		do   func()
		lost bool
	}{
		{func() { f.come(1) }, false},
		{func() { f.come(1) }, false},
		{func() { f.gone(1, true) }, false}, // the other is there
		{func() { f.gone(1, true) }, true},
		{func() { f.come(1) }, false},
		{func() { f.gone(1, false) }, false}, // it has said so
	}
	for i, step := range steps {
		if step.do(); f.mu.lost[1] != step.lost || f.mu.lost[0] {
			t.Errorf("after step %d rank 1 is lost: %v, rank 0: %v", i, f.mu.lost[1], f.mu.lost[0])
		}
	}
}

// TestLeftSeatIsNotTaken: who comes in the place of a client that was killed does not take its seat
// in the epoch under way, which would be empty, but waits until that is over.
func TestLeftSeatIsNotTaken(t *testing.T) {
	f := &feed{world: 2}
	r := &round{outset: outset{epoch: 3}, over: make(chan struct{}), cancel: func() {}}
	for range f.world {
		s := &seat{round: r, taken: make(chan struct{}), ready: make(chan item, 1)}
		s.left, s.leave = context.WithCancelCause(t.Context())
		r.seats = append(r.seats, s)
	}
	f.mu.round = r
	f.come(1)
	f.gone(1, true)
	f.come(1)
	s, wait, err := f.tryJoin(1, nil, outset{epoch: 3})
	if s != nil || wait != r.over || err != nil {
		t.Errorf("it gets seat %v and %v, and waits: %v; want to wait", s, err, wait == r.over)
	}
	if s, _, err := f.tryJoin(0, nil, outset{epoch: 3}); s != r.seats[0] || err != nil {
		t.Errorf("the other client gets %v, %v; want its seat", s, err)
	}
}
