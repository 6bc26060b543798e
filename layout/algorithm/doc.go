// Package algorithm computes a value for every node of all lists of a store: components, PageRank,
// triangles, cores, communities, distances. Lists are read in order, again for each pass; what a
// node has takes memory, and each function says how much. Threads share the work of a pass.
//
// Values mean what networkx's functions of the same names mean. Where the graph is taken as
// undirected and simple, edges lead both ways, loops do not count, and parallel edges are one.
package algorithm

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"

	"github.com/RoaringBitmap/roaring/v2"
)

// Graph is what is computed with.
type Graph struct {
	Nodes uint64
	// Deleted are nodes that have no edges, and that do not count; nil for none.
	Deleted *roaring.Bitmap
	// Undirected says that each edge is in the lists of both its ends.
	Undirected bool
	// Scan calls fn with the in-lists, as listfile.Scan does.
	Scan func(ctx context.Context,
		fn func(first layout.NodeID, cont bool, l *listfile.Lists) error) error
	// Budget counts the memory, and Threads bounds the goroutines that work.
	Budget  *mem.Budget
	Threads int
}

// isDeleted reports whether a node was deleted.
func (g *Graph) isDeleted(v int) bool { return g.Deleted != nil && g.Deleted.Contains(uint32(v)) }

// there returns how many nodes there are, without deleted ones.
func (g *Graph) there() uint64 {
	if g.Deleted == nil {
		return g.Nodes
	}
	return g.Nodes - g.Deleted.GetCardinality()
}

// Column is a value of each node. The owner calls Free.
type Column struct {
	Ints   []uint32
	Longs  []uint64
	Floats []float32
	// Note says how it was computed.
	Note  string
	arena *mem.Arena
}

// At returns the value of a node, an int64 or a float64; nil for one that is not reached.
func (c *Column) At(v layout.NodeID) any {
	switch {
	case c.Ints != nil && c.Ints[v] != unreached:
		return int64(c.Ints[v])
	case c.Longs != nil:
		return int64(c.Longs[v])
	case c.Floats != nil && c.Floats[v] != unknown:
		return float64(c.Floats[v])
	}
	return nil
}

// Free gives the memory back.
func (c *Column) Free() error { return c.arena.Free() }

// arrays returns memory for n arrays of 4 bytes a node.
func (g *Graph) arrays(what string, n int) (*mem.Arena, [][]uint32, error) {
	a, err := mem.NewArena(g.Budget, what, 4*int64(n)*int64(g.Nodes))
	if err != nil {
		return nil, nil, fmt.Errorf("algorithm: %w", err)
	}
	all, out := mem.View[uint32](a.Bytes()), make([][]uint32, n)
	for i := range out {
		out[i] = all[uint64(i)*g.Nodes : uint64(i+1)*g.Nodes]
	}
	return a, out, nil
}

// failed frees memory, and returns the error.
func failed(a *mem.Arena, err error) (*Column, error) {
	return nil, errors.Join(fmt.Errorf("algorithm: %w", err), a.Free())
}
