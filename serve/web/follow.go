package web

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gdb/internal/bug"
	"gdb/layout"
)

// Follow has a server answer by the last snapshot of its store. The next one is opened beside the
// one that answers, takes its place for the requests that come then, and the one before is closed
// when its last request is answered.
type Follow struct {
	// Every is how long the store is not looked at after it was.
	Every time.Duration
	// Newer opens the last snapshot of the store if it is later than a number; nil if it is not. It
	// is closed when it is no longer served.
	Newer func(ctx context.Context, than uint64) (*layout.Store, error)

	mu  sync.Mutex
	now *Service
}

// begin has a service answer first, and looks for newer snapshots until end is called, which closes
// the last service if it is another one.
func (f *Follow) begin(ctx context.Context, first *Service) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	f.now = first
	ended := make(chan struct{})
	go func() {
		defer bug.Catch()
		defer close(ended)
		f.run(ctx)
	}()
	return func() {
		stop()
		<-ended
		if f.now == first {
			return
		}
		if err := f.now.retire(); err != nil {
			first.opt.Notes(err.Error())
		}
	}
}

// take returns the service that answers a request, and a function that says that it is answered.
func (f *Follow) take() (*Service, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.now
	s.uses.Add(1)
	return s, s.uses.Done
}

// replace has another service answer from now on, and closes the one before when its requests are
// answered.
func (f *Follow) replace(next *Service) error {
	f.mu.Lock()
	old := f.now
	f.now = next
	f.mu.Unlock()
	return old.retire()
}

// retire closes a service that takes no more requests, and its store.
func (s *Service) retire() error {
	s.uses.Wait()
	return errors.Join(s.Close(), s.opt.Store.Close())
}

// run looks for newer snapshots until ctx is cancelled.
func (f *Follow) run(ctx context.Context) {
	notes, said := f.now.opt.Notes, ""
	known := f.now.opt.Store.Meta().Snapshot
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(f.Every):
		}
		number, err := f.step(ctx, known)
		if known = max(known, number); err == nil || ctx.Err() != nil {
			continue
		}
		if text := err.Error(); text != said {
			said = text
			notes(text)
		}
	}
}

// step takes the next snapshot if there is one after known, and returns its number, also if it
// cannot be served; 0 if there is none.
func (f *Follow) step(ctx context.Context, known uint64) (uint64, error) {
	st, err := f.Newer(ctx, known)
	if err != nil {
		return 0, fmt.Errorf("serve: look for a newer snapshot: %w", err)
	}
	if st == nil {
		return 0, nil
	}
	number, old := st.Meta().Snapshot, f.now
	next := &Service{opt: old.opt, budget: old.budget, requests: old.requests,
		metrics: old.metrics, turns: old.turns, pages: old.pages}
	next.opt.Store = st
	if err := next.open(ctx); err != nil {
		return number, errors.Join(fmt.Errorf("snapshot %d cannot be served, and %d answers on: "+
			"%w", number, old.opt.Store.Meta().Snapshot, err), st.Close())
	}
	next.opt.Notes(fmt.Sprintf("snapshot %d answers", number))
	return number, f.replace(next)
}
