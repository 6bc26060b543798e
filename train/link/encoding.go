package link

import (
	"context"
	"slices"

	"gdb/internal/mem"
	"gdb/train/link/encode"
	"gdb/train/link/triples"
)

// encoding is what steps have of an encoder: the rows that are scored are not those of the table
// that is learned, but what the encoder makes of these.
type encoding struct {
	encoder *encode.Encoder
	ctx     context.Context // of the training
	all     *Table          // what the encoder makes of all entities, as it was last evaluated

	nodes  []uint32 // of the step, in ascending order
	edges  []triples.Triple
	groups triples.Groups
	rows   Table
}

// newEncoding opens the encoder of a run, and takes the memory of the vectors that it gives.
func newEncoding(ctx context.Context, t *trainer) (e *encoding, err error) {
	e = &encoding{ctx: ctx}
	e.encoder, err = encode.Open(ctx, t.store, t.dev, &t.cfg, t.model.entities.Values, t.budget,
		t.pool)
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, e.encoder)
	e.all, err = newTable("encoded vectors", t.data.entities, t.cfg.Dim, 0, t.budget)
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, e.all)
	return e, nil
}

// encode encodes the ends of edges and the negatives drawn: the rows of the step's table. It
// returns the edges by the numbers of these rows, and changes the draws to them.
func (s *stepper) encode(edges []triples.Triple, key uint64) ([]triples.Triple, error) {
	e := s.enc
	e.nodes = e.nodes[:0]
	for _, t := range edges {
		e.nodes = append(e.nodes, t.Head, t.Tail)
	}
	for _, drawn := range s.draws {
		e.nodes = append(e.nodes, drawn...)
	}
	e.groups.Group(e.nodes)
	e.nodes = append(e.nodes[:0], e.groups.Numbers...)
	values, err := e.encoder.Batch(e.ctx, key, e.nodes, edges)
	if err != nil {
		return nil, err
	}
	e.rows = Table{Rows: len(e.nodes), Dim: s.cfg.Dim, Values: values}
	s.table = &e.rows
	number := func(node uint32) uint32 {
		i, _ := slices.BinarySearch(e.nodes, node)
		return uint32(i)
	}
	e.edges = mem.Resized(e.edges, len(edges))
	for i, t := range edges {
		e.edges[i] = triples.Triple{Head: number(t.Head), Relation: t.Relation,
			Tail: number(t.Tail)}
	}
	for _, drawn := range s.draws {
		for i, node := range drawn {
			drawn[i] = number(node)
		}
	}
	return e.edges, nil
}

// scored are the vectors of all entities as a decoder scores them now.
func (t *trainer) scored(ctx context.Context) ([]float32, error) {
	if t.stepper.enc == nil {
		return t.model.entities.Values, nil
	}
	all := t.stepper.enc.all.Values
	return all, t.stepper.enc.encoder.All(ctx, all)
}
