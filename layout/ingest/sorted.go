package ingest

import (
	"context"
	"sync"

	"gdb/internal/bug"
	"gdb/layout"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/stream"
)

// Sorted is a store that is written anew and gives its edges as lists have them, so that they need
// not be sorted.
type Sorted interface {
	Again
	// Lists calls fn with all lists of a direction, in order. Entries with the same ends come in
	// any order, and in one run where they carry values. fn may exchange the memory of a run for
	// that of another.
	Lists(ctx context.Context, dir layout.Direction, fn func(*stream.ListRun) error) error
}

// EdgesOf makes the entries of lists edges of a chunk, which shares the memory of their values.
func EdgesOf(r *stream.ListRun, dir layout.Direction, c *source.EdgeChunk) {
	nodes, nbrs := c.DstInt[:0], c.SrcInt[:0]
	if dir == layout.Out {
		nodes, nbrs = nbrs, nodes
	}
	for i, v := range r.Nodes {
		for _, u := range r.Nbrs[r.Off[i]:r.Off[i+1]] {
			nodes, nbrs = append(nodes, uint64(v)), append(nbrs, uint64(u))
		}
	}
	if c.DstInt, c.SrcInt = nodes, nbrs; dir == layout.Out {
		c.DstInt, c.SrcInt = nbrs, nodes
	}
	c.TypeInt = c.TypeInt[:0]
	for _, t := range r.Types {
		c.TypeInt = append(c.TypeInt, uint32(t))
	}
	c.Weight, c.Time = r.Weights, r.Times
}

// sorted returns the source if its edges come sorted, else nil.
func (p *pipeline) sorted() Sorted {
	s, is := p.again.(Sorted)
	if !is || s.Parts() != nil || p.info.Ranged || !p.info.RowIDs || p.codec.Split ||
		p.codec.Numbered {
		return nil
	}
	return s
}

// stream writes the lists of a source whose edges come sorted.
func (t *listPass) stream(ctx context.Context, from Sorted) error {
	_, isLevel := from.(belower)
	var watch *stream.PairWatch
	if t.dir == layout.In && !isLevel && !from.Meta().Undirected { // there, each has its reverse
		watch = stream.NewPairWatch()
	}
	if watch != nil {
		defer func() { t.out.Pairs = watch.Counts() }()
	}
	t.total = t.p.info.Edges
	if t.takesLists() {
		return t.streamLists(ctx, from, watch)
	}
	g := &group{t: t, full: make(chan []uint64, groupBatches), free: make(chan []uint64,
		groupBatches), failed: make(chan error, 1)}
	for range groupBatches {
		g.free <- nil
	}
	var work sync.WaitGroup
	work.Go(func() {
		defer bug.Catch()
		g.write()
	})
	var c source.EdgeChunk
	err := from.Lists(ctx, t.dir, func(r *stream.ListRun) error {
		EdgesOf(r, t.dir, &c)
		if watch != nil {
			watch.Observe(c.SrcInt, c.DstInt)
		}
		if err := g.add(&c); err != nil {
			return err
		}
		return ctx.Err()
	})
	if err == nil {
		err = g.flush()
	}
	close(g.full)
	work.Wait()
	if err == nil && len(g.failed) > 0 {
		err = <-g.failed
	}
	return err
}

// groupBatches is how many batches of records are under way, and groupWords their size.
const groupBatches, groupWords = 3, 1 << 14

// group collects records, and puts those of the same ends in the order that sorting gives. Another
// goroutine writes them.
type group struct {
	t     *listPass
	batch []uint64
	first int // of the records that have the ends of the last one

	full, free chan []uint64
	failed     chan error // gets the first error of writing
}

// write writes batches until there are no more, or it fails.
func (g *group) write() {
	for batch := range g.full {
		if err := g.t.add(batch); err != nil {
			g.failed <- err
			return
		}
		g.free <- batch[:0]
	}
}

// add adds edges.
func (g *group) add(c *source.EdgeChunk) error {
	t, width := g.t, g.t.width
	nodes, nbrs := c.DstInt, c.SrcInt
	if t.dir == layout.Out {
		nodes, nbrs = nbrs, nodes
	}
	var rec [extsort.WordsMax]uint64
	for i, node := range nodes {
		rec[0] = node<<32 | nbrs[i]
		if width > 1 {
			typ, weight, time := uint16(0), float32(0), int64(0)
			if c.TypeInt != nil {
				typ = uint16(c.TypeInt[i])
			}
			if c.Weight != nil {
				weight = c.Weight[i]
			}
			if c.Time != nil {
				time = c.Time[i]
			}
			t.dedup.codec.Pack(rec[1:], typ, weight, time, 0, 0)
		}
		if n := len(g.batch); n > 0 && g.batch[n-width] != rec[0] {
			g.end()
			if n+width > groupWords {
				if err := g.flush(); err != nil {
					return err
				}
			}
		}
		g.batch = append(g.batch, rec[:width]...)
	}
	return nil
}

// end sorts the records of the same ends.
func (g *group) end() {
	if g.t.width > 1 && len(g.batch)-g.first > g.t.width {
		extsort.SortGroup(g.batch[g.first:], g.t.width)
	}
	g.first = len(g.batch)
}

// flush hands the records on.
func (g *group) flush() error {
	g.end()
	g.full <- g.batch
	select {
	case g.batch = <-g.free:
	case err := <-g.failed:
		return err
	}
	g.first = 0
	return nil
}
