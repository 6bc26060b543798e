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

// Weighted draws choose k entries of a list without replacement, one after the other, each with a
// probability proportional to its weight among those left. Efraimidis and Spirakis ("Weighted
// random sampling with a reservoir", A-ES) show that it is the same to give each entry a key of its
// own, an exponential variable with the weight as its rate, -ln(u)/w, and to take the k smallest.
// So nothing but (seed, epoch, batch, hop, node, position in the list) and the weight says what a
// key is, and the parts of a list may be read in any block size. Entries of weight 0 are never
// drawn.

// weigher chooses the entries of a hop as their weights come by.
type weigher struct {
	lists [2]topology.WeightReader // parallel to Sampler.sides
	visit func(i int, from uint32, w []float32) error

	// The hop: its key, frontier, degrees, and the range that each node has in entries, counted
	// from the first of the hop. base is the positions before the list at hand where a node has
	// two; nil: none.
	key   uint64
	front []NodeID
	deg   []uint32
	off   []uint32
	base  []uint32

	entries []entry
	taken   []uint32 // entries of each node so far
}

// entry is a neighbor that may be drawn. The entries of a node are a heap, the largest key first,
// once there are as many as its fanout.
type entry struct {
	key    float64
	pos    uint32
	weight float32
}

// over says that e is drawn after o. Equal keys are next to impossible; then the position decides.
func (e *entry) over(o *entry) bool {
	return e.key > o.key || e.key == o.key && e.pos > o.pos
}

func (s *Sampler) newWeigher() error {
	w := &weigher{}
	w.visit = w.list
	for i, side := range s.sides {
		r, ok := side.lists.(topology.WeightReader)
		if !ok {
			return fmt.Errorf("sample: weighted: this topology cannot read the weights of edges")
		}
		w.lists[i] = r
	}
	s.weigh = w
	return nil
}

// weighted writes to loc the entries drawn of each list of the frontier, in the order of the list,
// and to off how many they are: fewer than the fanout where fewer have a weight over 0. It returns
// the number of edges so far.
func (s *Sampler) weighted(ctx context.Context, key uint64, front []NodeID,
	off []uint32) (int, error) {
	w := s.weigh
	first, last := off[0], off[len(off)-1]
	if err := resize(&s.held, &w.entries, int(last-first)); err != nil {
		return 0, err
	}
	if err := resize(&s.held, &w.taken, len(front)); err != nil {
		return 0, err
	}
	clear(w.taken)
	w.key, w.front, w.deg, w.off, w.base = key, front, s.deg, off, nil
	for i := range s.sides {
		if i > 0 {
			w.base = s.sides[0].deg
		}
		if err := w.lists[i].Weights(ctx, w.visit); err != nil {
			return 0, err
		}
	}
	if err := resize(&s.held, &s.weights, int(last)); err != nil {
		return 0, err
	}
	edges := first
	var steps pace.Steps
	for i, n := range w.taken {
		if err := steps.Took(ctx, 1+4*int(n)); err != nil { // sorting n
			return 0, err
		}
		lo := off[i] - first // before off[i] is set: it grows no faster than edges
		off[i] = edges
		for _, e := range w.inOrder(lo, n) {
			s.loc[edges], s.weights[edges] = e.pos, e.weight
			edges++
		}
	}
	off[len(off)-1] = edges
	s.weights = s.weights[:edges]
	return int(edges), nil
}

// inOrder returns n entries of a node by position.
func (w *weigher) inOrder(lo, n uint32) []entry {
	chosen := w.entries[lo : lo+n]
	slices.SortFunc(chosen, func(a, b entry) int { return cmp.Compare(a.pos, b.pos) })
	return chosen
}

// list goes over a part of the list of front[i]. Most entries of a long list are turned down
// without a logarithm: the draw is u = 1-v, and -ln(1-v) ≥ v, so a key over the largest of the heap
// is seen in v alone.
func (w *weigher) list(i int, from uint32, weights []float32) error {
	lo, room := w.off[i]-w.off[0], w.off[i+1]-w.off[i]
	if w.base != nil {
		from += w.base[i]
	}
	if uint64(from)+uint64(len(weights)) > uint64(w.deg[i]) {
		return fmt.Errorf("node #%d: weights of entries %d to %d of a list of %d", w.front[i], from,
			uint64(from)+uint64(len(weights)), w.deg[i])
	}
	key, heap, limit := rng.Sub(w.key, uint64(w.front[i])), w.entries[lo:lo+room], math.Inf(1)
	n, all := w.taken[i], room == w.deg[i]
	if n == room {
		limit = heap[0].key * margin
	}
	for j, x := range weights {
		pos, rate := from+uint32(j), float64(x)
		if !(x > 0 && x <= math.MaxFloat32) {
			if x == 0 {
				continue
			}
			return weightError(w.front[i], pos, x)
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
		e := entry{key: -math.Log(1-v) / rate, pos: pos, weight: x}
		if n < room {
			heap[n] = e
			n++
			if n == room {
				limit = heapify(heap)
			}
		} else if heap[0].over(&e) {
			heap[0] = e
			sink(heap, 0)
			limit = heap[0].key * margin
		}
	}
	w.taken[i] = n
	return nil
}

// weightError is the error of a weight that is not a finite number from 0 on.
func weightError(node NodeID, pos uint32, weight float32) error {
	return fmt.Errorf("node #%d: entry %d of its list has the weight %v: weights to draw by are "+
		"finite and not negative; draw uniformly, or ingest others", node, pos, weight)
}

// margin is more than the rounding of a key and of what it is compared with.
const margin = 1 + 1e-12

// heapify makes a heap of entries, and returns its limit.
func heapify(heap []entry) (limit float64) {
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	return heap[0].key * margin
}

// sink moves entry i of a heap down to its place.
func sink(heap []entry, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && heap[child+1].over(&heap[child]) {
			child++
		}
		if !heap[child].over(&heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
