package link

import (
	"context"
	"slices"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/train/link/encode"
	"gdb/train/link/paged"
	"gdb/train/link/triples"
	"gdb/train/setting"
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

// newEncoding opens the encoder of a run, and takes the memory of the vectors that it computes.
func newEncoding(ctx context.Context, t *trainer) (e *encoding, err error) {
	e = &encoding{ctx: ctx, learned: t.model.entities}
	if t.plan != nil {
		e.learned, err = newTable("vectors to encode", t.data.entities, t.cfg.Dim, 0, t.budget)
		if err != nil {
			return nil, err
		}
		t.CloseLater(e.learned)
	}
	e.encoder, err = encode.Open(ctx, t.store, t.dev, encode.Inputs{Settings: &t.cfg,
		Embeddings: e.learned.Values, Budget: t.budget, Pool: t.pool})
	if err != nil {
		return nil, err
	}
	t.CloseLater(e.encoder)
	e.all, err = newTable("encoded vectors", t.data.entities, t.cfg.Dim, 0, t.budget)
	if err != nil {
		return nil, err
	}
	t.CloseLater(e.all)
	return e, nil
}

// encode encodes the ends of edges and the drawn negatives: they become the rows of the step's
// table. It returns the edges with their ends numbered by these rows, and renumbers the draws.
func (s *stepper) encode(edges []triples.Triple, key uint64) ([]triples.Triple, error) {
	e := s.enc
	e.nodes = e.nodes[:0]
	if e.near != nil {
		edges = e.numbered(edges, s.draws)
	}
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

// scored returns the vectors of all entities as a decoder scores them now.
func (t *trainer) scored(ctx context.Context) ([]float32, error) {
	e := t.stepper.enc
	if e == nil {
		return t.model.entities.Values, nil
	}
	if err := t.source.learned(ctx, e.learned); err != nil {
		return nil, err
	}
	all := e.all.Values
	return all, e.encoder.All(ctx, all)
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

// encodedBytes returns what an encoder takes in addition to the plan, with vectors on disk: three
// tables of all entities (as learned, as encoded, and as encoded at the best evaluation), the
// vectors of a batch, and for evaluations all edges and lists.
func encodedBytes(c *Config, m *kv.Meta) int64 {
	if !c.Encodes() {
		return 0
	}
	edges := int64(0)
	for _, e := range m.EdgeSplits {
		edges += int64(e.Count)
	}
	table := 4 * int64(m.Nodes) * int64(c.Dim)
	n := 3*mem.ArenaBytes(table) + mem.HeapCost(encode.BatchBytes(c, m, stepRows(c)))
	n += 12*edges + triples.Bytes(2*edges)
	if c.EncodesFeatures() {
		n += mem.ArenaBytes(4 * int64(m.Nodes) * int64(setting.FeatureDim(m)))
	}
	n += int64(len(m.Directions)) * (4*int64(m.Edges) + 8*int64(m.Nodes))
	return n
}
