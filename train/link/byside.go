package link

import (
	"slices"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

// bySide compares the queries of a side with all their negatives at once, by operations of a
// backend, of which most are products of matrices. The CPU takes the queries that share negatives
// before the next ones, whose scores then stay in its caches; a device takes all of a side.
type bySide struct {
	*stepper
	sorts  bool // batches are sorted as those of byEdge
	groups triples.Groups
	now    sideStep
	whole  wholeStep // with all entities as negatives
	sent   sentRows  // of vectors on disk, with a device
	read   []backend.Loss
}

// sideStep is what a step has on the backend.
type sideStep struct {
	links           [2]backend.Links // of queries for tails, and for heads
	rows, relations backend.Tensor   // those that the step reads, in the order of its lists
	forms, formOf   backend.Tensor
	queries, scores backend.Tensor
	// These are gradients of those, and then what each row has of them.
	dRows, dForms, dQueries, dScores backend.Tensor
	dEntities, dRelations            backend.Tensor
	// These are memory of the host for words that operations read.
	firsts                   []uint32
	weights, relationWeights []float32
	out                      [][]uint32 // see excluded
}

func (s *bySide) sort(d *drawn, edges []triples.Triple) []triples.Triple {
	if s.sorts {
		return d.runs.sort(edges, d.list, relationOf)
	}
	if s.pairOf != nil {
		return d.runs.sort(edges, d.list, s.pair)
	}
	return edges
}

func (s *bySide) complete(d *drawn) {
	d.rels = d.rels[:0]
	for head := range 2 {
		for _, e := range d.edges {
			r, _ := s.relationOf(e.Relation, head == 1)
			d.rels = append(d.rels, r)
		}
	}
	for _, drawn := range d.draws {
		d.list = append(d.list, drawn...)
	}
	d.rows.Group(d.list)
}

func (s *bySide) step(n int) error {
	s.sum(n)
	return s.update(&s.opt)
}

// column makes values available for the step.
func (s *stepper) column(x []float32) backend.Tensor { return s.be.Host(x, len(x), 1) }

func (s *bySide) compare(edges []triples.Triple, drop uint64) (float64, error) {
	if err := s.be.Begin(); err != nil {
		return 0, err
	}
	n, t := len(edges), &s.now
	s.prepare(2*n, n, drop)
	chunk, shares, once := s.neg.chunk(n), len(s.shares)-1, 1
	if s.be.Device() != nil && (s.pairOf == nil || chunk == 1) {
		once = shares // all of as many edges, but for the last
	}
	most := 0
	for i := range shares {
		most = max(most, (s.shares[min(i+once, shares)]-s.shares[i])*len(s.draws[i]))
	}
	t.scores, t.dScores = s.be.Scratch(1, most), s.be.Scratch(1, most)
	behind := 2 * n // of the list: where the next negatives are
	for side := range t.links {
		l := &t.links[side]
		l.Chunk = chunk
		backend.Queries(s.be, l, t.queries.Slice(side*n, n), t.rows.Slice(side*n, n), t.forms,
			t.formOf.Slice(side*n, n))
		for first := 0; first < shares; first += once {
			behind += s.compareShares(edges, side, first, first+once, behind)
		}
	}
	for side := range t.links {
		of := func(x backend.Tensor) backend.Tensor { return x.Slice(side*n, n) }
		backend.QueriesGrad(s.be, &t.links[side], of(t.dRows), of(t.dForms), of(t.dQueries),
			of(t.rows), t.forms, of(t.formOf))
	}
	return s.ended(n)
}

// prepare makes the rows that the step of some queries reads available, their forms, and room for
// queries and gradients. Query heads is the first that asks for a head.
func (s *bySide) prepare(queries, heads int, drop uint64) {
	t, dim, width := &s.now, s.cfg.Dim, s.dec.FormDim(s.cfg.Dim)
	if s.sends() {
		t.rows = s.sendRows()
	} else {
		t.rows = s.readRows(s.table, s.list)
	}
	t.relations = s.readRows(s.relations, s.rel.Numbers)
	if s.held != nil {
		t.rows = s.be.Host(s.held.entities, len(s.list), dim)
		t.relations = s.be.Host(s.held.relations, len(s.rel.Numbers), s.relations.Dim)
	}
	l := backend.Links{Name: s.cfg.Decoder, Decoder: s.dec, Loss: s.loss,
		Dropout: s.cfg.Dropout, Key: drop, Regularizer: s.regularizer()}
	t.links[0] = l
	l.Head, l.First = !s.cfg.Reciprocal, heads
	t.links[1] = l
	t.forms = s.be.Scratch(len(s.rel.Numbers), width)
	backend.Forms(s.be, &l, t.forms, t.relations)
	t.formOf = backend.Words(s.be, s.rels)
	t.queries, t.dQueries = s.be.Scratch(queries, dim), s.be.Scratch(queries, dim)
	t.dRows, t.dForms = s.be.Scratch(len(s.list), dim), s.be.Scratch(queries, width)
}

// readRows copies rows of a table to memory of the step.
func (s *bySide) readRows(t *Table, at []uint32) backend.Tensor {
	rows := s.be.Scratch(len(at), t.Dim)
	if t.Dim > 0 && (s.held == nil || t.device != nil) {
		backend.PickRows(s.be, rows, t.tensor(s.be), s.be.Host(nil, 0, t.Dim),
			backend.Words(s.be, at))
	}
	return rows
}

// compareShares compares the queries of one side of some shares with their answers and their
// negatives, of which all have as many: gradients of the queries, of the answers and of the
// negatives are left. The negatives are in the list from place behind on; it returns how many.
func (s *bySide) compareShares(edges []triples.Triple, side, first, end, behind int) (drew int) {
	n, t, l := len(edges), &s.now, &s.now.links[side]
	lo, hi := s.shares[first], s.shares[end]
	m, width := hi-lo, len(s.draws[side*(len(s.shares)-1)+first])
	drew = (end - first) * width
	answers := (1-side)*n + lo // tails lie behind heads in the list
	of := func(x backend.Tensor) backend.Tensor { return x.Slice(side*n+lo, m) }
	answer := func(x backend.Tensor) backend.Tensor { return x.Slice(answers, m) }
	drawn := func(x backend.Tensor) backend.Tensor { return x.Slice(behind, drew) }
	scores, grads := t.scores.View(0, m, width), t.dScores.View(0, m, width)
	own, gOwn := s.be.Scratch(m, 1), s.be.Scratch(m, 1)
	backend.LinkScores(s.be, l, scores, of(t.queries), drawn(t.rows))
	out := s.excluded(edges[lo:hi], side, first, end)
	backend.Exclude(s.be, scores, backend.Words(s.be, out))
	backend.Answers(s.be, l, own, of(t.queries), answer(t.rows))
	backend.LinkLoss(s.be, l, grads, gOwn, scores, own, 1/s.edgesInMean(n), side+lo > 0)
	backend.LinkScoresGrad(s.be, l, of(t.dQueries), drawn(t.dRows), grads, scores, of(t.queries),
		drawn(t.rows))
	backend.AnswersGrad(s.be, l, of(t.dQueries), answer(t.dRows), gOwn, own, of(t.queries),
		answer(t.rows))
	return drew
}

// excluded returns the places among the scores of some shares of those negatives that are the true
// answer and, if asked for, of those that the training set says are true. The shares have the
// edges.
func (s *bySide) excluded(edges []triples.Triple, side, first, end int) []uint32 {
	begin, shares := s.shares[first], len(s.shares)-1
	answers := (1-side)*s.shares[shares] + begin
	all := []uint32{}
	for share := first; share < end; share++ {
		lo, hi := s.shares[share]-begin, s.shares[share+1]-begin
		drawn := s.draws[side*shares+share]
		width := len(drawn)
		s.groups.Group(drawn)
		parts := (hi - lo + rowsPart - 1) / rowsPart
		s.now.out = mem.Resized(s.now.out, parts)
		s.pool.Run(parts, func(part int) {
			out := s.now.out[part][:0]
			for i := lo + part*rowsPart; i < min(hi, lo+(part+1)*rowsPart); i++ {
				add := func(place uint32) { out = append(out, uint32(i*width)+place) }
				places(&s.groups, s.list[answers+i], add)
				if s.cfg.FilterNegatives {
					for _, known := range s.known.Answers(asked(edges[i], side)) {
						places(&s.groups, known, add)
					}
				}
			}
			s.now.out[part] = out
		})
		all = append(all, slices.Concat(s.now.out...)...)
	}
	return all
}

// asked returns the query of one side of an edge.
func asked(e triples.Triple, side int) triples.Query {
	if side == 1 {
		return triples.Query{Entity: e.Tail, Relation: e.Relation, Head: true}
	}
	return triples.Query{Entity: e.Head, Relation: e.Relation}
}

// ended returns the sum of the losses of n edges. Those of a device wait until they are asked for.
func (s *bySide) ended(n int) (float64, error) {
	if s.be.About().StepsPerRead > 1 {
		s.unread, s.changed = append(s.unread, n), true
		return 0, s.be.Err()
	}
	s.read = s.be.Losses(s.read[:0])
	if err := s.be.Err(); err != nil {
		return 0, err
	}
	return checked(s.read[0].Mean)
}

func (s *bySide) sum(n int) {
	t, mean := &s.now, s.edgesInMean(n)
	s.sumForms()
	t.dEntities = s.be.Scratch(len(s.rows.Numbers), s.cfg.Dim)
	s.sumLists(t.dEntities, t.dRows, &s.rows)
	factor := float32(s.cfg.RegularizerWeight)
	if s.cfg.Regularizer == setting.RegularizerNone || factor == 0 {
		return
	}
	t.firsts, t.weights = t.firsts[:0], t.weights[:0]
	for i := range s.rows.Numbers {
		t.firsts = append(t.firsts, s.rows.At[s.rows.Off[i]])
		t.weights = append(t.weights, s.edgesOf(i, n)*factor)
	}
	backend.Regularize(s.be, &t.links[0], t.dEntities, t.rows, backend.Words(s.be, t.firsts),
		s.column(t.weights))
	s.regularizeRelations(func(uint32) float32 { return 1 / mean * factor })
}

// sumForms sums the gradients of forms by relation.
func (s *bySide) sumForms() {
	if s.relations.Dim == 0 {
		return
	}
	t, count := &s.now, len(s.rel.Numbers)
	dForms := s.be.Scratch(count, s.dec.FormDim(s.cfg.Dim))
	s.sumLists(dForms, t.dForms, &s.rel)
	t.dRelations = s.be.Scratch(count, s.relations.Dim)
	backend.FormsGrad(s.be, &t.links[0], t.dRelations, dForms, t.relations)
}

// regularizeRelations adds the gradient of the regularizer of the relations of queries, given the
// weight of each query.
func (s *bySide) regularizeRelations(weight func(query uint32) float32) {
	t, dim := &s.now, s.relations.Dim
	if dim == 0 || dim != s.dec.FormDim(s.cfg.Dim) { // angles have no size
		return
	}
	t.relationWeights = t.relationWeights[:0]
	for i := range s.rel.Numbers {
		sum := float32(0)
		for _, query := range s.rel.At[s.rel.Off[i]:s.rel.Off[i+1]] {
			sum += weight(query)
		}
		t.relationWeights = append(t.relationWeights, sum)
	}
	backend.Regularize(s.be, &t.links[0], t.dRelations, t.relations, backend.Tensor{},
		s.column(t.relationWeights))
}

// updateRelations changes the relations' rows by their gradients.
func (s *bySide) updateRelations(o *optimizer) {
	if s.relations.Dim > 0 {
		o.onBackend(s.be, s.relations, s.now.dRelations, backend.Words(s.be, s.rel.Numbers))
	}
}

// sumLists sums the rows of each group.
func (s *bySide) sumLists(out, rows backend.Tensor, g *triples.Groups) {
	backend.SumLists(s.be, out, rows, s.be.Segments(backend.Lists{Off: g.Off, Idx: g.At}))
}

// update changes the rows of the batch by their gradients.
func (s *bySide) update(o *optimizer) error {
	o.steps++
	t := &s.now
	s.updateRelations(o)
	if s.sends() {
		return s.takeRows(o)
	}
	if s.enc == nil {
		o.onBackend(s.be, s.learned, t.dEntities, backend.Words(s.be, s.rows.Numbers))
		return s.be.Err()
	}
	s.sums = mem.Sized(s.sums, t.dEntities.Len())
	s.be.Read(s.sums, t.dEntities)
	if err := s.be.Err(); err != nil {
		return err
	}
	g, err := s.enc.encoder.Step(s.sums, o.steps) // every row of the table is in the list
	if err == nil {
		o.rows(s.learned, g.At, g.X)
	}
	return err
}
