package runtimefile

import (
	"context"
	"sync"

	"gdb/internal/bug"
	"gdb/internal/mem"
)

// Ahead reads groups of records in order, in a goroutine: one while another is used.
type Ahead struct {
	groups      [2]Group
	used        *Group // which the consumer has
	empty, full chan *Group
	cancel      context.CancelFunc
	done        sync.WaitGroup
}

// Group is what is read at once.
type Group struct {
	Records  []Record
	Payloads [][]byte
	Parts    []int // what the records are, for who chose them
	Fresh    bool  // so is this
	err      error
	buf      Buffer
}

// Add asks for a record.
func (g *Group) Add(file *Reader, at Ref, part int) {
	g.Records, g.Parts = append(g.Records, Record{File: file, At: at}), append(g.Parts, part)
}

// NewAhead begins to read. choose adds the records of the next group, and says whether there
// is one; it is called by the goroutine.
func NewAhead(ctx context.Context, budget *mem.Budget, choose func(*Group) bool) *Ahead {
	ctx, cancel := context.WithCancel(ctx)
	a := &Ahead{cancel: cancel, empty: make(chan *Group, 2), full: make(chan *Group, 2)}
	for i := range a.groups {
		a.groups[i].buf.Budget = budget
		a.empty <- &a.groups[i]
	}
	a.done.Go(func() {
		defer bug.Catch()
		defer close(a.full)
		for {
			var g *Group
			select {
			case g = <-a.empty:
			case <-ctx.Done():
				return
			}
			g.Records, g.Parts, g.Fresh = g.Records[:0], g.Parts[:0], false
			if !choose(g) {
				return
			}
			g.Payloads, g.err = g.buf.Read(ctx, g.Records...)
			a.full <- g // never blocks
			if g.err != nil {
				return
			}
		}
	})
	return a
}

// Next gives the next group, or nil after the last; the one before is not used any more.
func (a *Ahead) Next(ctx context.Context) (*Group, error) {
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

// Close ends the goroutine and gives the memory back.
func (a *Ahead) Close() error {
	a.cancel()
	a.done.Wait()
	err := a.groups[0].buf.Free()
	if other := a.groups[1].buf.Free(); err == nil {
		err = other
	}
	return err
}
