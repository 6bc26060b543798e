package link

import (
	"gdb/compute/kernel"
	"gdb/internal/rng"
	"gdb/train/link/decoder"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

// drawn is a batch with its drawn negatives. It holds numbers and no rows, so that it can be drawn
// while the step of another batch changes rows.
type drawn struct {
	key        uint64
	places     []uint32         // numbers in the part of the batch's edges
	taken      []triples.Triple // the edges in the order drawn, before sorting
	edges      []triples.Triple
	list, rels []uint32   // see place
	draws      [][]uint32 // negatives of each chunk, or of each query
	all        []uint32   // memory of draws if each query has its own
	rel        triples.Groups
	rows       triples.Groups // list, grouped by entity
	runs       fewBatch
}

// sampled takes a step on a batch of edges with drawn negatives, and returns the sum of the losses
// divided by edgesInMean. key is the random key of the batch.
func (s *stepper) sampled(edges []triples.Triple, key uint64) (float64, error) {
	s.draw(s.drawn, edges, key)
	return s.stepDrawn()
}

// draw draws the negatives of a batch.
func (s *stepper) draw(d *drawn, edges []triples.Triple, key uint64) {
	if s.few {
		edges = d.runs.sort(edges, d.list)
	}
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
	if s.few && s.enc == nil {
		s.opt.steps++
		s.sumFew(len(edges), &s.opt)
		return total, nil
	}
	s.sum(len(edges))
	return total, s.update(&s.opt)
}

// gather draws the negatives of a batch, and copies the rows it needs. It returns the edges with
// their ends numbered by the rows of the step's table.
func (s *stepper) gather(edges []triples.Triple, key uint64) ([]triples.Triple, error) {
	s.draw(s.drawn, edges, key)
	return s.read()
}

// read makes the forms of a batch's relations. If others may change rows before the batch is done
// it copies the rows.
func (s *stepper) read() ([]triples.Triple, error) {
	if s.enc != nil {
		edges, err := s.encode(s.edges, s.key)
		if err != nil {
			return nil, err
		}
		s.edges = edges
		s.place(s.drawn)
	}
	s.makeForms()
	if s.held != nil {
		s.hold()
	}
	return s.edges, nil
}

// compute computes the gradients of a batch that was gathered, and returns the sum of the losses.
func (s *stepper) compute(edges []triples.Triple, key uint64) (float64, error) {
	total, err := s.compare(edges, key)
	if err == nil {
		s.sum(len(edges))
	}
	return total, err
}

// compare compares edges with their negatives, and returns the sum of the losses.
//
// Row i of the queries asks for the tail of edge i, and row n+i for its head. Gradients of entities
// are collected in dRows: first of heads, then of tails, then of negatives.
func (s *stepper) compare(edges []triples.Triple, key uint64) (float64, error) {
	n := len(edges)
	drop := rng.Sub(key, dropDomain)
	if s.few {
		return s.total(s.compareFew(edges, drop))
	}
	s.prepare(n)
	s.compareMany(edges, drop)
	return s.total(2 * n)
}

// sum sums the gradients of a batch of n edges by row.
func (s *stepper) sum(n int) {
	if s.few {
		s.sumFew(n, nil)
		return
	}
	s.sumRelations(1/s.edgesInMean(n), nil)
	s.sumEntities(n)
}

// compareMany compares the queries of a side with all their negatives at once, by
// products of matrices.
func (s *stepper) compareMany(edges []triples.Triple, drop uint64) {
	n, dim := len(edges), s.cfg.Dim
	s.each(2*n, func(i int) { s.makeQuery(i, s.askOf(edges, i), drop) })
	chunk, draw, drawn := s.neg.chunk(n), 0, 0
	for side := range 2 {
		for lo := 0; lo < n; lo += chunk {
			s.compareSide(edges, side, lo, min(lo+chunk, n), draw, drawn)
			drawn += len(s.draws[draw])
			draw++
		}
	}
	s.pool.Span(2*n, rowsPart, func(lo, hi int) {
		own := make([]float32, dim)
		for i := lo; i < hi; i++ {
			s.queryGrad(own, i, s.askOf(edges, i), drop)
			kernel.AddRow(s.dRows[i*dim:][:dim], own)
		}
	})
}

// update changes the rows of the batch by their gradients.
func (s *stepper) update(o *optimizer) error {
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

// drawAll draws the negatives of all chunks of a batch, first for tails and then for heads.
func (s *stepper) drawAll(d *drawn, edges []triples.Triple, key uint64) {
	if s.cfg.NegativeSampling == setting.NegativesEdge {
		s.drawEach(d, 2*len(edges), key)
		return
	}
	n, chunk, draw := len(edges), s.neg.chunk(len(edges)), 0
	for side := range 2 {
		d.list = d.list[:0]
		for _, e := range edges {
			if side == 0 {
				d.list = append(d.list, e.Tail)
			} else {
				d.list = append(d.list, e.Head)
			}
		}
		for lo := 0; lo < n; lo += chunk {
			if draw == len(d.draws) {
				d.draws = append(d.draws, nil)
			}
			d.draws[draw] = s.neg.draw(d.draws[draw], rng.Sub(key, uint64(2*lo+side)),
				d.list[lo:min(lo+chunk, n)])
			draw++
		}
	}
	d.draws = d.draws[:draw]
}

// drawEach draws negatives for each of a number of queries.
func (s *stepper) drawEach(d *drawn, queries int, key uint64) {
	d.all = s.neg.drawSome(d.all[:0], key, queries*s.cfg.Negatives)
	d.draws = d.draws[:0]
	for lo := 0; lo < len(d.all); lo += s.cfg.Negatives {
		d.draws = append(d.draws, d.all[lo:lo+s.cfg.Negatives])
	}
}

// place lists the ends of the edges, all heads before all tails, and the relations of their
// queries. For a step that goes edge by edge the negatives follow the ends, and the relations are
// listed by run.
func (s *stepper) place(d *drawn) {
	d.list = d.list[:0]
	for _, e := range d.edges {
		d.list = append(d.list, e.Head)
	}
	for _, e := range d.edges {
		d.list = append(d.list, e.Tail)
	}
	if s.few {
		for _, drawn := range d.draws {
			d.list = append(d.list, drawn...)
		}
		d.rows.Group(d.list)
		s.placeRuns(d)
	} else {
		d.rels = d.rels[:0]
		for head := range 2 {
			for _, e := range d.edges {
				r, _ := s.relationOf(e.Relation, head == 1)
				d.rels = append(d.rels, r)
			}
		}
	}
	d.rel.Group(d.rels)
}

// hold copies the rows that the step reads.
func (s *stepper) hold() {
	h, ends := s.held, 2*len(s.edges)
	h.entities, h.relations = h.entities[:0], h.relations[:0]
	for _, e := range s.list[:ends] {
		h.entities = append(h.entities, s.table.row(e)...)
	}
	for _, drawn := range s.draws {
		for _, e := range drawn {
			h.entities = append(h.entities, s.table.row(e)...)
		}
	}
	h.negatives = h.entities[ends*s.cfg.Dim:]
	for i := len(h.places); i < len(h.entities)/s.cfg.Dim; i++ {
		h.places = append(h.places, uint32(i))
	}
	for _, r := range s.rel.Numbers {
		h.relations = append(h.relations, s.relations.row(r)...)
	}
}

// prepare makes room for the queries of n edges and for gradients.
func (s *stepper) prepare(n int) {
	dim := s.cfg.Dim
	s.queries, s.dQueries = sized(s.queries, 2*n*dim), sized(s.dQueries, 2*n*dim)
	s.dForms = sized(s.dForms, 2*n*s.dec.FormDim(dim))
	s.losses = sized(s.losses, 2*n)
	s.dRows = sized(s.dRows, 2*n*dim)
}

// askOf returns query i of a batch.
func (s *stepper) askOf(edges []triples.Triple, i int) ask {
	n, at := len(edges), i
	if s.few {
		at = int(s.drawn.runs.runOf[i])
	}
	if i < n {
		return ask{s.rels[at], false}
	}
	_, head := s.relationOf(edges[i-n].Relation, true)
	return ask{s.rels[at], head}
}

// compareSide scores the queries of one side of the edges lo to hi beside their own negatives,
// which are draw number draw; before is how many negatives earlier draws have. It computes the
// gradients of the queries, of the true answers and of the negatives.
func (s *stepper) compareSide(edges []triples.Triple, side, lo, hi, draw, before int) {
	n, m, dim, drawn := len(edges), hi-lo, s.cfg.Dim, s.draws[draw]
	answers := (1-side)*n + lo // tails lie behind heads in the list
	s.drawnGroups.Group(drawn)
	count := len(drawn)
	negRows := s.negativeRows(drawn, before)
	s.scores, s.grads = sized(s.scores, m*count), sized(s.grads, m*count)
	q, dq := s.queries[(side*n+lo)*dim:][:m*dim], s.dQueries[(side*n+lo)*dim:][:m*dim]
	s.matrices.Scores(s.scores, q, negRows, m, count)
	pos, gPos := make([]float32, m), make([]float32, m)
	measure, weight := s.dec.Measure(), 1/s.edgesInMean(n)
	s.each(m, func(i int) {
		row := s.scores[i*count:][:count]
		s.exclude(row, edges[lo+i], side, s.list[answers+i])
		pos[i] = measure.Pair(q[i*dim:][:dim], s.end(answers+i))
		s.losses[side*n+lo+i], gPos[i] = s.loss.Row(s.grads[i*count:][:count], row, pos[i], weight)
	})
	first := len(s.dRows)
	s.dRows = grown(s.dRows, count*dim)
	s.matrices.Grad(dq, s.dRows[first:], s.grads, s.scores, q, negRows, m, count)
	s.list = append(s.list, drawn...)
	s.each(m, func(i int) {
		measure.PairGrad(dq[i*dim:][:dim], s.dRows[(answers+i)*dim:][:dim], gPos[i], pos[i],
			q[i*dim:][:dim], s.end(answers+i))
	})
}

// negativeRows returns the rows of drawn entities; before is how many negatives earlier draws have.
func (s *stepper) negativeRows(drawn []uint32, before int) []float32 {
	dim := s.cfg.Dim
	if s.held != nil {
		return s.held.negatives[before*dim:][:len(drawn)*dim]
	}
	s.negRows = sized(s.negRows, len(drawn)*dim)
	s.each(len(drawn), func(j int) {
		copy(s.negRows[j*dim:][:dim], s.table.row(drawn[j]))
	})
	return s.negRows
}

// exclude removes from a row of scores the negatives that are the true answer and, if asked for,
// those that the training set says are true.
func (s *stepper) exclude(row []float32, e triples.Triple, side int, answer uint32) {
	out := func(place uint32) { row[place] = decoder.Excluded }
	places(&s.drawnGroups, answer, out)
	if !s.cfg.FilterNegatives {
		return
	}
	q := triples.Query{Entity: e.Head, Relation: e.Relation}
	if side == 1 {
		q = triples.Query{Entity: e.Tail, Relation: e.Relation, Head: true}
	}
	for _, known := range s.known.Answers(q) {
		places(&s.drawnGroups, known, out)
	}
}

// sumEntities sums the gradients by entity. The first 2n in the list are ends of edges.
func (s *stepper) sumEntities(n int) {
	dim := s.cfg.Dim
	s.rows.Group(s.list)
	count := len(s.rows.Numbers)
	s.sums = sized(s.sums, count*dim)
	kernel.SegmentSum(s.pool, s.sums, s.dRows, s.rows.Off, s.rows.At, dim)
	s.pool.Span(count, rowsPart, func(lo, hi int) { s.regularizeEntities(n, lo, hi) })
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

// grown returns x with n more values, which are undefined.
func grown(x []float32, n int) []float32 {
	if len(x)+n <= cap(x) {
		return x[:len(x)+n]
	}
	return append(x, make([]float32, n)...)
}
