package link

import (
	"gdb/internal/rng"
	"gdb/train/kernel"
	"gdb/train/link/loss"
	"gdb/train/link/triples"
	"gdb/train/runs"
)

// sampled takes a step on a batch of edges with drawn negatives, and returns the sum of their
// losses divided by edgesInMean. key is that of the batch.
func (s *stepper) sampled(edges []triples.Triple, key uint64) (float64, error) {
	edges, err := s.gather(edges, key)
	if err != nil {
		return 0, err
	}
	total, err := s.compute(edges, key)
	if err != nil {
		return 0, err
	}
	return total, s.update(&s.opt)
}

// gather draws the negatives of a batch, and reads the rows of its relations and, if others may
// change them before it is done, of its entities. It returns the edges by rows of the step's table.
func (s *stepper) gather(edges []triples.Triple, key uint64) ([]triples.Triple, error) {
	s.drawAll(edges, key)
	if s.enc != nil {
		var err error
		if edges, err = s.encode(edges, key); err != nil {
			return nil, err
		}
	}
	s.place(edges)
	s.makeForms()
	if s.held != nil {
		s.hold()
	}
	return edges, nil
}

// compute finds the gradients of a batch by what was gathered, and the sum of the losses.
//
// Row i of the queries is the one for the tail of edge i, and row n+i that for its head. Gradients
// of entities are collected in dRows: those of heads, of tails, and of negatives.
func (s *stepper) compute(edges []triples.Triple, key uint64) (float64, error) {
	n := len(edges)
	s.prepare(n)
	if drop := rng.Sub(key, dropDomain); s.few() {
		s.compareFew(edges, drop)
	} else {
		s.compareMany(edges, drop)
	}
	total, err := s.total(2 * n)
	if err != nil {
		return 0, err
	}
	s.sumRelations(1/s.edgesInMean(n), nil)
	s.sumEntities(n)
	return total, nil
}

// compareMany compares the queries with all negatives of a side at once, by products of matrices.
func (s *stepper) compareMany(edges []triples.Triple, drop uint64) {
	n, dim := len(edges), s.cfg.Dim
	s.each(2*n, func(i int) { s.makeQuery(i, s.askOf(edges, i), drop) })
	chunk, draw, drawn := s.neg.chunk(n), 0, 0
	for side := range 2 {
		for lo := 0; lo < n; lo += chunk {
			s.compare(edges, side, lo, min(lo+chunk, n), draw, drawn)
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

// update takes the step of the rows of the batch.
func (s *stepper) update(o *optimizer) error {
	o.steps++
	s.updateRelations(o)
	if s.enc == nil {
		o.rows(s.part.Entities, s.rows.Numbers, s.sums)
		return nil
	}
	g, err := s.enc.encoder.Step(s.sums, o.steps) // every row of the table is in the list
	if err == nil {
		o.rows(s.part.Entities, g.At, g.X)
	}
	return err
}

// edgesInMean is what the losses of a batch of n edges are divided by: n or, with vectors on disk,
// the edges of a full batch. Each set of partitions ends with a batch that may have few edges.
// These would weigh much more than others: Adagrad would take smaller steps with their rows ever
// after.
func (s *stepper) edgesInMean(n int) float32 {
	if s.cfg.OnDisk() {
		n = s.batch
	}
	return float32(n)
}

// drawAll draws the negatives of all chunks of a batch, of one side and then of the other.
func (s *stepper) drawAll(edges []triples.Triple, key uint64) {
	n, chunk, draw := len(edges), s.neg.chunk(len(edges)), 0
	for side := range 2 {
		s.list = s.list[:0]
		for _, e := range edges {
			if side == 0 {
				s.list = append(s.list, e.Tail)
			} else {
				s.list = append(s.list, e.Head)
			}
		}
		for lo := 0; lo < n; lo += chunk {
			if draw == len(s.draws) {
				s.draws = append(s.draws, nil)
			}
			s.draws[draw] = s.neg.draw(s.draws[draw], rng.Sub(key, uint64(2*lo+side)),
				s.list[lo:min(lo+chunk, n)])
			draw++
		}
	}
	s.draws = s.draws[:draw]
}

// place lists the ends of edges, heads before tails, and the relations of their queries.
func (s *stepper) place(edges []triples.Triple) {
	s.list, s.rels = s.list[:0], s.rels[:0]
	for _, e := range edges {
		s.list = append(s.list, e.Head)
		r, _ := s.relationOf(e.Relation, false)
		s.rels = append(s.rels, r)
	}
	for _, e := range edges {
		s.list = append(s.list, e.Tail)
		r, _ := s.relationOf(e.Relation, true)
		s.rels = append(s.rels, r)
	}
}

// hold copies the rows that the step reads.
func (s *stepper) hold() {
	h := s.held
	h.ends, h.negatives, h.relations = h.ends[:0], h.negatives[:0], h.relations[:0]
	for _, e := range s.list {
		h.ends = append(h.ends, s.table.row(e)...)
	}
	for _, drawn := range s.draws {
		for _, e := range drawn {
			h.negatives = append(h.negatives, s.table.row(e)...)
		}
	}
	for _, r := range s.rel.Numbers {
		h.relations = append(h.relations, s.relations.row(r)...)
	}
}

// prepare makes room for the queries of n edges, and for gradients.
func (s *stepper) prepare(n int) {
	dim := s.cfg.Dim
	s.queries, s.dQueries = sized(s.queries, 2*n*dim), sized(s.dQueries, 2*n*dim)
	s.dForms = sized(s.dForms, 2*n*s.dec.FormDim(dim))
	s.losses = sized(s.losses, 2*n)
	s.dRows = sized(s.dRows, 2*n*dim)
}

// askOf is query i of a batch.
func (s *stepper) askOf(edges []triples.Triple, i int) ask {
	n := len(edges)
	if i < n {
		return ask{s.rels[i], false}
	}
	_, head := s.relationOf(edges[i-n].Relation, true)
	return ask{s.rels[i], head}
}

// compare scores the queries of one side of some edges beside negatives of their own, and finds the
// gradients of the queries, of the true answers and of the negatives: those of a draw, before which
// there are so many of others.
func (s *stepper) compare(edges []triples.Triple, side, lo, hi, draw, before int) {
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

// negativeRows are the rows of some drawn entities, before which there are so many of others.
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

// exclude takes the negatives out of a row of scores that are the true answer and, if asked for,
// those that the training set says are true.
func (s *stepper) exclude(row []float32, e triples.Triple, side int, answer uint32) {
	out := func(place uint32) { row[place] = loss.Excluded }
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

// sumEntities sums the gradients by row. The first 2n in the list are ends of edges. Each is
// regularized for both queries of its edge.
func (s *stepper) sumEntities(n int) {
	dim := s.cfg.Dim
	s.rows.Group(s.list)
	count := len(s.rows.Numbers)
	s.sums = sized(s.sums, count*dim)
	kernel.SegmentSum(s.pool, s.sums, s.dRows, s.rows.Off, s.rows.At, dim)
	if s.cfg.Regularizer == runs.RegularizerNone {
		return
	}
	s.each(count, func(i int) {
		places, ends := s.rows.At[s.rows.Off[i]:s.rows.Off[i+1]], 0 // in ascending order
		for ends < len(places) && int(places[ends]) < 2*n {
			ends++
		}
		if ends > 0 {
			s.regularize(s.sums[i*dim:][:dim], s.end(int(places[0])),
				2*float32(ends)/s.edgesInMean(n))
		}
	})
}

// grown is x with n more values, which are undefined.
func grown(x []float32, n int) []float32 {
	if len(x)+n <= cap(x) {
		return x[:len(x)+n]
	}
	return append(x, make([]float32, n)...)
}
