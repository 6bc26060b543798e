package link

import (
	"errors"
	"fmt"

	"gdb/compute/backend"
	"gdb/compute/decoder"
	"gdb/compute/kernel"
	"gdb/kv"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

// newStepper returns a stepper that trains the relations' table. use says on which part.
func newStepper(c *setting.Link, dec decoder.Decoder, pool *kernel.Pool, relations *Table,
	j joins, known *triples.Index) *stepper {
	s := &stepper{cfg: c, batch: c.Batch, dec: dec, pool: pool, relations: relations,
		joins: j, known: known, drawn: &drawn{}, ahead: &drawn{},
		loss: decoder.Loss{Name: c.Loss, Margin: float32(c.Margin),
			Temperature: float32(c.Temperature)},
		opt: optimizer{kind: c.Optimizer, pool: pool}}
	s.be = backend.OnPool(pool)
	s.side = &bySide{stepper: s}
	s.how = s.side
	if isFew(c, dec, j.pairs) {
		s.how = newByEdge(s, isPairs(c))
	}
	return s
}

// Steps takes the steps of a training on rows of entities that its owner keeps, with drawn
// negatives and without an encoder. It serves to measure other ways of keeping rows. It may be used
// by one goroutine.
type Steps struct {
	model   *model
	stepper *stepper
}

// NewSteps returns steps with relations as a training begins with. entities must have a row for
// each node of the store, and the state of the optimizer.
func NewSteps(c *Config, m *kv.Meta, entities *Table) (*Steps, error) {
	if err := checkDecoder(c, m); err != nil {
		return nil, err
	}
	if c.Negatives == setting.NegativesAll || c.NegativeSampling == setting.NegativesDegree ||
		c.FilterNegatives || c.Encodes() {
		return nil, errors.New("train: steps on their own take uniform, chunked or batch " +
			"negatives, none of them filtered, and no encoder")
	}
	j := newJoins(m)
	if j.answers != nil {
		return nil, errors.New("train: steps on their own take nodes without types")
	}
	mod, err := newModel(c, 0, int(j.count), nil)
	if err != nil {
		return nil, err
	}
	pool := kernel.NewPool(c.Threads)
	mod.init(c.Seed, pool)
	s := &Steps{mod, newStepper(c, mod.dec, pool, mod.relations, j, nil)}
	s.stepper.opt.rate = float32(c.LR)
	s.stepper.use(&triples.Part{Spans: []triples.Span{{Count: uint32(entities.Rows)}}}, entities)
	return s, nil
}

// Rows returns the rows of entities that the step of a batch will read and change, some more than
// once. They are valid until the next call.
func (s *Steps) Rows(edges []triples.Triple, key uint64) []uint32 {
	s.stepper.drawAll(s.stepper.drawn, edges, key)
	rows := s.stepper.list[:0]
	for _, e := range edges {
		rows = append(rows, e.Head, e.Tail)
	}
	for _, drawn := range s.stepper.draws {
		rows = append(rows, drawn...)
	}
	s.stepper.list = rows
	return rows
}

// Step takes the step of a batch.
func (s *Steps) Step(edges []triples.Triple, key uint64) error {
	if _, err := s.stepper.sampled(edges, key); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// Close frees the memory of the relations.
func (s *Steps) Close() error { return errors.Join(s.stepper.be.Close(), s.model.Close()) }
