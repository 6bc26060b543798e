package link

import (
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/train/link/decoder"
	"gdb/train/link/triples"
)

// bySide compares the queries of a side with all their negatives at once, by products of matrices.
type bySide struct {
	*stepper
	negRows     []float32
	drawnGroups triples.Groups
}

func (s *bySide) sort(_ *drawn, edges []triples.Triple) []triples.Triple { return edges }

func (s *bySide) complete(d *drawn) {
	d.rels = d.rels[:0]
	for head := range 2 {
		for _, e := range d.edges {
			r, _ := s.relationOf(e.Relation, head == 1)
			d.rels = append(d.rels, r)
		}
	}
}

func (s *bySide) sum(n int) {
	s.sumRelations(1/s.edgesInMean(n), nil)
	s.sumEntities(n)
}

func (s *bySide) step(n int) error {
	s.sum(n)
	return s.update(&s.opt)
}

func (s *bySide) compare(edges []triples.Triple, drop uint64) (losses int) {
	n, dim := len(edges), s.cfg.Dim
	s.prepare(n)
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
	return 2 * n
}

// prepare makes room for the queries of n edges and for gradients.
func (s *bySide) prepare(n int) {
	dim := s.cfg.Dim
	s.queries, s.dQueries = mem.Sized(s.queries, 2*n*dim), mem.Sized(s.dQueries, 2*n*dim)
	s.dForms = mem.Sized(s.dForms, 2*n*s.dec.FormDim(dim))
	s.losses = mem.Sized(s.losses, 2*n)
	s.dRows = mem.Sized(s.dRows, 2*n*dim)
}

// compareSide scores the queries of one side of the edges lo to hi beside their own negatives,
// which are draw number draw; before is how many negatives earlier draws have. It computes the
// gradients of the queries, of the true answers and of the negatives.
func (s *bySide) compareSide(edges []triples.Triple, side, lo, hi, draw, before int) {
	n, m, dim, drawn := len(edges), hi-lo, s.cfg.Dim, s.draws[draw]
	answers := (1-side)*n + lo // tails lie behind heads in the list
	s.drawnGroups.Group(drawn)
	count := len(drawn)
	negRows := s.negativeRows(drawn, before)
	s.scores, s.grads = mem.Sized(s.scores, m*count), mem.Sized(s.grads, m*count)
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
func (s *bySide) negativeRows(drawn []uint32, before int) []float32 {
	dim := s.cfg.Dim
	if s.held != nil { // behind the ends of edges
		return s.held.entities[(2*len(s.edges)+before)*dim:][:len(drawn)*dim]
	}
	s.negRows = mem.Sized(s.negRows, len(drawn)*dim)
	s.each(len(drawn), func(j int) {
		copy(s.negRows[j*dim:][:dim], s.table.row(drawn[j]))
	})
	return s.negRows
}

// exclude removes from a row of scores the negatives that are the true answer and, if asked for,
// those that the training set says are true.
func (s *bySide) exclude(row []float32, e triples.Triple, side int, answer uint32) {
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
func (s *bySide) sumEntities(n int) {
	dim := s.cfg.Dim
	s.rows.Group(s.list)
	count := len(s.rows.Numbers)
	s.sums = mem.Sized(s.sums, count*dim)
	kernel.SegmentSum(s.pool, s.sums, s.dRows, s.rows.Off, s.rows.At, dim)
	s.pool.Span(count, rowsPart, func(lo, hi int) { s.regularizeEntities(n, lo, hi) })
}

// grown returns x with n more values, which are undefined.
func grown(x []float32, n int) []float32 {
	if len(x)+n <= cap(x) {
		return x[:len(x)+n]
	}
	return append(x, make([]float32, n)...)
}
