package exact

import (
	"context"
	"errors"
	"sort"

	"gdb/compute/program"
	"gdb/sample"
)

// heldLists holds the lists of a block of nodes while the table that they read is gone through
// window by window, so that lists are read once for a block, and not once for each window. The
// entries of a list are in the order of windows.
type heldLists struct {
	weights, types bool
	loops          bool

	off   []uint32 // where the list of each node begins
	at    []uint32 // its first entry that is in no window so far
	rows  []uint32 // of entries, in the table
	edges program.Edges
	count int // entries held
	lists int // lists that are held whole
}

// ask finds out what a layer reads of entries.
func (h *heldLists) ask(w *program.ExactLayer) {
	h.weights = w.Reads(program.EdgeWeight)
	h.types = w.ReadsTypes()
	h.loops = w.Loops()
}

// entryBytes returns what an entry takes.
func (h *heldLists) entryBytes() int {
	n := 4
	if h.weights {
		n += 4
	}
	if h.types {
		n += 8
	}
	return n
}

// add plans the memory, and returns the number of the first piece.
func (h *heldLists) add(c *carver, s sizes) int {
	first := c.add(s.block + 1)
	c.add(s.block)
	c.add(s.entries)
	for _, asked := range []bool{h.weights, h.types, h.types} {
		n := 0
		if asked {
			n = s.entries
		}
		c.add(n)
	}
	return first
}

// take takes the memory that add planned.
func (h *heldLists) take(c *carver, first int) {
	h.off, h.at, h.rows = c.words(first), c.words(first+1), c.words(first+2)
	h.edges = program.Edges{Weights: c.take(first + 3), Types: c.words(first + 4),
		Shares: c.take(first + 5)}
}

// errFull ends the reading of lists once there is no room for more.
var errFull = errors.New("exact: lists of a block are held")

// hold reads the lists of nodes, as many as there is room for, and returns how many.
func (l *layerPass) hold(ctx context.Context, nodes []sample.NodeID) (n int, err error) {
	h := &l.held
	h.count, h.lists, h.off[0] = 0, 0, 0
	for first := 0; first < len(nodes) && err == nil; first += l.chunk {
		some := nodes[first:min(first+l.chunk, len(nodes))]
		if h.weights || h.types {
			err = l.lists.each(ctx, some, false, func(p part) error {
				for i := range p.deg {
					if err := l.holdPart(nodes, first+i, &p, i); err != nil {
						return err
					}
				}
				return nil
			})
		} else {
			one := part{off: make([]uint32, 2)}
			err = l.lists.read(ctx, some, func(i int, nbrs []uint32) error {
				one.nbrs, one.off[1] = nbrs, uint32(len(nbrs))
				return l.holdPart(nodes, first+i, &one, 0)
			})
		}
		if err == nil {
			err = l.endLists(nodes, first+len(some))
		}
	}
	if errors.Is(err, errFull) {
		err = nil
	}
	return h.lists, err
}

// holdPart adds list k of a part to that of a node of the block.
func (l *layerPass) holdPart(nodes []sample.NodeID, node int, p *part, k int) error {
	h, lo, hi := &l.held, p.off[k], p.off[k+1]
	if lo == hi {
		return nil
	}
	if err := l.endLists(nodes, node); err != nil {
		return err
	}
	if h.count+int(hi-lo) > len(h.rows) {
		return errFull
	}
	to := h.rows[h.count : h.count+int(hi-lo)]
	copy(to, p.nbrs[lo:hi])
	var types []uint32
	if h.types {
		types = p.edges.Types[lo:hi]
	}
	l.mapRows(to, types)
	if h.weights {
		copy(h.edges.Weights[h.count:], p.edges.Weights[lo:hi])
	}
	if h.types {
		copy(h.edges.Types[h.count:], p.edges.Types[lo:hi])
		copy(h.edges.Shares[h.count:], p.edges.Shares[lo:hi])
	}
	h.count += len(to)
	return nil
}

// endLists ends the lists of the first n nodes of the block.
func (l *layerPass) endLists(nodes []sample.NodeID, n int) error {
	h, size := &l.held, uint32(len(l.window)/l.from.dim())
	for ; h.lists < n; h.lists++ {
		if h.loops {
			if h.count == len(h.rows) {
				return errFull
			}
			h.rows[h.count] = l.fromSet.Row(uint32(nodes[h.lists]))
			h.count++
		}
		first := h.off[h.lists]
		h.at[h.lists], h.off[h.lists+1] = first, uint32(h.count)
		list := byWindow{h: h, first: int(first), n: h.count - int(first), size: size}
		if list.disordered() {
			sort.Stable(&list)
		}
	}
	return nil
}

// byWindow sorts the entries of a list by window.
type byWindow struct {
	h        *heldLists
	first, n int
	size     uint32
}

// disordered reports whether rows do not ascend, as far as windows tell them apart. It moves an
// own entry at the end to its window first.
func (b *byWindow) disordered() bool {
	rows := b.h.rows[b.first : b.first+b.n]
	if n := len(rows) - 1; b.h.loops && n > 0 {
		own, at := rows[n], n
		for ; at > 0 && rows[at-1]/b.size > own/b.size; at-- {
			rows[at] = rows[at-1]
		}
		rows[at] = own
	}
	for i := 1; i < len(rows); i++ {
		if rows[i] < rows[i-1] && rows[i]/b.size != rows[i-1]/b.size {
			return true
		}
	}
	return false
}

func (b *byWindow) Len() int { return b.n }

func (b *byWindow) Less(i, j int) bool {
	return b.h.rows[b.first+i]/b.size < b.h.rows[b.first+j]/b.size
}

func (b *byWindow) Swap(i, j int) {
	i, j = b.first+i, b.first+j
	h, e := b.h, &b.h.edges
	h.rows[i], h.rows[j] = h.rows[j], h.rows[i]
	if h.weights {
		e.Weights[i], e.Weights[j] = e.Weights[j], e.Weights[i]
	}
	if h.types {
		e.Types[i], e.Types[j] = e.Types[j], e.Types[i]
		e.Shares[i], e.Shares[j] = e.Shares[j], e.Shares[i]
	}
}

// reach reports whether a list has an entry before row end that was in no window so far.
func (h *heldLists) reach(end uint32) bool {
	for i := range h.lists {
		if at := h.at[i]; at < h.off[i+1] && h.rows[at] < end {
			return true
		}
	}
	return false
}

// addHeld adds what lists have in the window from row base on, which is at rows. Lists that have
// nothing there are passed over, unless weights depend on their nodes, which come in a row then.
func (l *layerPass) addHeld(ctx context.Context, rows []float32, base uint32) error {
	h, n := &l.held, uint32(len(rows)/l.from.dim())
	for first := 0; first < h.lists; {
		p, next := l.cutHeld(first, base, base+n)
		if len(p.nbrs) > 0 {
			if err := l.accumulate(first, rows, p); err != nil {
				return err
			}
		}
		if first = next; ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// cutHeld returns the entries that lists have in rows base … end-1, renumbered from base, from the
// list of the first node on: of a chunk of nodes at most, and no more entries than a part has. next
// is the list that goes on.
func (l *layerPass) cutHeld(first int, base, end uint32) (p part, next int) {
	h, scored := &l.held, l.layer.ReadsOwn()
	l.off, l.idx, l.deg, l.of = append(l.off[:0], 0), l.idx[:0], l.deg[:0], l.of[:0]
	e := &l.edges
	e.Weights, e.Types, e.Shares = e.Weights[:0], e.Types[:0], e.Shares[:0]
	for next = first; next < h.lists && len(l.deg) < l.chunk; next++ {
		from, stop := h.at[next], h.off[next+1]
		if !scored && (from == stop || h.rows[from] >= end) {
			continue
		}
		at := from
		room := from + uint32(min(l.lists.limit-uint64(len(l.idx)), uint64(stop-from)))
		for ; at < room && h.rows[at] < end; at++ {
			l.idx = append(l.idx, h.rows[at]-base)
		}
		h.at[next] = at
		l.off = append(l.off, uint32(len(l.idx)))
		l.deg, l.of = append(l.deg, stop-h.off[next]), append(l.of, uint32(next))
		if h.weights {
			e.Weights = append(e.Weights, h.edges.Weights[from:at]...)
		}
		if h.types {
			e.Types = append(e.Types, h.edges.Types[from:at]...)
			e.Shares = append(e.Shares, h.edges.Shares[from:at]...)
		}
		if at < stop && h.rows[at] < end { // there is no room for the rest
			break
		}
	}
	p = part{off: l.off, nbrs: l.idx, deg: l.deg, edges: l.edges}
	if !scored {
		p.of = l.of
	}
	return p, next
}
