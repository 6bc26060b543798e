package paged

import (
	"slices"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/partition"
	"gdb/layout/topology"
)

// lists holds the neighbor lists of a set in one direction: the list of number i is entries
// start[i] up to start[i+1].
type lists struct {
	topology.Held
	start   []uint32
	entries []layout.NodeID
}

// place returns where the list of a number is. Numbers that the set does not have have no list.
func (l *lists) place(v layout.NodeID) (first uint64, degree uint32, err error) {
	if int(v)+1 >= len(l.start) {
		return 0, 0, nil
	}
	return uint64(l.start[v]), l.start[v+1] - l.start[v], nil
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
	l.EntryCount, l.Bytes = uint64(edges), 4*int64(len(l.start)+len(l.entries))
	l.Blocks = slices.AppendSeq(l.Blocks[:0], slices.Chunk(l.entries, topology.BlockEntries))
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
