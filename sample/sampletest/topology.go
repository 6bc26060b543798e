// Package sampletest has a graph and feature rows in memory, for tests and measurements that need
// no store.
package sampletest

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/topology"
)

// Graph holds lists in arrays: the list of node i is Nbrs[Off[i]:Off[i+1]]. It is a
// topology.Reader.
type Graph struct {
	Off  []uint64
	Nbrs []layout.NodeID
	// Weights is parallel to Nbrs, or nil.
	Weights []float32
	// Types and Times are parallel to Nbrs too, or nil.
	Types []uint32
	Times []int64
}

// FromLists returns the graph of some lists, one for each node.
func FromLists(lists ...[]layout.NodeID) *Graph {
	g := &Graph{Off: []uint64{0}}
	for _, l := range lists {
		g.Nbrs = append(g.Nbrs, l...)
		g.Off = append(g.Off, uint64(len(g.Nbrs)))
	}
	return g
}

// RMAT returns the in-lists of an R-MAT graph of 2^scale nodes (probabilities .57, .19, .19, .05).
// Ids are permuted so that neighbors are not near each other. It takes 12 bytes of memory for each
// edge while it makes the graph, and 4 bytes afterwards.
func RMAT(scale int, edges uint64, seed uint64) *Graph {
	nodes := uint64(1) << scale
	perm := rng.NewPermutation(nodes, rng.Key(seed, nodes))
	ids := make([]layout.NodeID, nodes)
	for i := range ids {
		ids[i] = layout.NodeID(perm.At(uint64(i)))
	}
	g := &Graph{Off: make([]uint64, nodes+1), Nbrs: make([]layout.NodeID, edges)}
	pairs, stream := make([]uint64, edges), rng.NewStream(rng.Key(seed, edges))
	for i := range pairs {
		src, dst := RMATEdge(scale, &stream)
		pairs[i] = uint64(ids[dst])<<32 | uint64(ids[src])
		g.Off[ids[dst]+1]++
	}
	for i := range nodes {
		g.Off[i+1] += g.Off[i]
	}
	at := slices.Clone(g.Off)
	for _, p := range pairs {
		g.Nbrs[at[p>>32]] = layout.NodeID(p)
		at[p>>32]++
	}
	for i := range nodes {
		slices.Sort(g.Nbrs[g.Off[i]:g.Off[i+1]])
	}
	return g
}

// Weigh gives the edges weights that are uniform in (0, 1].
func (g *Graph) Weigh(seed uint64) {
	g.Weights = make([]float32, len(g.Nbrs))
	for i := range g.Weights {
		g.Weights[i] = float32(rng.Key(seed, uint64(i))>>40+1) / (1 << 24)
	}
}

// Classify gives the edges types below count. Lower types are more frequent.
func (g *Graph) Classify(count, seed uint64) {
	g.Types = make([]uint32, len(g.Nbrs))
	for i := range g.Types {
		a, b := rng.Key(seed, uint64(i))%count, rng.Key(seed, uint64(i), 1)%count
		g.Types[i] = uint32(min(a, b))
	}
}

// RMATEdge draws one edge by descending the quadrants of the adjacency matrix (Chakrabarti, Zhan
// and Faloutsos, "R-MAT"). It takes 16 random bits for each level; the probabilities are .57, .19,
// .19, .05.
func RMATEdge(scale int, stream *rng.Stream) (src, dst uint32) {
	const a, ab, abc = .57 * (1 << 16), .76 * (1 << 16), .95 * (1 << 16)
	x := uint64(0)
	for b := range scale {
		if b%4 == 0 {
			x = stream.Uint64()
		}
		p := float64(x & 0xffff)
		x = bits.RotateLeft64(x, -16)
		src, dst = src<<1, dst<<1
		switch {
		case p < a:
		case p < ab:
			dst |= 1
		case p < abc:
			src |= 1
		default:
			src, dst = src|1, dst|1
		}
	}
	return src, dst
}

// Nodes counts the lists.
func (g *Graph) Nodes() uint64 { return uint64(len(g.Off) - 1) }

// Edges counts the entries of all lists.
func (g *Graph) Edges() uint64 { return uint64(len(g.Nbrs)) }

// List returns the list of a node.
func (g *Graph) List(v layout.NodeID) []layout.NodeID { return g.Nbrs[g.Off[v]:g.Off[v+1]] }

// NewSession returns a reader.
func (g *Graph) NewSession() topology.Session { return &session{g: g} }

// Stats tells the memory held.
func (g *Graph) Stats() topology.Stats {
	return topology.Stats{Kind: "resident",
		Bytes: int64(len(g.Off)*8 + len(g.Nbrs)*4 + len(g.Weights)*4 + len(g.Types)*4 +
			len(g.Times)*8)}
}

// Close does nothing.
func (g *Graph) Close() error { return nil }

type session struct {
	g     *Graph
	nodes []layout.NodeID
	first []uint64 // where the list of each node asked for last starts
}

// Degrees finds the lists.
func (s *session) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	if cap(s.first) < len(nodes) {
		s.first = make([]uint64, len(nodes)+len(nodes)/4)
	}
	s.nodes, s.first = nodes, s.first[:len(nodes)]
	off, first := s.g.Off, s.first
	for i, v := range nodes {
		if uint64(v) >= s.g.Nodes() {
			return fmt.Errorf("sampletest: node %d is out of range", v)
		}
		a := off[v]
		first[i], deg[i] = a, uint32(off[v+1]-a)
	}
	return ctx.Err()
}

// Gather copies entries.
func (s *session) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	nbrs := s.g.Nbrs
	for i, a := range s.first {
		at, to := pos[off[i]:off[i+1]], out[off[i]:off[i+1]]
		for j, p := range at {
			to[j] = nbrs[a+uint64(p)]
		}
	}
	return ctx.Err()
}

// Columns gives whole lists. It is for the nodes that Degrees was called with last.
func (s *session) Columns(ctx context.Context, want topology.Columns,
	fn func(p topology.Part) error) error {
	switch {
	case want.Weights && s.g.Weights == nil:
		return fmt.Errorf("sampletest: %w", topology.ErrNoWeights)
	case want.Times && s.g.Times == nil:
		return fmt.Errorf("sampletest: %w", topology.ErrNoTimes)
	}
	for i, a := range s.first {
		end := s.g.Off[s.nodes[i]+1]
		if a == end || want.Skip != nil && want.Skip(i, 0) {
			continue
		}
		p := topology.Part{List: i}
		if want.Weights {
			p.Weights = s.g.Weights[a:end]
		}
		if want.Times {
			p.Times = s.g.Times[a:end]
		}
		if err := fn(p); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// GatherAttributes copies weights and types of entries.
func (s *session) GatherAttributes(ctx context.Context, off, pos []uint32,
	to topology.Attributes) error {
	switch {
	case to.Weights != nil && s.g.Weights == nil:
		return fmt.Errorf("sampletest: %w", topology.ErrNoWeights)
	case to.Types != nil && s.g.Types == nil:
		return fmt.Errorf("sampletest: %w", topology.ErrNoTypes)
	}
	if to.Places != nil {
		copy(to.Places[off[0]:off[len(off)-1]], pos[off[0]:])
	}
	for i, a := range s.first {
		for e := off[i]; e < off[i+1]; e++ {
			if to.Weights != nil {
				to.Weights[e] = s.g.Weights[a+uint64(pos[e])]
			}
			if to.Types != nil {
				to.Types[e] = s.g.Types[a+uint64(pos[e])]
			}
		}
	}
	return ctx.Err()
}

// Lists copies whole lists.
func (s *session) Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists, error) {
	l := &listfile.Lists{Off: []uint64{0}}
	for _, v := range nodes {
		l.Nbrs = append(l.Nbrs, s.g.List(v)...)
		l.Off = append(l.Off, uint64(len(l.Nbrs)))
	}
	return l, ctx.Err()
}

// Release does nothing.
func (s *session) Release() {}
