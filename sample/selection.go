package sample

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gdb/internal/pace"
	"gdb/internal/rng"
	"gdb/layout/topology"
)

// Draw is how the neighbors of a node are drawn.
type Draw uint8

const (
	// DrawUniform draws every subset with the same probability; see positions.go.
	DrawUniform Draw = iota
	// DrawWeighted draws by the weights of edges; see byWeight.
	DrawWeighted
	// DrawLatest takes the entries of the latest times; see byTime.
	DrawLatest
)

// reads returns the columns of lists that entries are chosen by.
func (d Draw) reads() topology.Columns {
	return topology.Columns{Weights: d == DrawWeighted, Times: d == DrawLatest}
}

// ChooseBytes returns the memory in bytes that choosing takes, for each neighbor that fanouts
// allow.
func (d Draw) ChooseBytes() int64 {
	if d == DrawUniform {
		return 0
	}
	return entryBytes
}

// selection chooses the entries of a hop while whole lists are read: each entry gets a key, and the
// entries with the least keys are taken, up to the fanout. A key depends only on the hop, the entry
// and its position, so the parts of a list may be read in any block size.
type selection struct {
	lists [2]topology.ColumnReader // parallel to Sampler.sides
	reads topology.Columns
	visit func(p topology.Part) error // adds the entries of a part to entries

	// These describe the hop: its key, frontier and degrees, and off, each node's range in entries,
	// counted from the first of the hop. base is the number of positions before the current list
	// where a node has two lists, nil at the first.
	key   uint64
	front []NodeID
	owner func(list NodeID) NodeID // of a list of front
	deg   []uint32
	off   []uint32
	base  []uint32

	entries []entry
	taken   []uint32 // number of entries of each node so far
}

// entry is a neighbor that may be drawn. Once a node has as many entries as its fanout, they form a
// heap with the largest key first.
type entry struct {
	key    int64
	pos    uint32
	weight float32 // set if draws are by weight
}

// entryBytes is the size of an entry, in bytes.
const entryBytes = 16

// over reports whether e is given up before o: it has the larger key or, of equal keys, the earlier
// position.
func (e *entry) over(o *entry) bool {
	return e.key > o.key || e.key == o.key && e.pos < o.pos
}

func (s *Sampler) newSelection() error {
	c := &selection{reads: s.cfg.Draw.reads(), owner: s.front.nodeOf}
	what := "weights"
	switch s.cfg.Draw {
	case DrawWeighted:
		c.visit = c.byWeight
	case DrawLatest:
		what = "times"
		c.visit, c.reads.Skip = c.byTime, c.takesAll
	default:
		return fmt.Errorf("sample: unknown way %d to draw", s.cfg.Draw)
	}
	for i, side := range s.sides {
		r, ok := side.lists.(topology.ColumnReader)
		if !ok {
			return topology.Unread(what)
		}
		c.lists[i] = r
	}
	s.selection = c
	return nil
}

// forget frees the scratch memory.
func (c *selection) forget() {
	*c = selection{lists: c.lists, reads: c.reads, visit: c.visit, owner: c.owner}
}

// takesAll reports whether the fanout covers the lists of node i of the frontier.
func (c *selection) takesAll(i int, _ uint32) bool { return c.off[i+1]-c.off[i] == c.deg[i] }

// byKey writes the chosen entries of each list of the frontier to loc, in the order of the list,
// and sets off accordingly. A draw by weight takes fewer entries than the fanout if fewer have a
// weight above 0. It returns the number of edges so far.
func (s *Sampler) byKey(ctx context.Context, key uint64, front []NodeID, off []uint32) (int,
	error) {
	c := s.selection
	first, last := off[0], off[len(off)-1]
	if err := resize(&s.held, &c.entries, int(last-first)); err != nil {
		return 0, err
	}
	if err := resize(&s.held, &c.taken, len(front)); err != nil {
		return 0, err
	}
	clear(c.taken)
	c.key, c.front, c.deg, c.off, c.base = key, front, s.deg, off, nil
	for i := range s.sides {
		if i > 0 {
			c.base = s.sides[0].deg
		}
		if err := c.lists[i].Columns(ctx, c.reads, c.visit); err != nil {
			return 0, err
		}
	}
	if c.reads.Weights {
		if err := resize(&s.held, &s.weights, int(last)); err != nil {
			return 0, err
		}
	}
	edges, err := s.takeSelected(ctx, off)
	if c.reads.Weights && err == nil {
		s.weights = s.weights[:edges]
	}
	return int(edges), err
}

// takeSelected writes the positions of the chosen entries to loc and, of draws by weight, their
// weights to weights.
func (s *Sampler) takeSelected(ctx context.Context, off []uint32) (edges uint32, err error) {
	c := s.selection
	first := off[0]
	edges = first
	var steps pace.Steps
	lo := uint32(0)
	for i, n := range c.taken {
		room := off[i+1] - first - lo
		if err := steps.Took(ctx, 1+4*int(room)); err != nil { // sorting n
			return 0, err
		}
		off[i] = edges // it grows no faster than what the lists have room for
		if c.reads.Skip != nil && room == c.deg[i] {
			for p := range room {
				s.loc[edges] = p
				edges++
			}
		}
		for _, e := range c.inOrder(lo, n) {
			s.loc[edges] = e.pos
			if c.reads.Weights {
				s.weights[edges] = e.weight
			}
			edges++
		}
		lo += room
	}
	off[len(off)-1] = edges
	return edges, nil
}

// inOrder returns the n entries of a node that begin at lo, sorted by position.
func (c *selection) inOrder(lo, n uint32) []entry {
	chosen := c.entries[lo : lo+n]
	slices.SortFunc(chosen, func(a, b entry) int { return cmp.Compare(a.pos, b.pos) })
	return chosen
}

// begin returns the room for the entries of a node, how many are taken so far, and the position of
// the first of the n entries in a part of its list.
func (c *selection) begin(p *topology.Part, n int) (room heap, taken, from uint32, err error) {
	i := p.List
	lo, hi := c.off[i]-c.off[0], c.off[i+1]-c.off[0]
	if from = p.From; c.base != nil {
		from += c.base[i]
	}
	if uint64(from)+uint64(n) > uint64(c.deg[i]) {
		err = fmt.Errorf("node #%d: entries %d to %d of a list of %d", c.front[i], from,
			uint64(from)+uint64(n), c.deg[i])
	}
	return c.entries[lo:hi], c.taken[i], from, err
}

// heap is the room for the entries of a node. Once it is full, it is a heap with the largest key
// first.
type heap []entry

// put adds e to the n entries taken so far if there is room or its key is smaller than the largest,
// and returns how many are taken then.
func (h heap) put(n uint32, e entry) uint32 {
	switch {
	case int(n) < len(h):
		h[n] = e
		if n++; int(n) == len(h) {
			for i := len(h)/2 - 1; i >= 0; i-- {
				h.sink(i)
			}
		}
	case h[0].over(&e):
		h[0] = e
		h.sink(0)
	}
	return n
}

// sink moves entry i down to its place in the heap.
func (h heap) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].over(&h[child]) {
			child++
		}
		if !h[child].over(&h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// Weighted draws choose k entries of a list without replacement, one after the other, each with a
// probability proportional to its weight among those left. Efraimidis and Spirakis ("Weighted
// random sampling with a reservoir", A-ES) show that it is the same to give each entry a key of its
// own, an exponential variable with the weight as its rate, -ln(u)/w, and to take the k smallest.
// So a key depends only on (seed, epoch, batch, hop, node, position in the list) and the weight.
// Entries of weight 0 are never drawn. Keys are positive, so their bits sort as the keys do.

// byWeight chooses among the entries of a part of a node's list. Most entries of a long list are
// rejected without a logarithm: the draw is u = 1-v, and -ln(1-v) ≥ v, so v alone may show that the
// key is above the largest of the heap.
func (c *selection) byWeight(p topology.Part) error {
	heap, n, from, err := c.begin(&p, len(p.Weights))
	if err != nil {
		return err
	}
	node := c.front[p.List]
	key, limit := rng.Sub(c.key, uint64(node)), math.Inf(1)
	full, all := uint32(len(heap)), uint32(len(heap)) == c.deg[p.List]
	if n == full {
		limit = heap.limit()
	}
	for j, x := range p.Weights {
		pos, rate := from+uint32(j), float64(x)
		if !(x > 0 && x <= math.MaxFloat32) {
			if x == 0 {
				continue
			}
			return weightError(c.owner(node), pos, x)
		}
		if all {
			heap[n] = entry{pos: pos, weight: x}
			n++
			continue
		}
		v := rng.Unit(rng.Sub(key, uint64(pos)))
		if v > limit*rate {
			continue
		}
		drawn := math.Float64bits(-math.Log(1-v) / rate)
		if n = heap.put(n, entry{key: int64(drawn), pos: pos, weight: x}); n == full {
			limit = heap.limit()
		}
	}
	c.taken[p.List] = n
	return nil
}

// limit returns the bound above which v/weight rejects an entry once the heap is full: see
// byWeight.
func (h heap) limit() float64 { return math.Float64frombits(uint64(h[0].key)) * margin }

// margin exceeds the rounding errors of a key and of what it is compared with.
const margin = 1 + 1e-12

// weightError says that a weight is not a finite number from 0 on.
func weightError(node NodeID, pos uint32, weight float32) error {
	return fmt.Errorf("node #%d: entry %d of its list has the weight %v: weights to draw by are "+
		"finite and not negative; draw uniformly, or ingest others", node, pos, weight)
}

// The latest entries of a list are those with the largest times and, among equal times, those at
// later positions. They depend on the list alone, so every batch of every epoch takes the same.

// byTime chooses among the entries of a part of a node's list. Flipping all bits of a time reverses
// the order without overflow, so the least key belongs to the largest time.
func (c *selection) byTime(p topology.Part) error {
	heap, n, from, err := c.begin(&p, len(p.Times))
	if err != nil {
		return err
	}
	for j, t := range p.Times {
		n = heap.put(n, entry{key: ^t, pos: from + uint32(j)})
	}
	c.taken[p.List] = n
	return nil
}
