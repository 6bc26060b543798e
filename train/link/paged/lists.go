package paged

import (
	"context"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/partition"
	"gdb/layout/topology"
)

// lists holds the neighbor lists of a set in one direction: the list of number i is entries
// start[i] up to start[i+1].
type lists struct {
	start   []uint32
	entries []layout.NodeID
}

// sum builds the lists of a set. The order of entries depends on the set alone: it follows the
// pairs of partitions and the file within a pair, from the last edge to the first.
func (l *lists) sum(s *Neighbors, parts []int, incoming, outgoing bool) {
	count := len(s.rows)
	l.start = mem.Resized(l.start, count+1)
	clear(l.start)
	edges := uint32(0)
	s.between(parts, incoming, outgoing, func(of, _ uint32) {
		l.start[of]++
		edges++
	})
	end := uint32(0)
	for i, n := range l.start {
		end += n
		l.start[i] = end // lists are filled from their ends
	}
	l.entries = mem.Resized(l.entries, int(edges))
	s.between(parts, incoming, outgoing, func(of, neighbor uint32) {
		l.start[of]--
		l.entries[l.start[of]] = layout.NodeID(neighbor)
	})
}

// between calls fn with the numbers of the ends of each edge: first the end whose list
// gets the edge.
func (s *Neighbors) between(parts []int, incoming, outgoing bool, fn func(of, neighbor uint32)) {
	for _, from := range parts {
		for _, to := range parts {
			e := s.edges[partition.Bucket{From: uint16(from), To: uint16(to)}]
			for i, head := range e.from {
				a, b := s.first[from]+head, s.first[to]+e.to[i]
				if incoming {
					fn(b, a)
				}
				if outgoing {
					fn(a, b)
				}
			}
		}
	}
}

// of returns the list of a number; nil if the set does not have the number.
func (l *lists) of(v layout.NodeID) []layout.NodeID {
	if int(v)+1 >= len(l.start) {
		return nil
	}
	return l.entries[l.start[v]:l.start[v+1]]
}

// reader reads the lists of the set in memory.
type reader struct {
	s *Neighbors
	l *lists
}

// Nodes returns the most numbers that sets have.
func (r reader) Nodes() uint64 { return r.s.nodes }

// Edges returns the number of entries in memory.
func (r reader) Edges() uint64 { return uint64(len(r.l.entries)) }

// Stats returns how much memory the lists take.
func (r reader) Stats() topology.Stats {
	return topology.Stats{Kind: "partitions",
		Bytes: 4 * int64(len(r.l.start)+len(r.l.entries))}
}

// NewSession returns a reader for one goroutine.
func (r reader) NewSession() topology.Session { return &session{l: r.l} }

// Close does nothing: the memory belongs to the set.
func (r reader) Close() error { return nil }

// session reads lists for one goroutine.
type session struct {
	l     *lists
	nodes []layout.NodeID
	out   listfile.Lists
}

// Degrees writes how many neighbors in memory each node has.
func (s *session) Degrees(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	s.nodes = nodes
	for i, v := range nodes {
		deg[i] = uint32(len(s.l.of(v)))
	}
	return ctx.Err()
}

// Gather copies entries.
func (s *session) Gather(ctx context.Context, off, pos []uint32, out []layout.NodeID) error {
	for i, v := range s.nodes {
		list := s.l.of(v)
		for e := off[i]; e < off[i+1]; e++ {
			out[e] = list[pos[e]]
		}
	}
	return ctx.Err()
}

// Lists copies whole lists.
func (s *session) Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists, error) {
	l := &s.out
	l.Off, l.Nbrs = append(l.Off[:0], 0), l.Nbrs[:0]
	for _, v := range nodes {
		l.Nbrs = append(l.Nbrs, s.l.of(v)...)
		l.Off = append(l.Off, uint64(len(l.Nbrs)))
	}
	return l, ctx.Err()
}

// Release does nothing.
func (s *session) Release() {}
