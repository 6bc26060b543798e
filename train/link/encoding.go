package link

import (
	"context"
	"errors"
	"slices"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/train/link/encode"
	"gdb/train/link/paged"
	"gdb/train/link/triples"
)

// encoding holds what steps need of an encoder. With one, the rows that are scored are not the rows
// of the learned table, but what the encoder computes from these.
type encoding struct {
	encoder *encode.Encoder
	ctx     context.Context // of the training
	all     *Table          // the encoded vectors of all entities, from the last evaluation
	// learned holds the learned vectors of all entities; with vectors on disk, those that were read
	// for the last evaluation. near then holds the lists of the partitions in memory.
	learned *Table
	near    *paged.Neighbors

	nodes  []uint32 // entities of the step, ascending
	edges  []triples.Triple
	groups triples.Groups
	rows   Table
}

// newEncoding opens the encoder of a run, and takes the memory of the vectors that it computes from
// the learned ones. The caller closes it.
func newEncoding(ctx context.Context, store *layout.Store, dev blockdev.Device, in encode.Inputs,
	learned *Table) (e *encoding, err error) {
	e = &encoding{ctx: ctx, learned: learned}
	in.Embeddings = learned.Values
	if e.encoder, err = encode.Open(ctx, store, dev, in); err != nil {
		return nil, err
	}
	e.all, err = newTable("encoded vectors", learned.Rows, learned.Dim, 0, in.Budget)
	if err != nil {
		return nil, errors.Join(err, e.encoder.Close())
	}
	return e, nil
}

// Close frees the memory.
func (e *encoding) Close() error { return errors.Join(e.all.Close(), e.encoder.Close()) }

// encode encodes the ends of edges and the drawn negatives: they become the rows of the step's
// table. It returns the edges with their ends numbered by these rows, and renumbers the draws.
func (e *encoding) encode(edges []triples.Triple, draws [][]uint32, key uint64) ([]triples.Triple,
	error) {
	e.nodes = e.nodes[:0]
	if e.near != nil {
		edges = e.numbered(edges, draws)
	}
	for _, t := range edges {
		e.nodes = append(e.nodes, t.Head, t.Tail)
	}
	for _, drawn := range draws {
		e.nodes = append(e.nodes, drawn...)
	}
	e.groups.Group(e.nodes)
	e.nodes = append(e.nodes[:0], e.groups.Numbers...)
	values, err := e.encoder.Batch(e.ctx, key, e.nodes, edges)
	if err != nil {
		return nil, err
	}
	e.rows = Table{Rows: len(e.nodes), Dim: e.all.Dim, Values: values}
	number := func(node uint32) uint32 {
		i, _ := slices.BinarySearch(e.nodes, node)
		return uint32(i)
	}
	e.edges = mem.Resized(e.edges, len(edges))
	for i, t := range edges {
		e.edges[i] = triples.Triple{Head: number(t.Head), Relation: t.Relation,
			Tail: number(t.Tail)}
	}
	for _, drawn := range draws {
		for i, node := range drawn {
			drawn[i] = number(node)
		}
	}
	return e.edges, nil
}

// numbered returns the edges renumbered by the partitions in memory, and renumbers the draws.
func (e *encoding) numbered(edges []triples.Triple, draws [][]uint32) []triples.Triple {
	out := make([]triples.Triple, len(edges))
	for i, t := range edges {
		out[i] = triples.Triple{Head: e.near.Number(t.Head), Relation: t.Relation,
			Tail: e.near.Number(t.Tail)}
	}
	for _, drawn := range draws {
		for i, row := range drawn {
			drawn[i] = e.near.Number(row)
		}
	}
	return out
}

// drawNear makes steps draw neighbors among the partitions in memory, whose vectors are values.
func (e *encoding) drawNear(near *paged.Neighbors, values []float32, budget *mem.Budget) error {
	e.near = near
	return e.encoder.Near(near.Readers(e.encoder.Both()), values, near.Row, near.Node, budget)
}
