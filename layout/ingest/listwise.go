package ingest

import (
	"context"
	"slices"
	"sync"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/ingest/stream"
)

// takesLists reports whether edges that come sorted are written list by list: none is dropped, and
// nothing but lists and counts is made of them.
func (t *listPass) takesLists() bool {
	return !t.dedup.drops && t.placer.divider == nil && t.placer.numbers == nil &&
		!t.placer.ranked && !t.placer.carries && t.lists.degrees == nil && !t.tally.turns &&
		len(t.p.info.EdgeTables) == 0
}

// streamLists writes the lists of a source whose edges come sorted, list by list: what is done for
// each edge takes longer than coding them. Of two other goroutines, one counts edges, the other
// codes and writes them.
func (t *listPass) streamLists(ctx context.Context, from Sorted, watch *stream.PairWatch) error {
	var queues [3]chan *stream.ListRun // to be filled, counted, written
	for i := range queues {
		queues[i] = make(chan *stream.ListRun, groupBatches)
	}
	failed := make(chan error, len(queues))
	for range groupBatches {
		queues[0] <- &stream.ListRun{}
	}
	var work sync.WaitGroup
	pass := func(i int, do func(*stream.ListRun) error) {
		work.Go(func() {
			defer bug.Catch()
			to := queues[(i+1)%len(queues)]
			for r := range queues[i] {
				if err := do(r); err != nil {
					failed <- err
					break
				}
				to <- r
			}
			if i+1 < len(queues) {
				close(to)
			}
		})
	}
	pass(1, func(r *stream.ListRun) error { return t.countLists(r, watch) })
	pass(2, t.writeLists)
	err := from.Lists(ctx, t.dir, func(r *stream.ListRun) error {
		t.done += uint64(len(r.Nbrs))
		select {
		case err := <-failed:
			return err
		case other := <-queues[0]:
			*r, *other = *other, *r
			queues[1] <- other
		}
		t.p.Progress("write "+t.dir.String()+"-lists", t.done, t.total, "edges")
		return ctx.Err()
	})
	close(queues[1])
	work.Wait()
	if err == nil && len(failed) > 0 {
		err = <-failed
	}
	return err
}

// writeLists writes lists.
func (t *listPass) writeLists(r *stream.ListRun) error {
	l := &t.lists
	for i, v := range r.Nodes {
		from, to := r.Off[i], r.Off[i+1]
		if uint64(v) != l.node || l.degree == 0 {
			if err := l.endList(); err != nil {
				return err
			}
			l.node = uint64(v)
		}
		l.degree += to - from
		whole := i > 0 && i+1 < len(r.Nodes) // the first and the last may have more entries
		if err := l.writer.AddEdges(v, &r.Lists, from, to, whole); err != nil {
			return err
		}
	}
	return nil
}

// countLists puts entries of the same ends in the order that sorting gives, counts the edges of
// in-lists, and hands their sources on.
func (t *listPass) countLists(r *stream.ListRun, watch *stream.PairWatch) error {
	t.dedup.codec.SortParallel(r)
	if t.dir != layout.In {
		return nil
	}
	y := &t.tally
	parts := t.out.Partitions
	for i, node := range r.Nodes {
		v, nbrs := uint64(node), r.Nbrs[r.Off[i]:r.Off[i+1]]
		for v >= uint64(parts[y.part].First)+parts[y.part].Nodes {
			y.part++
		}
		parts[y.part].Edges += uint64(len(nbrs))
		if watch != nil {
			t.out.Loops += watch.ObserveList(v, mem.View[uint32](mem.BytesOf(nbrs)))
			continue
		}
		at, _ := slices.BinarySearch(nbrs, node)
		for ; at < len(nbrs) && nbrs[at] == node; at++ {
			t.out.Loops++
		}
	}
	if y.typed {
		for _, typ := range r.Types {
			t.out.Types[typ]++
		}
	}
	switch {
	case y.counts != nil:
		y.counts.AddIDs(mem.View[uint32](mem.BytesOf(r.Nbrs)))
	case y.sorter != nil:
		y.batch = y.batch[:0]
		for _, u := range r.Nbrs {
			y.batch = append(y.batch, uint64(u))
		}
		err := y.sorter.Add(y.batch)
		y.batch = y.batch[:0]
		return err
	}
	return nil
}
