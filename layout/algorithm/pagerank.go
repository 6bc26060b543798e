package algorithm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
)

// RankOptions say how PageRank is computed. The zero value is ready to use.
type RankOptions struct {
	// Damping is the chance of a walk to follow an edge. Default .85.
	Damping float64
	// Tolerance ends the passes once ranks change by less in all. Default 1e-6.
	Tolerance float64
}

// rankSteps bounds the steps: what is left of an error then is Damping to their power.
const rankSteps = 500

// PageRank returns the share of time that walks along edges spend at each node, if they begin anew
// anywhere with a chance of 1-Damping a step, and at nodes that no edge leaves (Page et al., "The
// PageRank Citation Ranking", 1999). Parallel edges are as many ways. It takes 12 bytes a node and
// log(Tolerance)/log(Damping) steps at most, some 50 as a rule: where 8 more bytes a node
// and 4 an edge are free in memory, and else with a pass for each.
func PageRank(ctx context.Context, g *Graph, o RankOptions) (*Column, error) {
	if o.Damping == 0 {
		o.Damping = .85
	}
	if o.Tolerance == 0 {
		o.Tolerance = 1e-6
	}
	if !(o.Damping > 0 && o.Damping < 1) || !(o.Tolerance > 0) {
		return nil, fmt.Errorf("algorithm: damping %v, tolerance %v: damping is between 0 and 1, "+
			"and tolerance above 0", o.Damping, o.Tolerance)
	}
	a, arrays, err := g.arrays("PageRank", 3)
	if err != nil {
		return nil, err
	}
	r := &ranking{g: g, o: o, out: arrays[0], share: floats(arrays[1]), rank: floats(arrays[2])}
	steps, err := r.run(ctx)
	if r.lists != nil {
		err = errors.Join(err, r.lists.arena.Free())
	}
	if err != nil {
		return failed(a, err)
	}
	return &Column{Floats: r.rank, arena: a, Note: fmt.Sprintf("steps: %d", steps)}, nil
}

func floats(of []uint32) []float32 { return mem.View[float32](mem.BytesOf(of)) }

// ranking holds ranks as multiples of their mean, so that they keep their digits.
type ranking struct {
	g           *Graph
	o           RankOptions
	out         []uint32 // how many edges leave each node
	share, rank []float32
	dangling    float64 // the ranks of nodes that no edge leaves
	lists       *csr    // nil where there is no memory for them
}

func (r *ranking) run(ctx context.Context) (steps int, err error) {
	err = r.g.pass(ctx, func(_ int, v layout.NodeID, nbrs []layout.NodeID, _ []float32) error {
		for _, u := range nbrs {
			atomic.AddUint32(&r.out[u], 1)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if r.lists, err = r.g.lists(ctx, inward,
		mem.View[uint32](mem.BytesOf(r.share)), false); err != nil {
		return 0, err
	}
	for v := range r.rank {
		if !r.g.isDeleted(v) {
			r.rank[v] = 1
		}
	}
	n := float64(r.g.there())
	for steps = 1; steps < rankSteps; steps++ {
		if err := r.deal(ctx); err != nil {
			return 0, err
		}
		moved, err := r.step(ctx)
		if err != nil {
			return 0, err
		}
		if moved < r.o.Tolerance*n {
			break
		}
	}
	for v := range r.rank {
		if r.rank[v] = float32(float64(r.rank[v]) / n); r.g.isDeleted(v) {
			r.rank[v] = unknown
		}
	}
	return steps, nil
}

// deal shares out ranks among the edges that leave nodes.
func (r *ranking) deal(ctx context.Context) error {
	var steps pace.Steps
	r.dangling = 0
	for v, rank := range r.rank {
		if out := r.out[v]; out == 0 {
			r.dangling += float64(rank)
		} else {
			r.share[v] = rank / float32(out)
		}
		if err := steps.Took(ctx, 1); err != nil {
			return err
		}
	}
	return nil
}

// step gathers ranks along the edges, and returns by how much they change in all.
func (r *ranking) step(ctx context.Context) (moved float64, err error) {
	rest := 1 - r.o.Damping + r.o.Damping*r.dangling/float64(r.g.there())
	workers := make([]float64, max(1, r.g.Threads))
	gather := func(w int, v uint32, nbrs []uint32) error {
		if r.g.isDeleted(int(v)) {
			return nil // its rank stays 0
		}
		sum := 0.0
		for _, u := range nbrs {
			sum += float64(r.share[u])
		}
		next := rest + r.o.Damping*sum
		workers[w] += math.Abs(next - float64(r.rank[v]))
		r.rank[v] = float32(next)
		return nil
	}
	if r.lists != nil {
		err = r.lists.each(ctx, r.g, gather)
	} else {
		err = r.g.pass(ctx, func(w int, v layout.NodeID, nbrs []layout.NodeID, _ []float32) error {
			return gather(w, uint32(v), mem.View[uint32](mem.BytesOf(nbrs)))
		})
	}
	for _, m := range workers {
		moved += m
	}
	return moved, err
}
