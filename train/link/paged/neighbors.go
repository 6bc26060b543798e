package paged

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/partition"
	"gdb/layout/topology"
)

const (
	// NeighborBytes is what an edge in memory takes: its ends as they were read, and an entry in
	// each direction.
	NeighborBytes = 8 + 2*4
	// RowBytes is what a row of the buffer takes: the places of its lists, its number, and the row
	// and the node of the number.
	RowBytes = 2*4 + 4 + 4 + 4
)

// Neighbors holds the neighbor lists of the nodes whose partitions are in memory, without
// neighbors in other partitions. An encoder draws from them while a set of partitions is trained on
// (Waleffe, Mohoney, Rekatsinas and Venkataraman, "Marius++", section 4.2).
//
// Nodes are numbered by their places in the set: partition by partition in the order of the set,
// and by rows within each. So a number does not depend on where in the buffer a partition is, and
// draws are the same after a run was stopped and resumed.
//
// One goroutine may use it at a time.
type Neighbors struct {
	buckets *partition.Buckets
	m       partition.Map
	nodes   uint64 // the most that a set has
	each    bool   // both ends list an edge; there is one direction
	account mem.Account

	parts []int // of the set
	first []uint32
	edges map[partition.Bucket]ends
	rows  []uint32 // row of the buffer of each number
	ids   []uint32 // node of each number
	at    []uint32 // number of each row of the buffer
	lists [2]lists // of incoming edges, and of outgoing ones

	read uint64 // edges read so far
}

// ends holds the ends of the edges of a bucket, as rows in their partitions.
type ends struct{ from, to []uint32 }

// NewNeighbors returns a set without partitions. bufferRows is how many rows the buffer has. The
// edges of an undirected graph are in the lists of both their ends.
func NewNeighbors(b *partition.Buckets, bufferRows int, undirected bool,
	budget *mem.Budget) (*Neighbors, error) {
	s := &Neighbors{buckets: b, m: b.Map(), nodes: uint64(bufferRows), each: undirected,
		account: mem.NewAccount(budget, "neighbors in memory"),
		edges:   map[partition.Bucket]ends{}, at: make([]uint32, bufferRows)}
	for i := range s.lists {
		l := &s.lists[i]
		l.Held = topology.Held{NodeCount: s.nodes, Place: l.place}
	}
	return s, s.reserve(0)
}

// reserve counts the memory of a number of edges, instead of what was counted before.
func (s *Neighbors) reserve(edges uint64) error {
	s.account.Release()
	err := s.account.Add(mem.HeapCost(NeighborBytes*int64(edges) + RowBytes*int64(s.nodes)))
	if err != nil {
		return fmt.Errorf("train: the neighbors of the partitions in memory: %w; give more "+
			"memory, or a smaller --partitions-in-memory", err)
	}
	return nil
}

// Close gives the memory back.
func (s *Neighbors) Close() error {
	s.account.Release()
	return nil
}

// Load makes the set hold the lists of some partitions. row returns the buffer row at
// which a partition begins. It reads the edges of buckets that were not in memory, and
// builds the lists anew.
func (s *Neighbors) Load(ctx context.Context, parts []int, row func(part int) uint32) error {
	s.place(parts, row)
	if slices.Equal(parts, s.parts) {
		return nil
	}
	s.parts = nil // until all is there
	if err := s.exchange(ctx, parts); err != nil {
		return err
	}
	s.lists[0].sum(s, parts, true, s.each)
	if !s.each {
		s.lists[1].sum(s, parts, false, true)
	}
	s.ids = s.ids[:0]
	for _, p := range parts {
		for row := range s.m.Size(p) {
			s.ids = append(s.ids, uint32(s.m.Node(p, row)))
		}
	}
	s.parts = slices.Clone(parts)
	return nil
}

// place numbers the nodes.
func (s *Neighbors) place(parts []int, row func(part int) uint32) {
	s.first, s.rows = mem.Resized(s.first, s.m.Parts()), s.rows[:0]
	for _, p := range parts {
		s.first[p] = uint32(len(s.rows))
		begin := row(p)
		for i := range uint32(s.m.Size(p)) {
			s.at[begin+i] = uint32(len(s.rows))
			s.rows = append(s.rows, begin+i)
		}
	}
}

// exchange drops the edges of buckets that leave, and reads those of buckets that enter.
func (s *Neighbors) exchange(ctx context.Context, parts []int) error {
	var enter []partition.Bucket
	stays, total := map[partition.Bucket]ends{}, uint64(0)
	for _, from := range parts {
		for _, to := range parts {
			k := partition.Bucket{From: uint16(from), To: uint16(to)}
			total += s.buckets.Count(k)
			if e, there := s.edges[k]; there {
				stays[k] = e
			} else {
				enter = append(enter, k)
			}
		}
	}
	s.edges = stays
	if total > math.MaxUint32 {
		return errors.New("train: more than 4,294,967,295 edges between the partitions in " +
			"memory: take a smaller --partitions-in-memory")
	}
	if err := s.reserve(total); err != nil {
		return err
	}
	fresh := make(map[partition.Bucket]ends, len(enter))
	for _, k := range enter {
		n := s.buckets.Count(k)
		fresh[k] = ends{make([]uint32, 0, n), make([]uint32, 0, n)}
	}
	err := s.buckets.Read(ctx, enter, func(k partition.Bucket, e edgefile.Edges) error {
		b := fresh[k]
		for i, src := range e.Src {
			_, from := s.m.Place(layout.NodeID(src))
			_, to := s.m.Place(layout.NodeID(e.Dst[i]))
			b.from, b.to = append(b.from, uint32(from)), append(b.to, uint32(to))
		}
		fresh[k] = b
		s.read += uint64(e.Len())
		return nil
	})
	if err != nil {
		return fmt.Errorf("train: read the neighbors of partitions: %w", err)
	}
	for k, e := range fresh {
		s.edges[k] = e
	}
	return nil
}

// Edges returns how many edges were read so far.
func (s *Neighbors) Edges() uint64 { return s.read }

// Number returns the number of a buffer row, whose partition must be in memory.
func (s *Neighbors) Number(row uint32) uint32 { return s.at[row] }

// Row returns the buffer row of a number.
func (s *Neighbors) Row(number uint32) uint32 { return s.rows[number] }

// Node returns the node of a number.
func (s *Neighbors) Node(number uint32) uint32 { return s.ids[number] }

// Readers returns the lists by number: of incoming edges and, with both, of outgoing ones, which an
// undirected graph does not have.
func (s *Neighbors) Readers(both bool) []topology.Reader {
	out := []topology.Reader{&s.lists[0], &s.lists[1]}
	if both {
		return out
	}
	return out[:1]
}
