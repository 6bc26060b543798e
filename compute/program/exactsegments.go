package program

import (
	"gdb/compute/backend"
	"gdb/internal/dense"
	"gdb/internal/mem"
)

// Attention over whole lists by way of their segments. A list comes in parts, and each part is
// computed as the lists of a batch are: scores of entries, their softmax over the part, sums of
// weighed rows of each segment, products by type, and the sum of the segments of a list. What
// follows the softmax is linear in it, so results of parts are merged as those of any softmax are.

// segmented are the operations of a Pull that is Segmented.
type segmented struct {
	ops     []*op   // in their order
	rows    []Value // of nodes that lists name, which they read
	own     Value   // what they read of nodes that have lists
	softmax *op
}

// findSegmented finds what a sum of the segments of lists is computed from.
func (w *ExactLayer) findSegmented(pull *Pull) {
	s := &segmented{}
	pull.Segmented, pull.by = true, s
	w.collect(s, pull.out)
	if s.softmax == nil || s.own == 0 || len(w.pulls) > 0 {
		panic("BUG: segments are reduced without a softmax, or beside other reductions")
	}
	pull.Softmax, pull.Weighted, pull.Heads = true, true, s.softmax.heads
	w.list = List{}
	w.table = s.rows[0]
	for i, v := range s.rows {
		if len(s.rows) == 1 {
			break
		}
		of := w.p.root(w.p.ops[w.made[v]].in[0])
		if i > 0 && w.table != of {
			panic("BUG: segments read rows that are not products of one value")
		}
		w.table = of
	}
	if len(s.rows) > 1 || w.half {
		w.values = s.rows
	}
}

// collect adds the operations that a value comes from, down to rows of nodes.
func (w *ExactLayer) collect(s *segmented, v Value) {
	x, root := w.p.of(v), w.p.root(v)
	i, made := w.made[root]
	switch {
	case x.role == roleParam || x.role == roleHost:
		return
	case x.rows == Nodes(0):
		s.rows = addOnce(s.rows, root)
		return
	case x.rows == Nodes(1) && (!made || w.p.ops[i].kind.lists == noLists):
		if s.own != 0 && s.own != v {
			panic("BUG: segments read two kinds of rows of the nodes that have lists")
		}
		s.own = v
		return
	}
	o := &w.p.ops[i]
	for _, done := range s.ops {
		if done == o {
			return
		}
	}
	for _, in := range o.reads() {
		w.collect(s, in)
	}
	if o.kind == opSoftmax {
		s.softmax = o
	}
	s.ops = append(s.ops, o)
}

func addOnce(all []Value, v Value) []Value {
	for _, x := range all {
		if x == v {
			return all
		}
	}
	return append(all, v)
}

// SegmentedLists are a part of whole lists, with the entries of each in the order of their types.
// The memory is used again by the next part.
type SegmentedLists struct {
	sorted segments
	dense  *dense.Lists
	sizes  Sizes
}

// Set takes the lists of a part, of which nbrs are rows of a table, and the types of entries.
func (s *SegmentedLists) Set(w *ExactLayer, off, nbrs, types []uint32) {
	n := len(off) - 1
	d := &dense.Lists{NodeIDOffsets: []uint32{0, 0, uint32(n)}, NbrOffsets: off, ReprMap: nbrs,
		Types: types}
	s.sizes = Sizes{Nodes: []int{n, n}, Entries: []int{len(nbrs)}, Segments: s.sizes.Segments}
	s.sizes.countSegments(d)
	s.sorted.count(len(nbrs))
	s.dense = s.sorted.sort(&Input{Dense: d}, w.p, s.sizes.Segments[0]).Dense
}

// SegmentedPart computes a Pull that is Segmented for a part of whole lists.
type SegmentedPart struct {
	w     *ExactLayer
	m     *Machine
	of    *segmented
	out   Value
	sizes *Sizes
	lists map[listsOf]backend.Segments // of neighbors, to segments, of entries
	known map[Value]backend.Tensor
	types backend.Tensor // of the segments
}

// byEntry is, among SegmentedPart.lists, from segments to the entries themselves.
const byEntry = listsOf(100)

// Segment begins the computation for a part, given the table, or what Columns computed of its rows
// if ColumnCols says so, and what Own computed of the nodes that have lists.
func (w *ExactLayer) Segment(m *Machine, rows []backend.Tensor, own backend.Tensor,
	l *SegmentedLists) *SegmentedPart {
	pull := &w.pulls[0]
	m.p = w.p
	p := &SegmentedPart{w: w, m: m, of: pull.by, out: pull.out, sizes: &l.sizes,
		lists: map[listsOf]backend.Segments{}, known: map[Value]backend.Tensor{}}
	for _, list := range []List{{}, List{}.ToSegments(), List{}.ToNodes(),
		List{}.ToSegments().OfEntries()} {
		off, names := l.sorted.listed(list, l.dense)
		n := l.sizes.Of(list.has())
		p.lists[p.key(list)] = m.be.Segments(backend.Lists{Off: off[:n+1],
			Idx: names[:l.sizes.Of(Entries(list))]})
	}
	s := pull.by
	for i, v := range s.rows {
		p.known[v] = rows[i]
	}
	p.known[s.own] = own
	types := mem.View[float32](mem.BytesOf(l.sorted.types))
	p.types = m.be.Host(types, len(types), 1)
	return p
}

func (p *SegmentedPart) key(l List) listsOf {
	if l.Itself {
		return byEntry
	}
	return l.of
}

// Scores returns what the softmax is taken of, by entry and head, until Reduced.
func (p *SegmentedPart) Scores() backend.Tensor { return p.value(p.of.softmax.in[0]) }

// Reduced returns the results of the lists of the part.
func (p *SegmentedPart) Reduced() backend.Tensor { return p.value(p.out) }

// value computes a value, and what it is computed from.
func (p *SegmentedPart) value(v Value) backend.Tensor {
	x := p.w.p.of(v)
	if t, ok := p.known[v]; ok {
		return t
	}
	switch x.role {
	case roleParam:
		return p.m.weight(v)
	case roleHost:
		return p.types
	}
	return p.compute(&p.w.p.ops[p.w.made[v]])
}

// compute does an operation.
func (p *SegmentedPart) compute(o *op) backend.Tensor {
	t := o.operands()
	for i, v := range o.in {
		t.In[i] = p.value(v)
	}
	switch target := o.target(); {
	case target == 0:
		v := p.w.p.of(o.out)
		t.Out = p.m.be.Scratch(p.sizes.Of(v.rows), v.cols)
		t.Fresh = t.Out.Rows
	default:
		t.Out = p.value(target)
	}
	if o.kind.lists != noLists {
		t.Lists = p.lists[p.key(o.list)]
	}
	p.known[o.out] = t.Out
	p.m.be.Run(&o.kind.Op, &t)
	return t.Out
}

// segmentedCols returns how many values a Segmented pull computes for an entry at most, for a node
// that has a list, and besides, with the alignment.
func (w *ExactLayer) segmentedCols(s *segmented) (entryCols, nodeCols, fixedFloats int) {
	for _, o := range s.ops {
		v := w.p.of(o.out)
		switch {
		case o.target() != 0:
		case v.rows.kind == fixedRows:
			fixedFloats += aligned(v.rows.n * v.cols)
		case v.rows.kind == nodeRows:
			nodeCols += v.cols
		default: // an entry has a segment at most
			entryCols += v.cols
		}
	}
	return entryCols, nodeCols, fixedFloats
}
