package link

import (
	"gdb/compute/backend"
	"gdb/internal/rng"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

// wholeStep is what a step on queries that are compared with all entities has beside a sideStep.
// Queries for tails come before those for heads.
type wholeStep struct {
	answers backend.Lists // of each query
	counts  []float32     // how many those are
	weights []float32     // of the regularizer, for each entity
	lists   backend.Lists // of gradients of each of the known ends
	dAll    backend.Tensor
}

// full takes a step on queries of the training set whose answers are compared with all entities. It
// returns the sum of the losses of their edges divided by their number, and this number. All
// answers of a query are trained at once, since the loss of several edges costs one row of scores,
// as the loss of one does. key is the random key of the batch.
func (s *bySide) full(x *triples.Index, at []uint32, key uint64) (loss float64, edges int,
	err error) {
	if err := s.be.Begin(); err != nil {
		return 0, 0, err
	}
	m, w, t := len(at), &s.whole, &s.now
	ends := [3]int{0, s.asks(x, at), m}
	edges = len(w.answers.Idx)
	weight := 1 / float32(edges)
	s.prepare(m, ends[1], rng.Sub(key, dropDomain))
	all := s.table.tensor(s.be)
	scores := s.be.Scratch(m, all.Rows)
	grads := scores
	if s.dec.Measure().IsDistance() { // whose gradients need the scores
		grads = s.be.Scratch(m, all.Rows)
	}
	sides := func(do func(l *backend.Links, of func(backend.Tensor) backend.Tensor)) {
		for side, lo := range ends[:2] {
			if n := ends[side+1] - lo; n > 0 {
				do(&t.links[side], func(x backend.Tensor) backend.Tensor { return x.Slice(lo, n) })
			}
		}
	}
	sides(func(l *backend.Links, of func(backend.Tensor) backend.Tensor) {
		backend.Queries(s.be, l, of(t.queries), of(t.rows), t.forms, of(t.formOf))
	})
	l := t.links[0]
	l.Chunk = m
	backend.LinkScores(s.be, &l, scores, t.queries, all)
	backend.LinkLossAll(s.be, &l, grads, scores, s.be.Segments(w.answers), weight)
	w.dAll = s.be.Scratch(all.Rows, all.Cols)
	backend.LinkScoresGrad(s.be, &l, t.dQueries, w.dAll, grads, scores, t.queries, all)
	known := s.be.Scratch(len(s.rows.Numbers)+m, all.Cols)
	t.dRows = known.Last(m)
	backend.Zero(s.be, t.dRows)
	sides(func(l *backend.Links, of func(backend.Tensor) backend.Tensor) {
		backend.QueriesGrad(s.be, l, of(t.dRows), of(t.dForms), of(t.dQueries), of(t.rows),
			t.forms, of(t.formOf))
	})
	if loss, err = s.ended(edges); err != nil {
		return 0, 0, err
	}
	s.sumForms()
	s.addEnds(known)
	s.regularizeAll(all, weight)
	return loss, edges, s.updateAll(all)
}

// asks lists the queries of a step, and their answers. It returns how many ask for tails.
func (s *bySide) asks(x *triples.Index, at []uint32) (tails int) {
	w := &s.whole
	s.list, s.rels, w.counts = s.list[:0], s.rels[:0], w.counts[:0]
	w.answers.Off, w.answers.Idx = append(w.answers.Off[:0], 0), w.answers.Idx[:0]
	for _, heads := range []bool{false, true} {
		for _, i := range at {
			q, answers := x.At(int(i))
			row, head := s.relationOf(q.Relation, q.Head)
			if head != heads {
				continue
			}
			s.list, s.rels = append(s.list, q.Entity), append(s.rels, row)
			w.answers.Idx = append(w.answers.Idx, answers...)
			w.answers.Off = append(w.answers.Off, uint32(len(w.answers.Idx)))
			w.counts = append(w.counts, float32(len(answers)))
		}
		if !heads {
			tails = len(s.list)
		}
	}
	s.rel.Group(s.rels)
	s.numberForms()
	s.rows.Group(s.list)
	return tails
}

// addEnds adds the gradients of queries' entities, the last rows of known, to those of all. The
// rows before become what all has of these entities.
func (s *bySide) addEnds(known backend.Tensor) {
	w, count := &s.whole, len(s.rows.Numbers)
	w.lists.Off, w.lists.Idx = append(w.lists.Off[:0], 0), w.lists.Idx[:0]
	for i := range count {
		w.lists.Idx = append(w.lists.Idx, uint32(i))
		for _, at := range s.rows.At[s.rows.Off[i]:s.rows.Off[i+1]] {
			w.lists.Idx = append(w.lists.Idx, uint32(count)+at)
		}
		w.lists.Off = append(w.lists.Off, uint32(len(w.lists.Idx)))
	}
	numbers, sums := backend.Words(s.be, s.rows.Numbers), s.be.Scratch(count, known.Cols)
	backend.PickRows(s.be, known.Slice(0, count), w.dAll, s.be.Host(nil, 0, known.Cols), numbers)
	backend.SumLists(s.be, sums, known, s.be.Segments(w.lists))
	backend.PutRows(s.be, w.dAll, sums, numbers)
}

// regularizeAll adds the gradient of the regularizer, for each edge of weight: of its ends and of
// its relation.
func (s *bySide) regularizeAll(all backend.Tensor, weight float32) {
	factor := weight * float32(s.cfg.RegularizerWeight)
	if s.cfg.Regularizer == setting.RegularizerNone || factor == 0 {
		return
	}
	w, t := &s.whole, &s.now
	w.weights = append(w.weights[:0], make([]float32, all.Rows)...)
	for i, e := range s.list {
		w.weights[e] += w.counts[i] * factor
	}
	for _, e := range w.answers.Idx {
		w.weights[e] += factor
	}
	backend.Regularize(s.be, &t.links[0], w.dAll, all, backend.Tensor{}, s.column(w.weights))
	s.regularizeRelations(func(query uint32) float32 { return w.counts[query] * factor })
}

// updateAll changes all rows, and those of the step's relations, by their gradients.
func (s *bySide) updateAll(all backend.Tensor) error {
	o, g, states := &s.opt, s.whole.dAll.Flat(), s.table.states(s.be)
	o.steps++
	s.updateRelations(o)
	if o.kind == "adam" {
		backend.Adam(s.be, all.Flat(), g, backend.Moments{M: states[0].Flat(),
			V: states[1].Flat()}, o.adam())
	} else {
		backend.Adagrad(s.be, all.Flat(), g, states[0].Flat(),
			backend.AdamStep{Rate: o.rate, Eps: adagradEps})
	}
	return s.be.Err()
}
