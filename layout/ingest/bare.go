package ingest

import (
	"context"
	"slices"
	"sync"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/stream"
	"gdb/layout/listfile"
)

// isBare reports whether edges that come sorted are written as they are: they carry nothing, none
// is dropped, and nothing but lists and counts is made of them.
func (t *listPass) isBare() bool {
	return t.width == 1 && !t.dedup.drops && t.placer.divider == nil && t.placer.numbers == nil &&
		!t.placer.ranked && !t.placer.carries && t.lists.degrees == nil && !t.tally.turns &&
		len(t.p.info.EdgeTables) == 0
}

// bareLists are some lists, or parts of them, on their way to the writer.
type bareLists struct {
	nodes []layout.NodeID
	lists listfile.Lists
}

// streamBare writes the lists of a source of bare edges that come sorted, list by list: what is
// done for each edge takes longer than coding them. Of two other goroutines, one counts edges, the
// other codes and writes them.
func (t *listPass) streamBare(ctx context.Context, from Sorted, watch *stream.PairWatch) error {
	var queues [3]chan *bareLists // to be filled, counted, written
	for i := range queues {
		queues[i] = make(chan *bareLists, groupBatches)
	}
	failed := make(chan error, len(queues))
	for range groupBatches {
		queues[0] <- &bareLists{}
	}
	var work sync.WaitGroup
	pass := func(i int, do func(*bareLists) error) {
		work.Go(func() {
			defer bug.Catch()
			to := queues[(i+1)%len(queues)]
			for b := range queues[i] {
				if err := do(b); err != nil {
					failed <- err
					break
				}
				to <- b
			}
			if i+1 < len(queues) {
				close(to)
			}
		})
	}
	pass(1, func(b *bareLists) error { return t.countBare(b, watch) })
	pass(2, t.writeBare)
	err := from.Lists(ctx, t.dir, func(c *source.EdgeChunk) error {
		select {
		case err := <-failed:
			return err
		case b := <-queues[0]:
			b.take(c, t.dir)
			queues[1] <- b
		}
		t.done += uint64(len(c.SrcInt))
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

// take makes lists of the edges of a chunk.
func (b *bareLists) take(c *source.EdgeChunk, dir layout.Direction) {
	nodes, nbrs := c.DstInt, c.SrcInt
	if dir == layout.Out {
		nodes, nbrs = nbrs, nodes
	}
	l := &b.lists
	b.nodes, l.Off, l.Nbrs = b.nodes[:0], l.Off[:0], l.Nbrs[:0]
	last := ^uint64(0)
	for i, v := range nodes {
		if v != last {
			b.nodes, l.Off = append(b.nodes, layout.NodeID(v)), append(l.Off, uint64(i))
			last = v
		}
		l.Nbrs = append(l.Nbrs, layout.NodeID(nbrs[i]))
	}
	l.Off = append(l.Off, uint64(len(l.Nbrs)))
}

// writeBare writes lists.
func (t *listPass) writeBare(b *bareLists) error {
	l := &t.lists
	for i, v := range b.nodes {
		from, to := b.lists.Off[i], b.lists.Off[i+1]
		if uint64(v) != l.node || l.degree == 0 {
			if err := l.endList(); err != nil {
				return err
			}
			l.node = uint64(v)
		}
		l.degree += to - from
		if err := l.writer.AddEdges(v, &b.lists, from, to); err != nil {
			return err
		}
	}
	return nil
}

// countBare counts the edges of in-lists, and hands their sources on.
func (t *listPass) countBare(b *bareLists, watch *stream.PairWatch) error {
	if t.dir != layout.In {
		return nil
	}
	y := &t.tally
	parts := t.out.Partitions
	for i, node := range b.nodes {
		v, nbrs := uint64(node), b.lists.Nbrs[b.lists.Off[i]:b.lists.Off[i+1]]
		for v >= uint64(parts[y.part].First)+parts[y.part].Nodes {
			y.part++
		}
		parts[y.part].Edges += uint64(len(nbrs))
		at, _ := slices.BinarySearch(nbrs, node)
		for ; at < len(nbrs) && nbrs[at] == node; at++ {
			t.out.Loops++
		}
		if watch != nil {
			watch.ObserveList(v, mem.View[uint32](mem.BytesOf(nbrs)))
		}
	}
	switch {
	case y.counts != nil:
		y.counts.AddIDs(mem.View[uint32](mem.BytesOf(b.lists.Nbrs)))
	case y.sorter != nil:
		y.batch = y.batch[:0]
		for _, u := range b.lists.Nbrs {
			y.batch = append(y.batch, uint64(u))
		}
		err := y.sorter.Add(y.batch)
		y.batch = y.batch[:0]
		return err
	}
	return nil
}
