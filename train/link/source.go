package link

import (
	"context"

	"gdb/train/link/triples"
)

// Part is what an epoch trains on at a time: edges, and the rows of the entities that are in
// memory. Ends of edges are numbers of rows. It is valid until the next part is asked for.
type Part struct {
	Edges    []triples.Triple
	Entities *Table
	// Spans are the rows that entities have: others are not to be used.
	Spans []Span
}

// Span is some rows that follow one another.
type Span struct{ Row, Count uint32 }

// Source gives an epoch its edges and rows. Every edge is in one part of each epoch. It is for one
// goroutine.
type Source interface {
	// Parts is how many parts an epoch has.
	Parts(epoch uint64) int
	// Part makes a part ready. The rows of the part before are not changed any more.
	Part(ctx context.Context, epoch uint64, part int) (*Part, error)
}

// Memory is the source whose rows are all in memory: an epoch is one part.
type Memory struct{ part Part }

// NewMemory returns the source of all edges and all entities.
func NewMemory(edges []triples.Triple, entities *Table) *Memory {
	return &Memory{Part{Edges: edges, Entities: entities,
		Spans: []Span{{Count: uint32(entities.Rows)}}}}
}

// Parts is 1.
func (m *Memory) Parts(uint64) int { return 1 }

// Part is all there is.
func (m *Memory) Part(context.Context, uint64, int) (*Part, error) { return &m.part, nil }
