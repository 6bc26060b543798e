package algorithm

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"gdb/internal/mem"
)

// Cores returns the core number of each node in the undirected simple graph: the greatest k of a
// subgraph that the node is in and in which each node has k neighbors or more. Numbers begin at
// degrees and fall to what the numbers of neighbors support, until none falls (Wen et al., "I/O
// Efficient Core Graph Decomposition at Web Scale", ICDE 2016, SemiCore). It takes 12 bytes a
// node, the lists of a range of nodes, or of all where they fit, and as many rounds as falls
// need to spread.
func Cores(ctx context.Context, g *Graph) (c *Column, err error) {
	a, arrays, err := g.arrays("cores", 3)
	if err != nil {
		return nil, err
	}
	s := &shrinking{core: arrays[0], again: arrays[1], most: make([][]uint32, max(1, g.Threads))}
	near, err := g.neighborhoods(ctx, arrays[2])
	if err == nil {
		err = s.run(ctx, near, g.Threads)
	}
	if err = errors.Join(err, near.close()); err != nil {
		return failed(a, err)
	}
	return &Column{Ints: s.core, arena: a, Note: fmt.Sprintf("rounds: %d", s.rounds)}, nil
}

// shrinking holds what core numbers may be at most.
type shrinking struct {
	core   []uint32
	again  []uint32   // 1 for nodes with a neighbor that has fallen
	most   [][]uint32 // of each worker: how many neighbors have a number
	rounds int
}

func (s *shrinking) run(ctx context.Context, near *neighborhoods, threads int) error {
	err := near.each(ctx, threads, nil, func(_ int, v uint32, nbrs []uint32) error {
		atomic.StoreUint32(&s.core[v], uint32(len(nbrs)))
		s.again[v] = 1
		return nil
	})
	var fell atomic.Bool
	fell.Store(true)
	for fell.Load() && err == nil {
		fell.Store(false)
		s.rounds++
		err = near.each(ctx, threads, s.waits, func(w int, v uint32, nbrs []uint32) error {
			if !atomic.CompareAndSwapUint32(&s.again[v], 1, 0) {
				return nil
			}
			had := atomic.LoadUint32(&s.core[v])
			has := s.supported(w, had, nbrs)
			if has == had {
				return nil
			}
			atomic.StoreUint32(&s.core[v], has)
			for _, u := range nbrs {
				if atomic.LoadUint32(&s.core[u]) > has {
					atomic.StoreUint32(&s.again[u], 1)
				}
			}
			fell.Store(true)
			return nil
		})
	}
	return err
}

// waits reports whether a node has a neighbor that has fallen.
func (s *shrinking) waits(v uint32) bool { return s.again[v] != 0 }

// supported returns the greatest number up to most that as many neighbors have or exceed.
func (s *shrinking) supported(w int, most uint32, nbrs []uint32) uint32 {
	counts := mem.Resize(s.most[w], int(most)+1)
	s.most[w] = counts
	clear(counts)
	for _, u := range nbrs {
		counts[min(most, atomic.LoadUint32(&s.core[u]))]++
	}
	have := uint32(0)
	for k := most; k > 0; k-- {
		if have += counts[k]; have >= k {
			return k
		}
	}
	return 0
}
