package program

import (
	"time"

	"gdb/compute/backend"
	"gdb/internal/dense"
	"gdb/internal/mem"
	"gdb/internal/rng"
)

// dropDomain keeps the keys of dropout apart from other draws.
const dropDomain = 0x64726f70 // "drop"

// Machine runs programs over the same parameters on a backend. It is for one goroutine.
type Machine struct {
	be     backend.Backend
	params *Params
	held   mem.Account // the lists of layers

	// Times is told what each operation of a step took, if it is not nil: on a backend that
	// computes at once.
	Times func(p *Program, op int, took time.Duration)

	operands backend.Operands // of the operation under way

	p       *Program
	in      Input
	own     Sizes // of the batch
	sizes   Sizes // that it is padded to
	layout  *layout
	regions [2]backend.Tensor
	// properties holds the properties of the batch that the program reads.
	properties [properties]backend.Tensor
	computed   measures
	hops       []hopLists
}

// hopLists are the lists of a hop, with the memory that they are rebased in.
type hopLists struct {
	view     dense.Layer
	off, idx []uint32
	segments [2]backend.Segments // without loops, with them
	loopOff  []uint32
	loopIdx  []uint32
	padded   [2]paddedLists // likewise
}

// NewMachine returns a machine. What it holds beside the backend's memory is counted in budget,
// which may be nil.
func NewMachine(be backend.Backend, params *Params, budget *mem.Budget) *Machine {
	return &Machine{be: be, params: params, held: mem.NewAccount(budget, "lists of layers")}
}

// Forward computes the logits of a batch, valid until the backend's next Begin, as is all that
// Backward needs. The error is of the host's memory, not of the device: see backend.Backend.Err.
func (m *Machine) Forward(p *Program, in Input) (backend.Tensor, error) {
	m.p, m.in = p, in
	m.own.set(in.Dense)
	m.sizes.set(in.Dense)
	if in.Padded != nil {
		m.sizes.raise(in.Padded)
	}
	m.views(in.Dense)
	m.setProperties()
	rows := Nodes(0)
	if p.inPlace {
		rows = Nodes(1)
	}
	floats := p.FeatureFloats(m.sizes.Of(rows))
	m.layout = p.memory.arrange(&m.sizes, floats)
	for _, l := range p.lists {
		m.makeSegments(l)
	}
	if in.Features == nil {
		m.regions[regionFeatures] = m.be.Host(in.X[:p.FeatureFloats(m.own.Of(rows))], 1, floats)
	}
	if err := m.held.AtLeast(m.listBytes()); err != nil {
		return backend.Tensor{}, err
	}
	m.regions[regionStep] = m.be.Scratch(1, m.layout.floats)
	if err := m.be.Err(); err != nil {
		return backend.Tensor{}, err
	}
	if in.Features != nil { // an operation too, and none is given to a device before Err
		m.regions[regionFeatures] = in.Features(m.sizes.Of(rows)).Flat()
	}
	for i := range p.forward {
		m.do(i)
	}
	return m.tensor(p.logits), m.be.Err()
}

// setProperties makes the properties that the program reads available, in their order.
func (m *Machine) setProperties() {
	for k := range Property(properties) {
		if m.p.Reads(k) {
			x := m.computed.values(k, &m.in)
			m.properties[k] = m.be.Host(x, len(x)+m.padding(propertyKinds[k].rows), 1)
		}
	}
}

// FeatureFloats returns how many words of 4 bytes the features of a number of rows take.
func (p *Program) FeatureFloats(rows int) int {
	if f := p.of(p.features); f.half {
		return rows * f.cols / 2
	}
	return rows * p.of(p.features).cols
}

// GradLogits returns where the gradient of the logits goes before Backward.
func (m *Machine) GradLogits() backend.Tensor { return m.tensor(m.p.seed) }

// GradInput returns the gradient of the features, of a program that was made with it, after
// Backward.
func (m *Machine) GradInput() backend.Tensor {
	return m.tensor(m.p.input).Last(m.own.Of(m.p.of(m.p.input).rows))
}

// Backward computes the gradients of all parameters from that of the logits.
func (m *Machine) Backward() {
	for i := m.p.forward; i < len(m.p.ops); i++ {
		m.do(i)
	}
}

// do does operation i, and measures it if that is wanted.
func (m *Machine) do(i int) {
	if m.Times == nil {
		m.run(&m.p.ops[i])
		return
	}
	begun := time.Now()
	m.run(&m.p.ops[i])
	m.Times(m.p, i, time.Since(begun))
}

// run does an operation.
func (m *Machine) run(o *op) {
	t := o.operands()
	for i, v := range o.in {
		t.In[i] = m.tensor(v)
	}
	for i, v := range o.extra {
		t.Extra[i] = m.tensor(v)
	}
	t.Out = m.tensor(o.out)
	if o.copies {
		backend.Copy(m.be, t.Out, m.tensor(o.target()))
	}
	if o.acc != 0 {
		t.Out = t.Out.Last(m.sizes.Of(o.rows))
	} else {
		t.Fresh = t.Out.Rows
	}
	if o.kind.lists != noLists {
		t.Lists = m.segments(o.list)
	}
	if o.rate > 0 {
		t.Drop = backend.Dropout{Rate: o.rate, First: m.firstDropped(o, t.Out), Key: m.key(o.site)}
	}
	m.operands = t
	m.be.Run(&o.kind.Op, &m.operands)
}

// firstDropped returns the position of the first value of a matrix that is dropped out.
func (m *Machine) firstDropped(o *op, x backend.Tensor) int {
	if o.kind.lists != noLists { // of weights of entries
		return -m.padding(Entries(o.list)) * o.heads
	}
	first := -m.padding(m.p.of(o.out).rows)
	if o.tail { // the positions are those among all nodes
		first = m.own.Nodes[0] - m.sizes.Nodes[1]
	}
	return first * x.Cols
}

// Sizes returns the sizes of the last batch.
func (m *Machine) Sizes() *Sizes { return &m.own }

// views makes the lists of all hops.
func (m *Machine) views(d *dense.Lists) {
	for len(m.hops) < d.Layers() {
		m.hops = append(m.hops, hopLists{})
	}
	for l := range d.Layers() {
		h := &m.hops[l]
		if l > 0 { // layer 0 aliases d
			h.off = mem.Resized(h.off, m.own.Nodes[l+1]+1)
			h.idx = mem.Resized(h.idx, m.own.Entries[l])
		}
		h.view = d.LayerView(l, h.off[:0], h.idx[:0])
	}
}

// segments are lists on the backend.
func (m *Machine) segments(l List) backend.Segments { return m.hops[l.Hop].segments[l.which()] }

// makeSegments makes lists available on the backend.
func (m *Machine) makeSegments(l listUse) {
	h := &m.hops[l.Hop]
	lists := backend.Lists{Off: h.view.Off, Idx: h.view.Idx}
	if l.Loops {
		lists.Off, lists.Idx = h.withLoops()
	}
	if l.Hop == 0 && m.p.inPlace {
		lists.At, lists.Idx = lists.Idx, m.in.Rows
	}
	if m.padded() {
		shift := m.padding(Nodes(l.Hop))
		if lists.At != nil { // rows are numbered as in a table
			shift = 0
		}
		lists = h.padded[l.which()].pad(lists, m.sizes.Of(Nodes(l.Hop+1)),
			m.sizes.Of(Entries(l.List)), shift)
	}
	if l.transposed {
		lists.Rows, lists.Entries = m.sizes.Of(Nodes(l.Hop)), l.entries
	}
	h.segments[l.which()] = m.be.Segments(lists)
}

// withLoops adds to each list an entry for its own node, the last.
func (h *hopLists) withLoops() (off, idx []uint32) {
	lists := int(h.view.Out)
	h.loopOff = mem.Resized(h.loopOff, lists+1)
	h.loopIdx = mem.Resized(h.loopIdx, int(h.view.Off[lists]-h.view.Off[0])+lists)
	off, idx = append(h.loopOff[:0], 0), h.loopIdx[:0]
	for i := range h.view.Out {
		idx = append(idx, h.view.Idx[h.view.Off[i]:h.view.Off[i+1]]...)
		idx = append(idx, h.view.Skip+i)
		off = append(off, uint32(len(idx)))
	}
	return off, idx
}

// listBytes returns the memory of the hops' lists, and of degrees.
func (m *Machine) listBytes() int64 {
	n := 0
	for i := range m.hops {
		h := &m.hops[i]
		n += cap(h.off) + cap(h.idx) + cap(h.loopOff) + cap(h.loopIdx)
		for w := range h.padded {
			n += h.padded[w].words()
		}
	}
	return 4 * int64(n+m.computed.words())
}

// HeldWords returns how many words of 4 bytes a machine holds for a batch of such sizes: lists, and
// what it computes of degrees.
func (p *Program) HeldWords(s *Sizes) (words int) {
	for l := 1; l < len(s.Entries); l++ {
		words += s.Nodes[l+1] + 1 + s.Entries[l]
	}
	for _, l := range p.lists {
		if l.Loops {
			words += s.Nodes[l.Hop+1] + 1 + s.Of(Entries(l.List))
		}
	}
	for k, property := range propertyKinds {
		if property.held && p.Reads(Property(k)) {
			words += s.Of(property.rows)
		}
	}
	return words
}

// ListFloats returns what the lists of a batch of such sizes take of a step's scratch for the
// backward pass.
func (p *Program) ListFloats(s *Sizes) (floats int) {
	for _, l := range p.lists {
		if l.transposed {
			floats += backend.SegmentFloats(s.Nodes[l.Hop], s.Of(Entries(l.List)),
				s.Nodes[l.Hop+1], l.entries)
		}
	}
	return floats
}

// tensor returns where a value is.
func (m *Machine) tensor(v Value) backend.Tensor {
	x := m.p.of(v)
	rows := m.sizes.Of(x.rows)
	switch x.role {
	case roleParam:
		return m.params.Weight(x.index)
	case roleGrad:
		return m.params.Grad(x.index)
	case roleTable:
		if x.half {
			return m.in.Table.Halved()
		}
		return m.in.Table
	case roleHost:
		return m.properties[x.index].Last(rows)
	}
	g := m.p.memory.of[v]
	group, spot := &m.p.memory.groups[g], m.layout.spots[g]
	skipped := (m.sizes.Of(group.rows) - rows) * x.cols
	if x.half {
		return m.regions[spot.region].Halved().View(2*spot.at+skipped, rows, x.cols)
	}
	return m.regions[spot.region].View(spot.at+skipped, rows, x.cols)
}

// key returns the key of the draws of a dropout.
func (m *Machine) key(site int) uint64 {
	return rng.Key(dropDomain, m.in.Seed, m.in.Epoch, m.in.Batch, uint64(site)) | 1
}

// Reads reports whether the program reads a property.
func (p *Program) Reads(k Property) bool {
	for i := range p.ops {
		for _, v := range p.ops[i].in {
			if x := p.of(v); x.role == roleHost && x.index == int(k) {
				return true
			}
		}
	}
	return false
}

// padded reports whether the batch is padded.
func (m *Machine) padded() bool { return m.in.Padded != nil }

// padding returns how many rows of a value are padding.
func (m *Machine) padding(r Rows) int { return m.sizes.Of(r) - m.own.Of(r) }
