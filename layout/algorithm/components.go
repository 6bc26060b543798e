package algorithm

import (
	"context"
	"fmt"
	"sync/atomic"

	"gdb/internal/pace"
	"gdb/layout"
)

// Components returns the number of the component that each node is in: nodes that edges join, in
// whatever direction. Components are numbered from 0 in the order of their first nodes. It takes 4
// bytes a node and one pass, O(edges) but for short chains of a union-find whose links go to lesser
// nodes (Rem's, see Patwary, Blair and Manne, SEA 2010).
func Components(ctx context.Context, g *Graph) (*Column, error) {
	a, arrays, err := g.arrays("components", 1)
	if err != nil {
		return nil, err
	}
	s := sets(arrays[0])
	for v := range s {
		s[v] = uint32(v)
	}
	err = g.pass(ctx, func(_ int, v layout.NodeID, nbrs []layout.NodeID, _ []float32) error {
		for _, u := range nbrs {
			s.join(uint32(v), uint32(u))
		}
		return nil
	})
	if err != nil {
		return failed(a, err)
	}
	for v := range s {
		s[v] = s.find(uint32(v))
	}
	count, err := g.number(ctx, s)
	if err != nil {
		return failed(a, err)
	}
	return &Column{Ints: s, arena: a, Note: fmt.Sprintf("components: %d", count)}, nil
}

// number replaces the least node of the group of each node by numbers from 0, in the order of the
// groups' first nodes, and returns how many there are. A group's least node has itself. Deleted
// nodes, each of which is a group of its own, are not counted.
func (g *Graph) number(ctx context.Context, least []uint32) (count uint32, err error) {
	var steps pace.Steps
	for v, of := range least {
		if g.isDeleted(v) {
			least[v] = unreached
		} else if int(of) == v {
			least[v] = count
			count++
		} else {
			least[v] = least[of] // is numbered already
		}
		if err := steps.Took(ctx, 1); err != nil {
			return 0, err
		}
	}
	return count, nil
}

// sets are disjoint sets of nodes: each node has a lesser one of its set, or itself. Several
// goroutines may join at a time.
type sets []uint32

// find returns the node of a set that has itself, and shortens the way to it.
func (s sets) find(v uint32) uint32 {
	for {
		up := atomic.LoadUint32(&s[v])
		if up == v {
			return v
		}
		if upper := atomic.LoadUint32(&s[up]); upper != up {
			atomic.CompareAndSwapUint32(&s[v], up, upper)
		}
		v = up
	}
}

func (s sets) join(u, v uint32) {
	for {
		u, v = s.find(u), s.find(v)
		if u == v {
			return
		}
		if u > v {
			u, v = v, u
		}
		if atomic.CompareAndSwapUint32(&s[v], v, u) {
			return
		}
	}
}
