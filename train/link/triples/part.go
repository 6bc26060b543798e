package triples

// Answer is an entity that answers a query, and its score.
type Answer struct {
	Entity uint32
	Score  float32
}

// Part is what an epoch trains on at a time: some edges, whose ends are numbers of rows that are in
// memory.
type Part struct {
	Edges []Triple
	// Spans lists the rows that entities have. Other rows may not be used.
	Spans []Span
	// Set lists the partitions of the spans, in the same order; nil if all rows are in memory.
	Set []int
}

// Span is a range of rows.
type Span struct{ Row, Count uint32 }
