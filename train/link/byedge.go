package link

import (
	"sync"

	"gdb/compute/decoder"
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

const (
	// fewMost is the most negatives shared by all edges with which edges are compared one by one:
	// products of matrices are padded to more columns than that, see decoder.Matrices.
	fewMost = 8
	// fewPart is how many edges a worker compares at a time, and fewRows for how many entities it
	// sums the gradients at a time.
	fewPart, fewRows = 32, 64
)

// byEdge compares edges one by one, with lists of rows instead of matrices.
type byEdge struct {
	*stepper
	// comparePart compares the edges of a part. negativeRows says that it writes a row of dRows for
	// each negative, where each edge has its own.
	comparePart  func(edges []triples.Triple, part int, drop uint64)
	negativeRows bool
	fewGrads     []float32 // see compare
	scratch      sync.Pool // of *fewScratch
}

// newByEdge returns the comparison of a stepper. With pairs it uses the kernels of linkrow.Pairs.
func newByEdge(s *stepper, pairs bool) *byEdge {
	b := &byEdge{stepper: s}
	if b.comparePart = b.compareLists; pairs {
		b.comparePart = b.comparePairs
		b.negativeRows = s.cfg.NegativeSampling == setting.NegativesEdge
	}
	return b
}

func (s *byEdge) sort(d *drawn, edges []triples.Triple) []triples.Triple {
	return d.runs.sort(edges, d.list, relationOf)
}

func (s *byEdge) complete(d *drawn) {
	for _, drawn := range d.draws {
		d.list = append(d.list, drawn...)
	}
	d.rows.Group(d.list)
	s.placeRuns(d)
}

func (s *byEdge) sum(n int) { s.sumFew(n, nil) }

func (s *byEdge) step(n int) error {
	if s.enc != nil {
		s.sum(n)
		return s.update(&s.opt)
	}
	s.opt.steps++
	s.sumFew(n, &s.opt)
	return nil
}

// isFew reports whether steps go edge by edge. They do if scores are products of rows, and all
// edges share a few negatives for each side, or each edge has its own. pairs is how many pairs of
// types edges join.
func isFew(c *setting.Link, dec decoder.Decoder, pairs int) bool {
	if dec.Measure() != decoder.Dot || c.FilterNegatives || c.Negatives == setting.NegativesAll {
		return false
	}
	shared := c.NegativeSampling == setting.NegativesUniform ||
		c.NegativeSampling == setting.NegativesDegree
	shared = shared && pairs <= 1 && c.Negatives <= fewMost
	return shared || c.NegativeSampling == setting.NegativesEdge
}

func relationOf(e triples.Triple) uint32 { return e.Relation }

// sort sorts the edges of a batch by numbers that they have. numbers is memory for them.
func (b *fewBatch) sort(edges []triples.Triple, numbers []uint32,
	number func(e triples.Triple) uint32) []triples.Triple {
	numbers = numbers[:0]
	for _, e := range edges {
		numbers = append(numbers, number(e))
	}
	b.order.Group(numbers)
	b.sorted = b.sorted[:0]
	for _, at := range b.order.At {
		b.sorted = append(b.sorted, edges[at])
	}
	return b.sorted
}

// placeRuns finds the runs of a batch, and lists the relations of runs in d.rels instead of
// those of queries.
func (s *byEdge) placeRuns(d *drawn) {
	b, n := &d.runs, len(d.edges)
	d.rels, b.lengths, b.partAt = d.rels[:0], b.lengths[:0], append(b.partAt[:0], 0)
	b.runOf = mem.Sized(b.runOf, 2*n)
	for lo := 0; lo < n; lo += fewPart {
		hi := min(lo+fewPart, n)
		for i := range 2 * (hi - lo) {
			query := queryOf(i, n, lo, hi)
			if query >= n && !s.cfg.Reciprocal {
				b.runOf[query] = b.runOf[query-n]
				b.lengths[b.runOf[query]]++
				continue
			}
			r, _ := s.relationOf(d.edges[query%n].Relation, query >= n)
			last := len(d.rels) - 1
			if i == 0 || r != d.rels[last] {
				d.rels, b.lengths = append(d.rels, r), append(b.lengths, 0)
				last++
			}
			b.runOf[query] = uint32(last)
			b.lengths[last]++
		}
		b.partAt = append(b.partAt, uint32(len(d.rels)))
	}
}

// fewScratch is a worker's memory for comparing a part, or for summing gradients.
type fewScratch struct {
	queries              []float32 // the memory of own, or rows of the step's dRows
	own, dQueries, dForm []float32
	off, rows            []uint32
	values, cubes        []float32
}

// takeScratch takes scratch from a pool. The caller puts it back.
func takeScratch(p *sync.Pool) *fewScratch {
	if x, ok := p.Get().(*fewScratch); ok {
		return x
	}
	return &fewScratch{}
}

// compare takes edges one after the other, so that all rows of an edge are in the processor's
// caches. There is a loss for each part.
//
// dRows holds first the gradients of the ends of edges. If edges share negatives, the gradients
// of these follow for each part. Else the queries follow: the gradient of a negative is a
// multiple of its query, by the factor in fewGrads (but comparePairs writes gradients there).
// dForms has a row for each run.
func (s *byEdge) compare(edges []triples.Triple, drop uint64) (float64, error) {
	s.makeForms()
	n, dim, count := len(edges), s.cfg.Dim, s.cfg.Negatives
	parts := (n + fewPart - 1) / fewPart
	behind := 2 * parts * count
	if s.cfg.NegativeSampling == setting.NegativesEdge {
		behind = 2 * n
	}
	s.dRows = mem.Sized(s.dRows, (2*n+behind)*dim)
	s.fewGrads = mem.Sized(s.fewGrads, 2*n*(1+count))
	s.dForms = mem.Sized(s.dForms, len(s.rels)*s.dec.FormDim(dim))
	s.losses = mem.Sized(s.losses, parts)
	first := 0
	if s.later != nil {
		first = 1
	}
	s.pool.Run(first+parts, func(part int) {
		if part < first {
			s.later(s.ahead)
			return
		}
		s.comparePart(edges, part-first, drop)
	})
	return s.total(parts)
}

// compareLists compares the queries of the edges of a part: first the queries for tails.
func (s *byEdge) compareLists(edges []triples.Triple, part int, drop uint64) {
	n, dim, width, x := len(edges), s.cfg.Dim, 1+s.cfg.Negatives, takeScratch(&s.scratch)
	lo, hi := part*fewPart, min((part+1)*fewPart, n)
	m := hi - lo
	x.dQueries = mem.Sized(x.dQueries, 2*m*dim)
	if x.queries = s.dRows[2*n*dim:]; s.cfg.NegativeSampling == setting.NegativesEdge {
		x.queries = x.queries[2*lo*dim:][:2*m*dim]
	} else {
		x.own = mem.Sized(x.own, 2*m*dim)
		x.queries = x.own
	}
	x.rows, x.off = mem.Sized(x.rows, 2*m*width), append(x.off[:0], 0)
	for i := range 2 * m {
		s.listEntries(x.rows[i*width:][:width], n, queryOf(i, n, lo, hi))
		x.off = append(x.off, uint32((i+1)*width))
	}
	table := s.entityRows
	kernel.Prefetch(table, dim, x.rows)
	for i := range 2 * m {
		query := queryOf(i, n, lo, hi)
		a := s.askOf(edges, query)
		q := x.queries[i*dim:][:dim]
		s.dec.Query(q, s.end(query), s.form(a.form), a.head)
		s.drop(q, drop, query)
	}
	scores := s.fewGrads[2*lo*width : 2*hi*width]
	kernel.EdgeDot(nil, scores, x.queries, table, kernel.Lists{Off: x.off, Idx: x.rows, Heads: 1,
		Cols: dim})
	s.excludeAnswers(scores, n, lo, hi)
	s.losses[part] = s.loss.Rows(scores, width, 1/s.edgesInMean(n))
	kernel.EdgeSum(nil, x.dQueries, table, scores, kernel.Lists{Off: x.off, Idx: x.rows, Heads: 1,
		Cols: dim}, false)
	s.addPart(edges, x, part, drop)
	s.scratch.Put(x)
}

// queryOf returns the number in the batch of query i of the part whose edges are lo to hi, of n.
func queryOf(i, n, lo, hi int) int {
	if m := hi - lo; i >= m {
		return n + lo + i - m
	}
	return lo + i
}

// addPart adds up the gradients of a part for all rows but negatives that edges do not share.
func (s *byEdge) addPart(edges []triples.Triple, x *fewScratch, part int, drop uint64) {
	n, dim, form, width := len(edges), s.cfg.Dim, s.dec.FormDim(s.cfg.Dim), 1+s.cfg.Negatives
	lo, hi := part*fewPart, min((part+1)*fewPart, n)
	// Edges of few relations follow one another: a run has one row of dForms.
	clear(s.dForms[int(s.drawn.runs.partAt[part])*form : int(s.drawn.runs.partAt[part+1])*form])
	x.dForm = mem.Sized(x.dForm, form)
	grads := s.fewGrads[2*lo*width : 2*hi*width]
	products := s.cfg.Decoder == "distmult" && kernel.FusesLinks()
	count := 2 * (hi - lo)
	for i := range count {
		query := queryOf(i, n, lo, hi)
		dq, a := x.dQueries[i*dim:][:dim], s.askOf(edges, query)
		s.drop(dq, drop, query)
		run := int(s.drawn.runs.runOf[query])
		dx, dForm := s.dRows[query*dim:][:dim], s.dForms[run*form:][:form]
		if products {
			kernel.ProductGrad(dx, s.dRows[other(n, query)*dim:][:dim], dForm, dq,
				x.queries[i*dim:][:dim], s.end(query), s.form(a.form), grads[i*width],
				i >= hi-lo) // then all rows have what is for tails
			continue
		}
		s.dec.QueryGrad(dx, x.dForm, dq, s.end(query), s.form(a.form), a.head)
		kernel.AddRow(dForm, x.dForm)
	}
	for i := 0; i < count && !products; i++ {
		answer := other(n, queryOf(i, n, lo, hi))
		kernel.AddScaledRow(s.dRows[answer*dim:][:dim], x.queries[i*dim:][:dim], grads[i*width])
	}
	s.addNegatives(x, n, part)
}

// addNegatives adds up the gradients of a part for the negatives that all edges share.
func (s *byEdge) addNegatives(x *fewScratch, n, part int) {
	if s.cfg.NegativeSampling == setting.NegativesEdge {
		return
	}
	dim, width := s.cfg.Dim, 1+s.cfg.Negatives
	lo, hi := part*fewPart, min((part+1)*fewPart, n)
	grads := s.fewGrads[2*lo*width : 2*hi*width]
	behind := s.dRows[2*(n+part*(width-1))*dim:][:2*(width-1)*dim]
	clear(behind)
	for i := range 2 * (hi - lo) {
		if i == hi-lo {
			behind = behind[(width-1)*dim:]
		}
		for j := range width - 1 {
			kernel.AddScaledRow(behind[j*dim:][:dim], x.queries[i*dim:][:dim], grads[i*width+1+j])
		}
	}
}

// other returns the place in the list of the answer of a query, of 2n.
func other(n, query int) int {
	if query < n {
		return query + n
	}
	return query - n
}

// negativesAt returns the place in the list of the first negative of a query, of 2n.
func (s *byEdge) negativesAt(n, query int) int {
	switch {
	case s.cfg.NegativeSampling == setting.NegativesEdge:
		return 2*n + query*s.cfg.Negatives
	case query < n:
		return 2 * n
	}
	return 2*n + s.cfg.Negatives
}

// listEntries writes the rows that a query is compared with: first the answer's.
func (s *byEdge) listEntries(rows []uint32, n, query int) {
	rows[0] = s.entityAt[other(n, query)]
	copy(rows[1:], s.entityAt[s.negativesAt(n, query):])
}

// excludeAnswers removes from the scores of a part the negatives that are the true answer.
func (s *byEdge) excludeAnswers(scores []float32, n, lo, hi int) {
	width := 1 + s.cfg.Negatives
	for i := range 2 * (hi - lo) {
		query := queryOf(i, n, lo, hi)
		answer := s.list[other(n, query)]
		for j, e := range s.list[s.negativesAt(n, query):][:width-1] {
			if e == answer {
				scores[i*width+1+j] = decoder.Excluded
			}
		}
	}
}

// sumFew sums the gradients of all rows of a step that goes edge by edge. Given an optimizer, it
// also changes the rows.
func (s *byEdge) sumFew(n int, o *optimizer) {
	relations, entities := len(s.rel.Numbers), len(s.rows.Numbers)
	s.makeRelationSums()
	fused := o != nil && s.isFused()
	if !fused {
		s.sums = mem.Sized(s.sums, entities*s.cfg.Dim)
	}
	first := (relations + relationsPart - 1) / relationsPart
	s.pool.Run(first+(entities+fewRows-1)/fewRows, func(part int) {
		if part < first {
			lo, hi := part*relationsPart, min((part+1)*relationsPart, relations)
			if fused && s.cfg.Decoder == "distmult" {
				s.stepRelations(n, lo, hi, o)
				return
			}
			s.sumRelationsOf(lo, hi, 1/s.edgesInMean(n), s.drawn.runs.lengths)
			if d := s.relations.Dim; o != nil && d > 0 {
				o.some(s.relations, s.rel.Numbers[lo:hi], s.dRelations[lo*d:hi*d])
			}
			return
		}
		lo, hi := (part-first)*fewRows, min((part-first+1)*fewRows, entities)
		if fused {
			s.stepEntities(n, lo, hi, o)
			return
		}
		s.sumEntitiesFew(n, lo, hi)
		s.regularizeEntities(n, lo, hi)
		if o != nil {
			o.some(s.learned, s.rows.Numbers[lo:hi],
				s.sums[lo*s.cfg.Dim:hi*s.cfg.Dim])
		}
	})
}

// sumEntitiesFew sums the gradients of the entities lo to hi of the step.
func (s *byEdge) sumEntitiesFew(n, lo, hi int) {
	dim, x := s.cfg.Dim, takeScratch(&s.scratch)
	s.listGradients(x, n, lo, hi, true)
	sums := s.sums[lo*dim : hi*dim]
	kernel.EdgeSum(nil, sums, s.dRows, x.values, kernel.Lists{Off: x.off, Idx: x.rows, Heads: 1,
		Cols: dim}, false)
	s.scratch.Put(x)
}

// listGradients lists the rows of dRows that make up the gradients of some entities of the step
// and, if multiples is set, the factor of each.
func (s *byEdge) listGradients(x *fewScratch, n, lo, hi int, multiples bool) {
	x.off, x.rows, x.values = append(x.off[:0], 0), x.rows[:0], x.values[:0]
	simple := 2 * n // places whose gradient is one row
	if s.negativeRows {
		simple = 4 * n
	}
	for i := lo; i < hi; i++ {
		for _, place := range s.rows.At[s.rows.Off[i]:s.rows.Off[i+1]] {
			if int(place) < simple {
				x.rows = append(x.rows, place)
			} else {
				s.addNegative(x, n, int(place))
			}
			for multiples && len(x.values) < len(x.rows) {
				x.values = append(x.values, 1)
			}
		}
		x.off = append(x.off, uint32(len(x.rows)))
	}
}

// addNegative lists the rows that make up the gradient of the negative at a place of the list.
func (s *byEdge) addNegative(x *fewScratch, n, place int) {
	count := s.cfg.Negatives
	if s.cfg.NegativeSampling != setting.NegativesEdge {
		for row := place; row < len(s.dRows)/s.cfg.Dim; row += 2 * count {
			x.rows = append(x.rows, uint32(row))
		}
		return
	}
	query, j := (place-2*n)/count, (place-2*n)%count
	side, i := 0, query
	if query >= n {
		side, i = 1, query-n
	}
	lo := i / fewPart * fewPart // of its part, in whose order queries and fewGrads are
	at := 2*lo + side*min(fewPart, n-lo) + i - lo
	x.rows = append(x.rows, uint32(2*n+at))
	x.values = append(x.values, s.fewGrads[at*(1+count)+1+j])
}
