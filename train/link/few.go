package link

import (
	"gdb/train/kernel"
	"gdb/train/link/decoder"
	"gdb/train/link/loss"
	"gdb/train/link/triples"
	"gdb/train/runs"
)

// fewMost is the most negatives with which an edge is compared by itself: products of matrices have
// more columns than that at least, see decoder.Matrices.
const fewMost = 8

// few says whether a step goes edge by edge: scores are products of rows, and each side has a few
// negatives for all edges.
func (s *stepper) few() bool {
	c := s.cfg
	shared := c.NegativeSampling == runs.NegativesUniform ||
		c.NegativeSampling == runs.NegativesDegree
	return s.dec.Measure() == decoder.Dot && c.Negatives <= fewMost && shared && !c.FilterNegatives
}

// compareFew does what compareMany does, both queries of an edge after each other, so that all rows
// of an edge are at hand. The gradients of negatives are summed up by parts of the edges, which
// stand as rows of their own in the list: sums do not depend on who computes a part.
func (s *stepper) compareFew(edges []triples.Triple, drop uint64) {
	n, dim, count := len(edges), s.cfg.Dim, s.cfg.Negatives
	first, width := len(s.dRows), 2*count*dim
	parts := (n + rowsPart - 1) / rowsPart
	s.dRows = grown(s.dRows, parts*width)
	for range parts {
		s.list = append(append(s.list, s.draws[0]...), s.draws[1]...)
	}
	clear(s.dRows[:first])
	clear(s.dRows[first:])
	s.pool.Span(n, rowsPart, func(lo, hi int) {
		negatives := s.dRows[first+lo/rowsPart*width:][:width]
		scratch := make([]float32, dim+count)
		for i := lo; i < hi; i++ {
			for side := range 2 {
				s.compareEdge(edges, side, i, negatives[side*count*dim:][:count*dim], scratch, drop)
			}
		}
	})
}

// compareEdge makes a query of edge i, scores it, and adds the gradients of its entity, of its
// answer and of its negatives. scratch has room for a row and the scores.
func (s *stepper) compareEdge(edges []triples.Triple, side, i int, dNegatives, scratch []float32,
	drop uint64) {
	n, dim := len(edges), s.cfg.Dim
	at, other := side*n+i, (1-side)*n+i
	a, answer, drawn := s.askOf(edges, at), s.list[other], s.draws[side]
	s.makeQuery(at, a, drop)
	own, scores := scratch[:dim], scratch[dim:]
	q, dq := s.queries[at*dim:][:dim], s.dQueries[at*dim:][:dim]
	for j, v := range drawn {
		if scores[j] = kernel.DotRow(q, s.negative(side, j)); v == answer {
			scores[j] = loss.Excluded
		}
	}
	right := s.end(other)
	value, grad := s.loss.Row(scores, scores, kernel.DotRow(q, right), 1/s.edgesInMean(n))
	s.losses[at] = value
	kernel.TimesRow(dq, right, grad)
	kernel.AddScaledRow(s.dRows[other*dim:][:dim], q, grad)
	for j := range drawn {
		kernel.AddScaledRow(dq, s.negative(side, j), scores[j])
		kernel.AddScaledRow(dNegatives[j*dim:][:dim], q, scores[j])
	}
	s.queryGrad(own, at, a, drop)
	kernel.AddRow(s.dRows[at*dim:][:dim], own)
}

// negative is the row of negative j of a side, which has one draw for all edges.
func (s *stepper) negative(side, j int) []float32 {
	if s.held != nil {
		return s.held.negatives[(side*s.cfg.Negatives+j)*s.cfg.Dim:][:s.cfg.Dim]
	}
	return s.table.row(s.draws[side][j])
}
