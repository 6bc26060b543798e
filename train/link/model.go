package link

import (
	"errors"
	"math"

	"gdb/compute/decoder"
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/train/link/rank"
	"gdb/train/runs"
	"gdb/train/setting"
)

// relationDomain separates the random keys of relations' initial vectors from others.
const relationDomain = 0x72656c61 // "rela"

// model holds what is learned, and the decoder that scores with it.
type model struct {
	cfg       *setting.Link
	dec       decoder.Decoder
	entities  *Table
	relations *Table // reciprocal relations follow the others
	count     int    // relations without the reciprocal ones
}

// newModel returns a model of zeros.
func newModel(c *setting.Link, entities, relations int, budget *mem.Budget) (*model, error) {
	dec, err := decoder.New(c.Decoder, c.Dim, decoder.Options{Norm: c.Norm})
	if err != nil {
		return nil, err
	}
	state := len(runs.LinkState(c.Optimizer))
	m := &model{cfg: c, dec: dec, count: relations}
	m.entities, err = newTable("vectors of entities", entities, c.Dim, state, budget)
	if err != nil {
		return nil, err
	}
	if c.Reciprocal {
		relations *= 2
	}
	m.relations, err = newTable("vectors of relations", relations, dec.RelationDim(c.Dim), state,
		budget)
	if err != nil {
		return nil, errors.Join(err, m.entities.Close())
	}
	return m, nil
}

// init draws the initial rows.
func (m *model) init(seed uint64, pool *kernel.Pool) {
	pool.Run(m.entities.Rows, func(i int) {
		decoder.InitialEntity(m.entities.row(uint32(i)), seed, uint64(i), m.cfg.Init)
	})
	for i := range m.relations.Rows {
		row, key := m.relations.row(uint32(i)), rng.Key(relationDomain, seed, uint64(i))
		if m.dec.RelationDim(m.cfg.Dim) < m.dec.FormDim(m.cfg.Dim) { // angles
			decoder.InitialUniform(row, key, math.Pi)
		} else {
			decoder.InitialNormal(row, key, m.cfg.Init)
		}
	}
}

// scorer returns a scorer for the model as it is now.
func (m *model) scorer(pool *kernel.Pool) *rank.Scorer {
	width := m.dec.FormDim(m.cfg.Dim)
	s := &rank.Scorer{Pool: pool, Decoder: m.dec, Dim: m.cfg.Dim, Relations: m.count,
		Forms: make([]float32, m.relations.Rows*width), Reciprocal: m.cfg.Reciprocal}
	for i := range m.relations.Rows {
		m.dec.Form(s.Forms[i*width:][:width], m.relations.row(uint32(i)))
	}
	return s
}

// Close frees the memory.
func (m *model) Close() error { return errors.Join(m.entities.Close(), m.relations.Close()) }

// bestRows holds the rows of the best evaluation.
type bestRows struct{ entities, relations *Table }

// newBestRows takes the memory for a copy of the rows of a model in which scored entities have
// rows in memory.
func newBestRows(m *model, scored int, budget *mem.Budget) (*bestRows, error) {
	entities, err := newTable("best vectors", scored, m.entities.Dim, 0, budget)
	if err != nil {
		return nil, err
	}
	relations, err := newTable("best vectors", m.relations.Rows, m.relations.Dim, 0, budget)
	if err != nil {
		return nil, errors.Join(err, entities.Close())
	}
	return &bestRows{entities, relations}, nil
}

// keep copies the rows that are scored.
func (b *bestRows) keep(entities []float32, relations *Table) {
	copy(b.entities.Values, entities)
	copy(b.relations.Values, relations.Values)
}

// swap exchanges these rows and those of a model.
func (b *bestRows) swap(m *model) {
	m.entities.Values, b.entities.Values = b.entities.Values, m.entities.Values
	m.relations.Values, b.relations.Values = b.relations.Values, m.relations.Values
}

// Close frees the memory.
func (b *bestRows) Close() error { return errors.Join(b.entities.Close(), b.relations.Close()) }
