package link

import (
	"fmt"
	"math"

	"gdb/compute/backend"
	"gdb/compute/decoder"
	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

const (
	// dropDomain separates the random keys of dropout from others.
	dropDomain = 0x64726f70 // "drop"
	// rowsPart is how many rows a worker makes queries of at a time.
	rowsPart = 32
	// relationsPart is for how many relations a worker sums the gradients at a time.
	relationsPart = 8
)

// stepper takes the steps of a training. It may be used by one goroutine.
type stepper struct {
	cfg       *setting.Link
	batch     int // edges of a step, or queries; the last step of a part may have fewer
	dec       decoder.Decoder
	loss      decoder.Loss
	pool      *kernel.Pool
	be        backend.Backend // of bySide
	opt       optimizer
	relations *Table // twice as many rows with reciprocal relations
	joins
	known   *triples.Index
	side    *bySide
	how     comparison // of drawn negatives
	unread  []int      // edges of the steps whose losses wait to be read from a device
	changed bool       // the device has newer rows than the host

	learned *Table // of the entities' vectors, of which the part has some
	table   *Table // of the scored entities: learned or, with an encoder, the step's
	neg     *negatives
	enc     *encoding // nil without an encoder
	// drawn is the batch of the step. later draws the next one into ahead while the step computes;
	// nil if there is none to draw.
	*drawn
	ahead *drawn
	later func(d *drawn)
	// These are the memory of a step; contents are of one step.
	forms, dForms    []float32 // of the step's relations
	dRows            []float32
	losses           []float64
	dRelations, sums []float32
	// These are the rows that the step reads, and where in them those of the list, and of its
	// relations, are: the tables or, where updates of other steps come between, copies in held.
	entityRows, relationRows []float32
	entityAt, relationAt     []uint32
	held                     *held // nil reads the tables
}

// held holds rows as they were when a step began: those of entities in the order of the list, with
// the negatives last, and those of relations.
type held struct {
	entities, relations []float32
	places              []uint32 // 0, 1, …: the place of each row
}

// drawn is a batch with its drawn negatives. It holds numbers and no rows, so that it can be drawn
// while the step of another batch changes rows.
type drawn struct {
	key        uint64
	places     []uint32         // numbers in the part of the batch's edges
	taken      []triples.Triple // the edges in the order drawn, before sorting
	edges      []triples.Triple
	list, rels []uint32   // see place
	shares     []int      // see joins
	draws      [][]uint32 // negatives of each share, or of each query
	all        []uint32   // memory of draws if each query has its own
	rel        triples.Groups
	rows       triples.Groups // list, grouped by entity
	runs       fewBatch
}

// fewBatch describes a batch whose step goes edge by edge. Its edges are sorted by relation and
// divided into parts. The queries of a part with the same relation form a run. A run includes the
// queries for heads if these use the same relation.
type fewBatch struct {
	sorted  []triples.Triple
	order   triples.Groups
	runOf   []uint32  // of each query
	lengths []float32 // queries in each run
	partAt  []uint32  // the first run of each part, and the number of runs
}

// comparison is how the queries of a batch are compared with their drawn negatives: bySide or
// byEdge. Gradients are left in the memory of the step.
type comparison interface {
	// sort returns the edges of a batch in the order in which the step takes them.
	sort(d *drawn, edges []triples.Triple) []triples.Triple
	// complete adds the negatives to the list of a batch if the step wants them there, and lists
	// the relations of queries.
	complete(d *drawn)
	// compare compares edges with their negatives, and returns the sum of the losses.
	compare(edges []triples.Triple, drop uint64) (float64, error)
	// sum sums the gradients of a batch of n edges by row.
	sum(n int)
	// step does what sum does, and changes the rows.
	step(n int) error
	// update changes the rows of the batch by the gradients that sum left.
	update(o *optimizer) error
}

// use makes the next steps train on a part, which has rows of the table.
func (s *stepper) use(p *triples.Part, t *Table) {
	s.learned, s.table = t, t
	if s.cfg.Negatives != setting.NegativesAll {
		s.neg = newNegatives(s.cfg, &s.joins, p, t.Rows)
	}
}

// ask is a query of a step: the number of its relation's form, and whether it asks for the head.
// Its entity is in the list.
type ask struct {
	form uint32
	head bool
}

// relationOf returns the row of a relation in a query, and the direction in which it is used: with
// reciprocal relations, queries for heads use another row in the direction of tails.
func (s *stepper) relationOf(relation uint32, head bool) (row uint32, asHead bool) {
	if head && s.cfg.Reciprocal {
		return relation + s.count, false
	}
	return relation, head
}

// each calls fn for the numbers from 0 to n-1, on the workers of the pool.
func (s *stepper) each(n int, fn func(i int)) {
	s.pool.Span(n, rowsPart, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			fn(i)
		}
	})
}

// makeForms computes the forms of the step's relations.
func (s *stepper) makeForms() {
	width := s.dec.FormDim(s.cfg.Dim)
	s.forms = mem.Sized(s.forms, len(s.rel.Numbers)*width)
	fill := func(i int) { s.dec.Form(s.forms[i*width:][:width], s.relation(i)) }
	if s.dec.Measure() == decoder.Dot { // copies, which are made before another thread is awake
		for i := range s.rel.Numbers {
			fill(i)
		}
	} else {
		s.each(len(s.rel.Numbers), fill)
	}
}

// numberForms makes s.rels, which holds relations, hold the numbers of their forms.
func (s *stepper) numberForms() {
	for i := range s.rel.Numbers {
		for _, at := range s.rel.At[s.rel.Off[i]:s.rel.Off[i+1]] {
			s.rels[at] = uint32(i)
		}
	}
}

// form returns form i of the step.
func (s *stepper) form(i uint32) []float32 {
	width := s.dec.FormDim(s.cfg.Dim)
	return s.forms[int(i)*width:][:width]
}

// end returns the row of the entity at a place of the list, which must not be a negative's.
func (s *stepper) end(place int) []float32 {
	return s.entityRows[int(s.entityAt[place])*s.cfg.Dim:][:s.cfg.Dim]
}

// drop zeroes a share of the values of a row and scales the others up. For the same key and i it
// drops the same values.
func (s *stepper) drop(row []float32, key uint64, i int) {
	l := backend.Links{Dropout: s.cfg.Dropout, Key: key}
	l.Drop(row, i)
}

// relation returns the row of relation i of the step.
func (s *stepper) relation(i int) []float32 {
	return s.relationRows[int(s.relationAt[i])*s.relations.Dim:][:s.relations.Dim]
}

// readTables makes the step read the rows of the tables.
func (s *stepper) readTables() {
	s.entityRows, s.entityAt = s.table.Values, s.list
	s.relationRows, s.relationAt = s.relations.Values, s.rel.Numbers
}

// makeRelationSums makes room for the gradients of relations.
func (s *stepper) makeRelationSums() {
	count := len(s.rel.Numbers)
	s.dRelations = mem.Sized(s.dRelations, count*(s.dec.FormDim(s.cfg.Dim)+s.relations.Dim))
}

// sumRelationsOf sums the gradients of forms for the relations lo to hi of the step. weight is the
// weight of an edge in the loss, and edges says how many edges each query stands for.
func (s *stepper) sumRelationsOf(lo, hi int, weight float32, edges []float32) {
	width, dim := s.dec.FormDim(s.cfg.Dim), s.relations.Dim
	if dim == 0 {
		return
	}
	count := len(s.rel.Numbers)
	dRow, dForm := s.dRelations[:count*dim], s.dRelations[count*dim:]
	kernel.SegmentSum(nil, dForm[lo*width:hi*width], s.dForms, s.rel.Off[lo:hi+1], s.rel.At, width)
	for i := lo; i < hi; i++ {
		row := s.relation(i)
		s.dec.FormGrad(dRow[i*dim:][:dim], dForm[i*width:][:width], row)
		n := float32(0)
		for _, at := range s.rel.At[s.rel.Off[i]:s.rel.Off[i+1]] {
			n += edges[at]
		}
		if dim == width { // angles have no size
			s.regularize(dRow[i*dim:][:dim], row, n*weight)
		}
	}
}

// updateRelations changes the relations' rows by their gradients.
func (s *stepper) updateRelations(o *optimizer) {
	if dim := s.relations.Dim; dim > 0 {
		count := len(s.rel.Numbers)
		o.rows(s.relations, s.rel.Numbers, s.dRelations[:count*dim])
	}
}

// regularize adds the gradient of the regularizer of a row, times weight, to g.
func (s *stepper) regularize(g, row []float32, weight float32) {
	factor := weight * float32(s.cfg.RegularizerWeight)
	if factor != 0 && s.cfg.Regularizer != setting.RegularizerNone {
		s.regularizer().AddGrad(g, row, factor)
	}
}

// regularizer returns the regularizer, if there is one.
func (s *stepper) regularizer() backend.Regularizer {
	switch {
	case s.cfg.Regularizer != setting.RegularizerN3:
		return backend.Squares
	case s.cfg.Decoder == "complex":
		return backend.ModulusCubes
	}
	return backend.Cubes
}

// cubes reports whether the regularizer sums cubes of values, which the optimizer's kernel
// can add itself.
func (s *stepper) cubes() bool {
	return s.cfg.Regularizer == setting.RegularizerN3 && s.cfg.Decoder != "complex" &&
		s.cfg.Optimizer == "adagrad"
}

// total returns the sum of the losses of n queries or parts. A sum that is not a
// number is an error.
func (s *stepper) total(n int) (sum float64, err error) {
	for _, v := range s.losses[:n] {
		sum += v
	}
	return checked(sum)
}

// checked returns the sum of the losses of a step, and an error if it is not a number.
func checked(sum float64) (float64, error) {
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return 0, fmt.Errorf("the loss is %v: %w; lower --lr", sum, setting.ErrDiverged)
	}
	return sum, nil
}
