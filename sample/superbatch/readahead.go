package superbatch

import (
	"context"
	"sync"

	"gdb/internal/bug"
	"gdb/internal/mem"
)

// readAhead reads groups of records in order, in a goroutine: one while another is used.
type readAhead struct {
	groups      [2]group
	used        *group // which the consumer has
	empty, full chan *group
	cancel      context.CancelFunc
	done        sync.WaitGroup
}

// group is what is read at once.
type group struct {
	records  []record
	payloads [][]byte
	parts    []int // what the records are, for who chose them
	fresh    bool  // so is this
	err      error
	buf      buffer
}

// add asks for a record.
func (g *group) add(file *reader, at ref, part int) {
	g.records, g.parts = append(g.records, record{file, at}), append(g.parts, part)
}

// newReadAhead begins to read. choose adds the records of the next group, and says whether there
// is one; it is called by the goroutine.
func newReadAhead(ctx context.Context, budget *mem.Budget, choose func(*group) bool) *readAhead {
	ctx, cancel := context.WithCancel(ctx)
	a := &readAhead{cancel: cancel, empty: make(chan *group, 2), full: make(chan *group, 2)}
	for i := range a.groups {
		a.groups[i].buf.budget = budget
		a.empty <- &a.groups[i]
	}
	a.done.Go(func() {
		defer bug.Catch()
		defer close(a.full)
		for {
			var g *group
			select {
			case g = <-a.empty:
			case <-ctx.Done():
				return
			}
			g.records, g.parts, g.fresh = g.records[:0], g.parts[:0], false
			if !choose(g) {
				return
			}
			g.payloads, g.err = g.buf.read(ctx, g.records...)
			a.full <- g // never blocks
			if g.err != nil {
				return
			}
		}
	})
	return a
}

// next gives the next group, or nil after the last; the one before is not used any more.
func (a *readAhead) next(ctx context.Context) (*group, error) {
	if a.used != nil {
		a.empty <- a.used // never blocks
		a.used = nil
	}
	g, ok := <-a.full
	if !ok {
		return nil, ctx.Err()
	}
	if g.err != nil {
		return nil, g.err
	}
	a.used = g
	return g, nil
}

// close ends the goroutine and gives the memory back.
func (a *readAhead) close() error {
	a.cancel()
	a.done.Wait()
	err := a.groups[0].buf.free()
	if other := a.groups[1].buf.free(); err == nil {
		err = other
	}
	return err
}
