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
//
// Row i of the queries is the one for the tail of edge i, and row n+i that for its head. Gradients
// of entities are collected in dRows: those of heads, of tails, and of negatives.
func (s *stepper) sampled(edges []triples.Triple, key uint64) (float64, error) {
	n := len(edges)
	s.opt.steps++
	s.drawAll(edges, key)
	if s.enc != nil {
		var err error
		if edges, err = s.encode(edges, key); err != nil {
			return 0, err
		}
	}
	s.prepare(edges)
	if drop := rng.Sub(key, dropDomain); s.few() {
		s.compareFew(edges, drop)
	} else {
		s.compareMany(edges, drop)
	}
	total, err := s.total(2 * n)
	if err != nil {
		return 0, err
	}
	s.updateRelations(1/s.edgesInMean(n), nil)
	return total, s.updateEntities(n)
}

// compareMany compares the queries with all negatives of a side at once, by products of matrices.
func (s *stepper) compareMany(edges []triples.Triple, drop uint64) {
	n, dim := len(edges), s.cfg.Dim
	s.each(2*n, func(i int) { s.makeQuery(i, s.askOf(edges, i), drop) })
	chunk, draw := s.neg.chunk(n), 0
	for side := range 2 {
		for lo := 0; lo < n; lo += chunk {
			s.compare(edges, side, lo, min(lo+chunk, n), s.draws[draw])
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

// prepare makes the forms of relations, and room for queries and gradients.
func (s *stepper) prepare(edges []triples.Triple) {
	n, dim := len(edges), s.cfg.Dim
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
	s.makeForms()
	s.queries, s.dQueries = sized(s.queries, 2*n*dim), sized(s.dQueries, 2*n*dim)
	s.dForms = sized(s.dForms, 2*n*s.dec.FormDim(dim))
	s.losses = sized(s.losses, 2*n)
	s.dRows = sized(s.dRows, 2*n*dim)
}

// askOf is query i of a batch.
func (s *stepper) askOf(edges []triples.Triple, i int) ask {
	n := len(edges)
	if i < n {
		return ask{edges[i].Head, s.rels[i], false}
	}
	_, head := s.relationOf(edges[i-n].Relation, true)
	return ask{edges[i-n].Tail, s.rels[i], head}
}

// compare scores the queries of one side of some edges beside negatives of their own, and finds the
// gradients of the queries, of the true answers and of the negatives.
func (s *stepper) compare(edges []triples.Triple, side, lo, hi int, drawn []uint32) {
	n, m, dim := len(edges), hi-lo, s.cfg.Dim
	answers := s.list[(1-side)*n:][lo:hi] // tails lie behind heads in the list
	s.drawnGroups.Group(drawn)
	count := len(drawn)
	s.negRows = sized(s.negRows, count*dim)
	s.each(count, func(j int) {
		copy(s.negRows[j*dim:][:dim], s.table.row(drawn[j]))
	})
	s.scores, s.grads = sized(s.scores, m*count), sized(s.grads, m*count)
	q, dq := s.queries[(side*n+lo)*dim:][:m*dim], s.dQueries[(side*n+lo)*dim:][:m*dim]
	s.matrices.Scores(s.scores, q, s.negRows, m, count)
	pos, gPos := make([]float32, m), make([]float32, m)
	measure, weight := s.dec.Measure(), 1/s.edgesInMean(n)
	s.each(m, func(i int) {
		row := s.scores[i*count:][:count]
		s.exclude(row, edges[lo+i], side, answers[i])
		pos[i] = measure.Pair(q[i*dim:][:dim], s.table.row(answers[i]))
		s.losses[side*n+lo+i], gPos[i] = s.loss.Row(s.grads[i*count:][:count], row, pos[i], weight)
	})
	first := len(s.dRows)
	s.dRows = grown(s.dRows, count*dim)
	s.matrices.Grad(dq, s.dRows[first:], s.grads, s.scores, q, s.negRows, m, count)
	s.list = append(s.list, drawn...)
	s.each(m, func(i int) {
		measure.PairGrad(dq[i*dim:][:dim], s.dRows[((1-side)*n+lo+i)*dim:][:dim], gPos[i], pos[i],
			q[i*dim:][:dim], s.table.row(answers[i]))
	})
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

// updateEntities sums the gradients by row and takes the step of the rows. The first 2n in the list
// are ends of edges. Each is regularized for both queries of its edge.
func (s *stepper) updateEntities(n int) error {
	dim := s.cfg.Dim
	s.rows.Group(s.list)
	count := len(s.rows.Numbers)
	s.sums = sized(s.sums, count*dim)
	kernel.SegmentSum(s.pool, s.sums, s.dRows, s.rows.Off, s.rows.At, dim)
	if s.cfg.Regularizer != runs.RegularizerNone {
		s.each(count, func(i int) {
			ends := 0
			for _, at := range s.rows.At[s.rows.Off[i]:s.rows.Off[i+1]] {
				if int(at) < 2*n {
					ends++
				}
			}
			s.regularize(s.sums[i*dim:][:dim], s.table.row(s.rows.Numbers[i]),
				2*float32(ends)/s.edgesInMean(n))
		})
	}
	if s.enc == nil {
		s.opt.rows(s.part.Entities, s.rows.Numbers, s.sums)
		return nil
	}
	g, err := s.enc.encoder.Step(s.sums, s.opt.steps) // every row of the table is in the list
	if err == nil {
		s.opt.rows(s.part.Entities, g.At, g.X)
	}
	return err
}

// grown is x with n more values, which are undefined.
func grown(x []float32, n int) []float32 {
	if len(x)+n <= cap(x) {
		return x[:len(x)+n]
	}
	return append(x, make([]float32, n)...)
}
