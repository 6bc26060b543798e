package link

import (
	"gdb/internal/rng"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

// sampled takes a step on a batch of edges with drawn negatives, and returns the sum of the losses
// divided by edgesInMean. key is the random key of the batch.
func (s *stepper) sampled(edges []triples.Triple, key uint64) (float64, error) {
	s.draw(s.drawn, edges, key)
	return s.stepDrawn()
}

// draw draws the negatives of a batch.
func (s *stepper) draw(d *drawn, edges []triples.Triple, key uint64) {
	edges = s.how.sort(d, edges)
	d.key, d.edges = key, edges
	s.drawAll(d, edges, key)
	if s.enc == nil {
		s.place(d)
	}
}

// stepDrawn takes the step of the batch that was drawn.
func (s *stepper) stepDrawn() (float64, error) {
	edges, err := s.read()
	if err != nil {
		return 0, err
	}
	total, err := s.compare(edges, s.key)
	if err != nil {
		return 0, err
	}
	return total, s.how.step(len(edges))
}

// gather draws the negatives of a batch, and copies the rows it needs. It returns the edges with
// their ends numbered by the rows of the step's table.
func (s *stepper) gather(edges []triples.Triple, key uint64) ([]triples.Triple, error) {
	s.draw(s.drawn, edges, key)
	return s.read()
}

// read readies the batch that was drawn. If others may change rows before the batch is done it
// copies the rows.
func (s *stepper) read() ([]triples.Triple, error) {
	if s.enc != nil {
		edges, err := s.enc.encode(s.edges, s.draws, s.key)
		if err != nil {
			return nil, err
		}
		s.edges, s.table = edges, &s.enc.rows
		s.place(s.drawn)
	}
	s.numberForms()
	if s.readTables(); s.held != nil {
		s.hold()
	}
	return s.edges, nil
}

// compute computes the gradients of a batch that was gathered, and returns the sum of the losses.
func (s *stepper) compute(edges []triples.Triple, key uint64) (float64, error) {
	total, err := s.compare(edges, key)
	if err == nil {
		s.how.sum(len(edges))
	}
	return total, err
}

// compare compares edges with their negatives, and returns the sum of the losses.
//
// Row i of the queries asks for the tail of edge i, and row n+i for its head. Gradients of entities
// are collected in dRows: first of heads, then of tails, then of negatives.
func (s *stepper) compare(edges []triples.Triple, key uint64) (float64, error) {
	return s.how.compare(edges, rng.Sub(key, dropDomain))
}

// update changes the rows of the batch by their gradients.
func (s *byEdge) update(o *optimizer) error {
	o.steps++
	s.updateRelations(o)
	if s.enc == nil {
		o.rows(s.learned, s.rows.Numbers, s.sums)
		return nil
	}
	g, err := s.enc.encoder.Step(s.sums, o.steps) // every row of the table is in the list
	if err == nil {
		o.rows(s.learned, g.At, g.X)
	}
	return err
}

// edgesInMean returns by how much the losses of a batch of n edges are divided: by n or, with
// vectors on disk, by the edges of a full batch. Each set of partitions ends with a batch that may
// have few edges. Dividing by their number would make them weigh much more than others, and Adagrad
// would take smaller steps with their rows ever after.
func (s *stepper) edgesInMean(n int) float32 {
	if s.cfg.OnDisk() {
		n = s.batch
	}
	return float32(n)
}

// drawAll draws the negatives of all shares of a batch, first for tails and then for heads.
func (s *stepper) drawAll(d *drawn, edges []triples.Triple, key uint64) {
	chunk := s.neg.chunk(len(edges))
	d.shares = s.divide(d.shares, edges, chunk)
	if s.cfg.NegativeSampling == setting.NegativesEdge {
		s.drawEach(d, edges, key)
		return
	}
	draw := 0
	for side := range 2 {
		d.list = d.list[:0]
		for _, e := range edges {
			if side == 0 {
				d.list = append(d.list, e.Tail)
			} else {
				d.list = append(d.list, e.Head)
			}
		}
		for i, lo := range d.shares[:len(d.shares)-1] {
			if draw == len(d.draws) {
				d.draws = append(d.draws, nil)
			}
			d.draws[draw] = s.neg.draw(d.draws[draw], rng.Sub(key, uint64(2*lo+side)),
				d.list[lo:d.shares[i+1]], asked(edges[lo], side), chunk)
			draw++
		}
	}
	d.draws = d.draws[:draw]
}

// drawEach draws negatives for each query of a batch.
func (s *stepper) drawEach(d *drawn, edges []triples.Triple, key uint64) {
	d.all, d.draws = d.all[:0], d.draws[:0]
	draw := rng.NewStream(key)
	for side := range 2 {
		for _, e := range edges {
			d.all = s.neg.drawSome(d.all, &draw, s.cfg.Negatives, asked(e, side))
		}
	}
	for lo := 0; lo < len(d.all); lo += s.cfg.Negatives {
		d.draws = append(d.draws, d.all[lo:lo+s.cfg.Negatives])
	}
}

// place lists the ends of the edges, all heads before all tails, and the relations of their
// queries.
func (s *stepper) place(d *drawn) {
	d.list = d.list[:0]
	for _, e := range d.edges {
		d.list = append(d.list, e.Head)
	}
	for _, e := range d.edges {
		d.list = append(d.list, e.Tail)
	}
	s.how.complete(d)
	d.rel.Group(d.rels)
}

// hold copies the rows that the step reads.
func (s *stepper) hold() {
	h := s.held
	h.entities, h.relations = h.entities[:0], h.relations[:0]
	for _, e := range s.list {
		h.entities = append(h.entities, s.table.row(e)...)
	}
	for _, r := range s.rel.Numbers {
		h.relations = append(h.relations, s.relations.row(r)...)
	}
	for i := len(h.places); i < max(len(h.entities)/s.cfg.Dim, len(s.rel.Numbers)); i++ {
		h.places = append(h.places, uint32(i))
	}
	s.entityRows, s.entityAt = h.entities, h.places
	s.relationRows, s.relationAt = h.relations, h.places
}

// askOf returns query i of a batch.
func (s *stepper) askOf(edges []triples.Triple, i int) ask {
	n, at := len(edges), i
	if runOf := s.drawn.runs.runOf; runOf != nil { // relations are listed by run
		at = int(runOf[i])
	}
	if i < n {
		return ask{s.rels[at], false}
	}
	_, head := s.relationOf(edges[i-n].Relation, true)
	return ask{s.rels[at], head}
}

// regularizeEntities adds the regularizer's gradient for the entities lo to hi of the step.
func (s *stepper) regularizeEntities(n, lo, hi int) {
	if s.cfg.Regularizer == setting.RegularizerNone {
		return
	}
	dim := s.cfg.Dim
	for i := lo; i < hi; i++ {
		if weight := s.edgesOf(i, n); weight > 0 {
			s.regularize(s.sums[i*dim:][:dim], s.end(int(s.rows.At[s.rows.Off[i]])), weight)
		}
	}
}

// edgesOf returns the weight in the loss of the edges that have entity i of the step as an end.
// Each edge counts twice, for its two queries. It relies on ascending places.
func (s *stepper) edgesOf(i, n int) float32 {
	places, ends := s.rows.At[s.rows.Off[i]:s.rows.Off[i+1]], 0
	for ends < len(places) && int(places[ends]) < 2*n {
		ends++
	}
	return 2 * float32(ends) / s.edgesInMean(n)
}
