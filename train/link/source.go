package link

import (
	"context"

	"gdb/train/link/triples"
)

// Part is what an epoch trains on at a time: some edges, and the rows of the entities that are in
// memory. Ends of edges are given by numbers of rows. It is valid until the next part is asked for.
type Part struct {
	Edges    []triples.Triple
	Entities *Table
	// Spans lists the rows that entities have. Other rows may not be used.
	Spans []Span
}

// Span is a range of rows.
type Span struct{ Row, Count uint32 }

// Source gives an epoch its edges and rows. Every edge is in one part of each epoch. It may be used
// by one goroutine.
type Source interface {
	// Parts returns how many parts an epoch has.
	Parts(epoch uint64) int
	// Part loads a part. The rows of the previous part may not be changed any more.
	Part(ctx context.Context, epoch uint64, part int) (*Part, error)
}

// Memory is the source with all rows in memory: an epoch is one part.
type Memory struct{ part Part }

// NewMemory returns a source of these edges and entities.
func NewMemory(edges []triples.Triple, entities *Table) *Memory {
	return &Memory{Part{Edges: edges, Entities: entities,
		Spans: []Span{{Count: uint32(entities.Rows)}}}}
}

// Parts returns 1.
func (m *Memory) Parts(uint64) int { return 1 }

// Part returns the part with everything.
func (m *Memory) Part(context.Context, uint64, int) (*Part, error) { return &m.part, nil }
