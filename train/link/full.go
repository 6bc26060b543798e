package link

import (
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

// full takes a step on queries of the training set whose answers are compared with all entities. It
// returns the sum of the losses of their edges, and how many edges these are. All answers of a
// query are trained at once, since the loss of several edges costs one row of scores, as the loss
// of one does. key is the random key of the batch.
func (s *stepper) full(x *triples.Index, at []uint32, key uint64) (loss float64, edges int,
	err error) {
	m, n, dim := len(at), s.learned.Rows, s.cfg.Dim
	s.opt.steps++
	drop := rng.Sub(key, dropDomain)
	asks, answers, edges := s.asks(x, at)
	s.makeForms()
	s.numberForms()
	for i := range asks {
		asks[i].form = s.rels[i]
	}
	s.queries, s.dQueries = mem.Sized(s.queries, m*dim), mem.Sized(s.dQueries, m*dim)
	s.dForms, s.losses = mem.Sized(s.dForms, m*s.dec.FormDim(dim)), mem.Sized(s.losses, m)
	s.each(m, func(i int) { s.makeQuery(i, asks[i], drop) })
	s.scores = mem.Sized(s.scores, m*n)
	s.grads = s.scores
	if s.dec.Measure().IsDistance() { // whose gradients need the scores
		s.grads = make([]float32, m*n)
	}
	s.matrices.Scores(s.scores, s.queries, s.learned.Values, m, n)
	weight := 1 / float32(edges)
	s.pool.Run(m, func(i int) {
		s.losses[i] = s.loss.All(s.grads[i*n:][:n], s.scores[i*n:][:n], answers[i], weight)
	})
	total, err := s.total(m)
	if err != nil {
		return 0, 0, err
	}
	s.dRows = mem.Sized(s.dRows, n*dim)
	s.matrices.Grad(s.dQueries, s.dRows, s.grads, s.scores, s.queries, s.learned.Values, m, n)
	s.addQueries(asks, answers, weight, drop)
	counts := make([]float32, m)
	for i, a := range answers {
		counts[i] = float32(len(a))
	}
	s.sumRelations(weight, counts)
	s.updateRelations(&s.opt)
	s.opt.all(s.learned, s.dRows)
	return total * float64(edges), edges, nil
}

// asks returns the queries of a step, their answers, and how many edges they stand for.
func (s *stepper) asks(x *triples.Index, at []uint32) (asks []ask, answers [][]uint32, edges int) {
	s.list, s.rels = s.list[:0], s.rels[:0]
	for _, i := range at {
		q, a := x.At(int(i))
		row, head := s.relationOf(q.Relation, q.Head)
		asks, answers = append(asks, ask{head: head}), append(answers, a)
		s.list, s.rels = append(s.list, q.Entity), append(s.rels, row)
		edges += len(a)
	}
	s.rel.Group(s.rels)
	s.readTables()
	return asks, answers, edges
}

// addQueries adds to dRows the gradients of the queries' entities, and of the regularizer.
func (s *stepper) addQueries(asks []ask, answers [][]uint32, weight float32, drop uint64) {
	dim := s.cfg.Dim
	s.ends = mem.Sized(s.ends, len(asks)*dim)
	s.each(len(asks), func(i int) {
		g := s.ends[i*dim:][:dim]
		s.queryGrad(g, i, asks[i], drop)
		s.regularize(g, s.end(i), weight*float32(len(answers[i])))
	})
	s.rows.Group(s.list)
	s.each(len(s.rows.Numbers), func(i int) {
		to := s.dRows[int(s.rows.Numbers[i])*dim:][:dim]
		for _, at := range s.rows.At[s.rows.Off[i]:s.rows.Off[i+1]] {
			kernel.AddRow(to, s.ends[int(at)*dim:][:dim])
		}
	})
	if s.cfg.Regularizer == setting.RegularizerNone {
		return
	}
	s.list = s.list[:0]
	for _, a := range answers {
		s.list = append(s.list, a...)
	}
	s.rows.Group(s.list)
	s.each(len(s.rows.Numbers), func(i int) {
		e := s.rows.Numbers[i]
		s.regularize(s.dRows[int(e)*dim:][:dim], s.learned.row(e),
			weight*float32(s.rows.Off[i+1]-s.rows.Off[i]))
	})
}
