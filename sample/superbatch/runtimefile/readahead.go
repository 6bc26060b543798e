package runtimefile

import (
	"context"
	"sync"

	"gdb/internal/bug"
	"gdb/internal/mem"
)

// Ahead reads groups of records in order, in a goroutine: one is read while another is used.
type Ahead struct {
	groups      [2]Group
	used        *Group // the group that the consumer has
	empty, full chan *Group
	cancel      context.CancelFunc
	done        sync.WaitGroup
}

// Group is records that are read together.
type Group struct {
	Records  []Record
	Payloads [][]byte
	Parts    []int // one number per record, by which the chooser knows it
	Fresh    bool  // set and read by the chooser; false for each new group
	err      error
	buf      Buffer
}

// Add adds a record to the group. part is the number by which the caller knows it.
func (g *Group) Add(file *Reader, at Ref, part int) {
	g.Records, g.Parts = append(g.Records, Record{File: file, At: at}), append(g.Parts, part)
}

// NewAhead begins to read. choose adds the records of the next group and returns whether there is
// one; it is called by Ahead's goroutine. The caller calls Close.
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

// Next returns the next group, or nil after the last. The group before must not be used any more.
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

// Close ends the goroutine and frees the memory.
func (a *Ahead) Close() error {
	a.cancel()
	a.done.Wait()
	err := a.groups[0].buf.Free()
	if other := a.groups[1].buf.Free(); err == nil {
		err = other
	}
	return err
}
