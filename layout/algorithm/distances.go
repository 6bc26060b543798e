package algorithm

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
)

// What nodes have that no way leads to.
const (
	unreached = math.MaxUint32
	unknown   = math.MaxFloat32
)

// Distances returns how many edges a shortest way along edges from a node to each other has. It
// takes 12 bytes a node and 12 and 4 an edge for out-lists in memory, which it searches in breadth;
// without memory for these, 4 bytes a node, and a pass for each edge of the longest way, or fewer.
func Distances(ctx context.Context, g *Graph, from layout.NodeID) (*Column, error) {
	a, arrays, err := g.arrays("distances", 2)
	if err != nil {
		return nil, err
	}
	dist := arrays[0]
	for v := range dist {
		dist[v] = unreached
	}
	dist[from] = 0
	c, err := g.lists(ctx, g.outward, arrays[1], false)
	var note string
	switch {
	case err != nil:
	case c != nil:
		note = "in memory"
		err = errors.Join(breadth(ctx, c, dist, arrays[1], uint32(from)), c.arena.Free())
	default:
		note, err = g.relax(ctx, func(v layout.NodeID, nbrs []layout.NodeID, _ []float32) bool {
			best := atomic.LoadUint32(&dist[v])
			had := best
			for _, u := range nbrs {
				if d := atomic.LoadUint32(&dist[u]); d < unreached && d+1 < best {
					best = d + 1
				}
			}
			atomic.StoreUint32(&dist[v], best)
			return best < had
		})
	}
	if err != nil {
		return failed(a, err)
	}
	return &Column{Ints: dist, Note: note, arena: a}, nil
}

// relax makes passes until improve finds nothing for any node, and says how many.
func (g *Graph) relax(ctx context.Context, improve func(v layout.NodeID, nbrs []layout.NodeID,
	weights []float32) bool) (string, error) {
	var found atomic.Bool
	found.Store(true)
	passes := 0
	for ; found.Load(); passes++ {
		found.Store(false)
		err := g.pass(ctx, func(_ int, v layout.NodeID, nbrs []layout.NodeID,
			weights []float32) error {
			if improve(v, nbrs, weights) {
				found.Store(true)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("passes: %d", passes), nil
}

// breadth searches in breadth from a node. It writes the nodes that it meets to queue.
func breadth(ctx context.Context, c *csr, dist, queue []uint32, from uint32) error {
	queue = append(queue[:0], from)
	var steps pace.Steps
	for at := 0; at < len(queue); at++ {
		v := queue[at]
		for _, u := range c.of(v) {
			if dist[u] == unreached {
				dist[u] = dist[v] + 1
				queue = append(queue, u)
			}
		}
		if err := steps.Took(ctx, 1+len(c.of(v))); err != nil {
			return err
		}
	}
	return nil
}

// ErrNegative says that an edge has a weight with which no way is shortest.
var ErrNegative = errors.New("an edge has a weight below 0, or none: shortest paths want others")

// ShortestPaths returns the least sum of weights of a way along edges from a node to each other.
// Weights are 0 or more. It takes 8 bytes a node, and 12 and 8 an edge for out-lists in memory,
// which it searches from the nearest node on (Dijkstra, 1959), with 16 bytes for a node that is
// met; without memory for these, a pass for each edge of the longest way, or fewer. Sums are of
// float32.
func ShortestPaths(ctx context.Context, g *Graph, from layout.NodeID) (*Column, error) {
	a, arrays, err := g.arrays("distances", 2)
	if err != nil {
		return nil, err
	}
	dist := floats(arrays[0])
	for v := range dist {
		dist[v] = unknown
	}
	dist[from] = 0
	note := "in memory"
	c, err := g.lists(ctx, g.outward, arrays[1], true)
	if c != nil {
		err = errors.Join(g.nearest(ctx, c, dist, uint32(from)), c.arena.Free())
	}
	var full *mem.LimitError
	if err == nil && c == nil || errors.As(err, &full) {
		note, err = g.relaxWeights(ctx, arrays[0])
	}
	if err != nil {
		return failed(a, err)
	}
	return &Column{Floats: dist, Note: note, arena: a}, nil
}

// relaxWeights makes passes until no distance, of which the bits are given, gets less.
func (g *Graph) relaxWeights(ctx context.Context, dist []uint32) (string, error) {
	var wrong atomic.Bool
	note, err := g.relax(ctx, func(v layout.NodeID, nbrs []layout.NodeID, weights []float32) bool {
		had := math.Float32frombits(atomic.LoadUint32(&dist[v]))
		best := had
		for i, u := range nbrs {
			if !(weights[i] >= 0) {
				wrong.Store(true)
				return false
			}
			best = min(best, math.Float32frombits(atomic.LoadUint32(&dist[u]))+weights[i])
		}
		atomic.StoreUint32(&dist[v], math.Float32bits(best))
		return best < had
	})
	if wrong.Load() {
		err = errors.Join(err, ErrNegative)
	}
	return note, err
}

// nearest searches from the nearest node on.
func (g *Graph) nearest(ctx context.Context, c *csr, dist []float32, from uint32) error {
	for _, w := range c.weights {
		if !(w >= 0) {
			return ErrNegative
		}
	}
	held := mem.NewAccount(g.Budget, "nodes that were met")
	defer held.Release()
	next := &nodesByDistance{{0, from}}
	var steps pace.Steps
	for len(*next) > 0 {
		at := heap.Pop(next).(reached)
		if at.dist > dist[at.node] {
			continue // a shorter way was found
		}
		i := uint64(at.node) - c.first
		for k := c.off[i]; k < c.off[i+1]; k++ {
			if u, d := c.nbrs[k], at.dist+c.weights[k]; d < dist[u] {
				dist[u] = d
				heap.Push(next, reached{d, u})
			}
		}
		if err := held.AtLeast(mem.HeapCost(16 * int64(cap(*next)))); err != nil {
			return err
		}
		if err := steps.Took(ctx, 8+int(c.off[i+1]-c.off[i])); err != nil {
			return err
		}
	}
	return nil
}

// reached is a node, and how far it is at most.
type reached struct {
	dist float32
	node uint32
}

// nodesByDistance is a heap with the nearest on top.
type nodesByDistance []reached

func (h nodesByDistance) Len() int           { return len(h) }
func (h nodesByDistance) Less(i, j int) bool { return h[i].dist < h[j].dist }
func (h nodesByDistance) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push adds a node: see heap.Interface.
func (h *nodesByDistance) Push(x any) { *h = append(*h, x.(reached)) }

// Pop takes the last node: see heap.Interface.
func (h *nodesByDistance) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
