package algorithm

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listfile"
)

// batchEntries and batchLeast are how many entries of lists are worked on together, with much and
// with little memory. A longer list is a batch of its own.
const (
	batchEntries = 1 << 18
	batchLeast   = 1 << 10
)

// batch returns how many entries to work on together.
func (g *Graph) batch() uint64 {
	if limit := g.Budget.Limit(); limit > 0 {
		return uint64(min(max((limit-g.Budget.Used())/64, batchLeast), batchEntries))
	}
	return batchEntries
}

// lists are whole lists of consecutive nodes.
type lists struct {
	first   layout.NodeID
	off     []uint64
	nbrs    []layout.NodeID
	weights []float32 // none where edges have no weights
	held    mem.Account
}

// of returns the list of node i, counted from the first.
func (l *lists) of(i int) []layout.NodeID { return l.nbrs[l.off[i]:l.off[i+1]] }

// nodes returns how many nodes there are.
func (l *lists) nodes() int { return len(l.off) - 1 }

// pass reads all lists once, and calls work with each, on several goroutines. The lists of a worker
// follow each other; w counts the workers from 0.
func (g *Graph) pass(ctx context.Context, work func(w int, v layout.NodeID, nbrs []layout.NodeID,
	weights []float32) error) error {
	batch := g.batch()
	b := &lists{off: []uint64{0}, held: mem.NewAccount(g.Budget, "lists that are worked on")}
	defer b.held.Release()
	flush := func(n int) error {
		err := g.split(ctx, n, func(i int) uint64 { return b.off[i] }, func(w, from, to int) error {
			var steps pace.Steps
			for i := from; i < to; i++ {
				var weights []float32
				if len(b.weights) > 0 {
					weights = b.weights[b.off[i]:b.off[i+1]]
				}
				if err := work(w, b.first+layout.NodeID(i), b.of(i), weights); err != nil {
					return err
				}
				if err := steps.Took(ctx, 1+len(b.of(i))); err != nil {
					return err
				}
			}
			return nil
		})
		b.drop(n)
		return err
	}
	err := g.Scan(ctx, func(first layout.NodeID, cont bool, l *listfile.Lists) error {
		if err := b.add(first, cont, l); err != nil {
			return err
		}
		// The last list may go on.
		if n := b.nodes() - 1; n > 0 && b.off[n]+uint64(n) >= batch {
			return flush(n)
		}
		return ctx.Err()
	})
	if err == nil {
		err = flush(b.nodes())
	}
	return err
}

// add appends lists.
func (b *lists) add(first layout.NodeID, cont bool, l *listfile.Lists) error {
	err := b.held.AtLeast(mem.HeapCost(8 * int64(len(b.nbrs)+len(l.Nbrs)+len(b.off)+len(l.Off))))
	if err != nil {
		return err
	}
	ends := l.Off[1:]
	switch {
	case b.nodes() == 0:
		b.first = first
	case cont:
		b.off = b.off[:len(b.off)-1]
	case uint64(first) != uint64(b.first)+uint64(b.nodes()):
		return fmt.Errorf("lists of node #%d where those of #%d are due", first,
			uint64(b.first)+uint64(b.nodes()))
	}
	at := uint64(len(b.nbrs)) - l.Off[0]
	for _, end := range ends {
		b.off = append(b.off, at+end)
	}
	b.nbrs = append(b.nbrs, l.Nbrs[l.Off[0]:l.Off[len(l.Off)-1]]...)
	b.weights = append(b.weights, l.Weights...)
	return nil
}

// drop forgets the first n lists.
func (b *lists) drop(n int) {
	at := b.off[n]
	b.first += layout.NodeID(n)
	b.nbrs = b.nbrs[:copy(b.nbrs, b.nbrs[at:])]
	if len(b.weights) > 0 {
		b.weights = b.weights[:copy(b.weights, b.weights[at:])]
	}
	b.off = b.off[:copy(b.off, b.off[n:])]
	for i := range b.off {
		b.off[i] -= at
	}
}

// split calls work with parts of n things on up to Threads goroutines. before returns how much work
// there is before a thing; a part is of equal work.
func (g *Graph) split(ctx context.Context, n int, before func(i int) uint64,
	work func(w, from, to int) error) error {
	parts := max(1, min(g.Threads, n))
	if parts == 1 {
		return work(0, 0, n)
	}
	all := before(n) + uint64(n)
	errs := make([]error, parts)
	var wg sync.WaitGroup
	from := 0
	for w := range parts {
		to := from
		for to < n && (before(to)+uint64(to))*uint64(parts) < all*uint64(w+1) {
			to++
		}
		if w == parts-1 {
			to = n
		}
		begin := from
		wg.Go(func() {
			defer bug.Catch()
			errs[w] = work(w, begin, to)
		})
		from = to
	}
	wg.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}
