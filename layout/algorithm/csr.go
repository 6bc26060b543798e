package algorithm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
)

// csr is a graph, or the lists of some of its nodes, in memory: 8 bytes a node, 4 an entry, and 4
// a weight. It is made of the lists of a store by a function that turns an entry into others.
type csr struct {
	first, end uint64
	off        []uint64 // one more than nodes
	nbrs       []uint32
	weights    []float32
	arena      *mem.Arena
}

// turned calls add with what an entry of the list of v makes: entries of other lists.
type turned func(v, u uint32, add func(owner, nbr uint32))

// inward makes the entries as they are.
func inward(v, u uint32, add func(owner, nbr uint32)) { add(v, u) }

// outward makes the edges that leave nodes.
func (g *Graph) outward(v, u uint32, add func(owner, nbr uint32)) {
	if g.Undirected {
		add(v, u)
	} else {
		add(u, v)
	}
}

// around makes edges that lead both ways.
func (g *Graph) around(v, u uint32, add func(owner, nbr uint32)) {
	if v == u {
		return
	}
	add(v, u)
	if !g.Undirected {
		add(u, v)
	}
}

// sizes counts the entries that lists are to have, in one pass.
func (g *Graph) sizes(ctx context.Context, by turned, out []uint32) error {
	return g.pass(ctx, func(_ int, v layout.NodeID, nbrs []layout.NodeID, _ []float32) error {
		add := func(owner, _ uint32) { atomic.AddUint32(&out[owner], 1) }
		for _, u := range nbrs {
			by(uint32(v), uint32(u), add)
		}
		return nil
	})
}

// unwanted marks the size of a list that is left out for now.
const unwanted = 1 << 31

// wantedSize returns the size of a list; 0 for one that is left out.
func wantedSize(size uint32) uint64 {
	if size&unwanted != 0 {
		return 0
	}
	return uint64(size)
}

// csrBytes returns the memory of lists with counts of nodes and entries.
func csrBytes(nodes, entries uint64, weighted bool) int64 {
	if weighted {
		entries *= 2
	}
	return int64(8*(nodes+1) + 4*entries)
}

// csr makes the lists of nodes from first to end-1 in one pass, given their sizes.
func (g *Graph) csr(ctx context.Context, by turned, sizes []uint32, first, end uint64,
	weighted bool) (c *csr, err error) {
	entries := uint64(0)
	for _, n := range sizes[first:end] {
		entries += wantedSize(n)
	}
	a, err := mem.NewArena(g.Budget, "lists in memory", csrBytes(end-first, entries, weighted))
	if err != nil {
		return nil, err
	}
	b, at := a.Bytes(), 8*(end-first+1)
	c = &csr{first: first, end: end, arena: a, off: mem.View[uint64](b[:at]),
		nbrs: mem.View[uint32](b[at : at+4*entries])}
	if weighted {
		c.weights = mem.View[float32](b[at+4*entries:])
	}
	for i := first; i+1 < end; i++ { // off[i+1] is where list i begins, and then its end
		c.off[i-first+2] = c.off[i-first+1] + wantedSize(sizes[i])
	}
	err = g.pass(ctx, func(_ int, v layout.NodeID, nbrs []layout.NodeID, weights []float32) error {
		var weight float32
		add := func(owner, nbr uint32) {
			if uint64(owner) < first || uint64(owner) >= end || sizes[owner]&unwanted != 0 {
				return
			}
			at := atomic.AddUint64(&c.off[uint64(owner)-first+1], 1) - 1
			c.nbrs[at] = nbr
			if weighted {
				c.weights[at] = weight
			}
		}
		for i, u := range nbrs {
			if weighted {
				weight = weights[i]
			}
			by(uint32(v), uint32(u), add)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, a.Free())
	}
	return c, nil
}

// lists makes the lists of all nodes in two passes, the sizes first; nil if there is no memory for
// them.
func (g *Graph) lists(ctx context.Context, by turned, sizes []uint32, weighted bool) (*csr, error) {
	if err := g.sizes(ctx, by, sizes); err != nil {
		return nil, err
	}
	c, err := g.csr(ctx, by, sizes, 0, g.Nodes, weighted)
	var full *mem.LimitError
	if errors.As(err, &full) {
		return nil, nil
	}
	return c, err
}

// each calls work with each list on several goroutines, each of which takes consecutive ones.
func (c *csr) each(ctx context.Context, g *Graph,
	work func(w int, v uint32, nbrs []uint32) error) error {
	return g.split(ctx, int(c.end-c.first), func(i int) uint64 { return c.off[i] },
		func(w, from, to int) error {
			var steps pace.Steps
			for v := uint32(c.first) + uint32(from); v < uint32(c.first)+uint32(to); v++ {
				nbrs := c.of(v)
				if err := work(w, v, nbrs); err != nil {
					return err
				}
				if err := steps.Took(ctx, 1+4*len(nbrs)); err != nil {
					return err
				}
			}
			return nil
		})
}

// of returns the list of a node.
func (c *csr) of(v uint32) []uint32 {
	i := uint64(v) - c.first
	return c.nbrs[c.off[i]:c.off[i+1]]
}

// simple sorts lists without weights, and leaves each neighbor in once.
func (c *csr) simple(ctx context.Context, g *Graph) error {
	n := int(c.end - c.first)
	err := g.split(ctx, n, func(i int) uint64 { return c.off[i] }, func(_, from, to int) error {
		var steps pace.Steps
		for i := from; i < to; i++ {
			list := c.nbrs[c.off[i]:c.off[i+1]]
			if !slices.IsSorted(list) {
				slices.Sort(list)
			}
			if err := steps.Took(ctx, 4*len(list)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	at, from := uint64(0), uint64(0)
	for i := range n {
		end := c.off[i+1]
		at += uint64(copy(c.nbrs[at:], slices.Compact(c.nbrs[from:end])))
		from, c.off[i+1] = end, at
	}
	return ctx.Err()
}

// ranges cuts the nodes into ranges whose lists take no more than room bytes each.
func (g *Graph) ranges(sizes []uint32, room int64) (ends []uint64, err error) {
	begin, entries := uint64(0), uint64(0)
	for v, size := range sizes {
		n := wantedSize(size)
		most := csrBytes(uint64(v)+1-begin, entries+n, false)
		if most > room && uint64(v) > begin {
			ends, begin, entries = append(ends, uint64(v)), uint64(v), 0
			most = csrBytes(1, n, false)
		}
		if entries += n; most > room || len(ends) > rangesMost {
			return nil, g.short(sizes, room)
		}
	}
	return append(ends, g.Nodes), nil
}

// rangesMost bounds the ranges, each of which takes a pass, or several.
const rangesMost = 64

// room is the memory that lists may take: most of what is free, since each pass takes some.
func (g *Graph) room() int64 {
	limit := g.Budget.Limit()
	if limit == 0 {
		return 1 << 62
	}
	free := limit - g.Budget.Used()
	return max(free-passBytes, free/2) * 3 / 4
}

// passBytes is about the memory of a pass: batches of lists.
const passBytes = 8 << 20

// short says what memory would do: room for the lists in a quarter of the ranges that there may be.
func (g *Graph) short(sizes []uint32, room int64) error {
	entries := uint64(0)
	for _, n := range sizes {
		entries += uint64(n &^ unwanted)
	}
	all := csrBytes(g.Nodes, entries, false)
	return fmt.Errorf("lists take %s in all, and there is room for %s at a time: raise "+
		"--memory by %s; with %s more, one pass does", mem.FormatSize(all), mem.FormatSize(room),
		mem.FormatSize(max(all*4/rangesMost-room, passBytes)),
		mem.FormatSize(max(all*4/3-room, 0)))
}

// neighborhoods hands out the neighbors of nodes in the undirected simple graph: from memory if all
// lists fit, else in ranges of nodes, each of which takes a pass.
type neighborhoods struct {
	g     *Graph
	sizes []uint32 // of the lists, with loops left out and parallel edges counted each
	whole *csr
}

// neighborhoods counts the sizes into an array, and takes what memory there is.
func (g *Graph) neighborhoods(ctx context.Context, sizes []uint32) (n *neighborhoods, err error) {
	n = &neighborhoods{g: g, sizes: sizes}
	if err := g.sizes(ctx, g.around, sizes); err != nil {
		return nil, err
	}
	n.whole, err = n.load(ctx, 0, g.Nodes)
	var full *mem.LimitError
	if errors.As(err, &full) {
		err = nil
	}
	return n, err
}

func (n *neighborhoods) load(ctx context.Context, first, end uint64) (*csr, error) {
	c, err := n.g.csr(ctx, n.g.around, n.sizes, first, end, false)
	if err == nil {
		err = c.simple(ctx, n.g)
	}
	if err != nil && c != nil {
		err = errors.Join(err, c.arena.Free())
	}
	return c, err
}

// each calls work with the neighbors of all nodes on up to threads goroutines, each of which
// takes consecutive ones. Where lists are not all in memory, it leaves out nodes that are not
// wanted as it begins; nil wants all.
func (n *neighborhoods) each(ctx context.Context, threads int, wanted func(v uint32) bool,
	work func(w int, v uint32, nbrs []uint32) error) error {
	g := *n.g
	g.Threads = threads
	if n.whole != nil {
		return n.whole.each(ctx, &g, work)
	}
	for v := range n.sizes {
		n.sizes[v] &^= unwanted
		if wanted != nil && !wanted(uint32(v)) {
			n.sizes[v] |= unwanted
		}
	}
	ends, err := g.ranges(n.sizes, g.room())
	if err != nil {
		return err
	}
	begin := uint64(0)
	for _, end := range ends {
		c, err := n.load(ctx, begin, end)
		if err != nil {
			return err
		}
		err = c.each(ctx, &g, func(w int, v uint32, nbrs []uint32) error {
			if n.sizes[v]&unwanted != 0 {
				return nil
			}
			return work(w, v, nbrs)
		})
		if err = errors.Join(err, c.arena.Free()); err != nil {
			return err
		}
		begin = end
	}
	return nil
}

// close gives the memory back.
func (n *neighborhoods) close() error {
	if n == nil || n.whole == nil {
		return nil
	}
	return n.whole.arena.Free()
}
