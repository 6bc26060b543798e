package program

import (
	"time"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/internal/rng"
)

// dropDomain keeps the keys of dropout apart from other draws.
const dropDomain = 0x64726f70 // "drop"

// Machine runs programs over the same parameters on a backend. It is for one goroutine.
type Machine struct {
	be     backend.Backend
	params *Params

	// Times is told what each operation of a step took, if it is not nil: on a backend that
	// computes at once.
	Times func(p *Program, op int, took time.Duration)

	operands backend.Operands // of the operation under way

	p       *Program
	in      Input
	batch   *Prepared // the batch under way
	mine    *Prepared // memory for batches that nobody has prepared
	regions [2]backend.Tensor
	// properties holds the properties of the batch that the program reads.
	properties [properties]backend.Tensor
	labels     backend.Tensor     // that were sent with the batch, or empty
	states     []backend.Tensor   // of nodes outside memory, by layer
	segments   []backend.Segments // by the program's lists
}

// NewMachine returns a machine. What it holds beside the backend's memory is counted in budget,
// which may be nil.
func NewMachine(be backend.Backend, params *Params, budget *mem.Budget) *Machine {
	return &Machine{be: be, params: params, mine: NewPrepared(budget)}
}

// Prepare prepares a batch for a program in memory of the machine, until it prepares the next one:
// see Prepared.
func (m *Machine) Prepare(p *Program, in *Input) (*Prepared, error) {
	return m.mine, m.mine.Prepare(p, in, m.be.Device())
}

// Forward computes the logits of a batch that was prepared with the same input, valid until the
// backend's next Begin, as is all that Backward needs. The error is of the host's memory, not of
// the device: see backend.Backend.Err.
func (m *Machine) Forward(batch *Prepared, in Input) (backend.Tensor, error) {
	p := batch.program
	m.p, m.in, m.batch = p, in, batch
	places := m.giveBatch()
	rows := p.featureRows()
	if in.Features == nil {
		own := p.FeatureFloats(batch.own.Of(rows))
		m.regions[regionFeatures] = m.be.Host(in.X[:own], 1, batch.features)
	}
	m.regions[regionStep] = m.be.Scratch(1, batch.layout.floats)
	if err := m.be.Err(); err != nil {
		return backend.Tensor{}, err
	}
	if in.Features != nil { // an operation too, and none is given to a device before Err
		m.regions[regionFeatures] = in.Features(batch.FeatureRows(), places).Flat()
	}
	for i := range p.forward {
		m.do(i)
		if len(p.known) > 0 {
			m.tellStates(i)
		}
	}
	return m.tensor(p.logits), m.be.Err()
}

// giveBatch makes what was prepared available on the backend, and returns where its features are.
func (m *Machine) giveBatch() (places backend.Tensor) {
	b := m.batch
	var sent backend.Tensor
	inBlock := b.on != nil
	m.labels = backend.Tensor{}
	if inBlock {
		sent, places = b.send()
		m.labels = sent.View(b.labels.first, b.labels.words, 1)
	}
	m.segments = m.segments[:0]
	for i := range m.p.lists {
		l := &b.lists[i]
		if inBlock {
			l.There = sent.View(l.first, 1, l.words)
		}
		m.segments = append(m.segments, m.be.Segments(l.Lists))
	}
	m.giveStates()
	for k := range b.properties {
		x := &b.properties[k]
		if !x.read {
			continue
		}
		if rows := b.propertyRows(Property(k)); inBlock {
			m.properties[k] = sent.View(x.first, rows, 1)
		} else {
			m.properties[k] = m.be.Host(x.of, rows, m.p.width(Property(k)))
		}
	}
	return places
}

// featureRows returns which rows of features a batch comes with.
func (p *Program) featureRows() Rows {
	if p.inPlace {
		return Nodes(1)
	}
	return Nodes(0)
}

// FeatureFloats returns how many words of 4 bytes the features of a number of rows take.
func (p *Program) FeatureFloats(rows int) int {
	if f := p.of(p.features); f.half {
		return rows * f.cols / 2
	}
	return rows * p.of(p.features).cols
}

// Labels returns what Prepared.Labels of the batch had, on the device: a tensor without rows where
// the host has all labels.
func (m *Machine) Labels() backend.Tensor { return m.labels }

// GradLogits returns where the gradient of the logits goes before Backward.
func (m *Machine) GradLogits() backend.Tensor { return m.tensor(m.p.seed) }

// GradInput returns the gradient of the features, of a program that was made with it, after
// Backward.
func (m *Machine) GradInput() backend.Tensor {
	return m.tensor(m.p.input).Last(m.batch.own.Of(m.p.of(m.p.input).rows))
}

// GradMask returns the gradient of the mask of a program that was made with Options.Explain, after
// Backward: a tensor without rows where nothing is masked.
func (m *Machine) GradMask() backend.Tensor {
	if m.p.maskGrad == 0 {
		return backend.Tensor{}
	}
	return m.tensor(m.p.maskGrad)
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
		t.Out = t.Out.Last(m.batch.sizes.Of(o.rows))
	} else {
		t.Fresh = t.Out.Rows
	}
	if o.kind.lists != noLists {
		t.Lists = m.segments[m.p.listNumber(o.list)]
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
		return -m.batch.padding(Entries(o.list)) * o.heads
	}
	first := -m.batch.padding(m.p.of(o.out).rows)
	if o.tail { // the positions are those among all nodes
		first = m.batch.own.Nodes[0] - m.batch.sizes.Nodes[1]
	}
	return first * x.Cols
}

// Sizes returns the sizes of the last batch.
func (m *Machine) Sizes() *Sizes { return &m.batch.own }

// tensor returns where a value is.
func (m *Machine) tensor(v Value) backend.Tensor {
	x := m.p.of(v)
	sizes := &m.batch.sizes
	rows := sizes.Of(x.rows)
	switch x.role {
	case roleParam:
		return m.weight(v)
	case roleGrad:
		return m.params.Grad(x.index)
	case roleTable:
		if x.half {
			return m.in.Table.Halved()
		}
		return m.in.Table
	case roleState:
		return m.states[x.index]
	case roleHost:
		return m.properties[x.index].Last(rows)
	}
	g := m.p.memory.of[v]
	group, spot := &m.p.memory.groups[g], m.batch.layout.spots[g]
	skipped := (sizes.Of(group.rows) - rows) * x.cols
	if x.half {
		return m.regions[spot.region].Halved().View(2*spot.at+skipped, rows, x.cols)
	}
	return m.regions[spot.region].View(spot.at+skipped, rows, x.cols)
}

// weight returns where a parameter is, or the matrix of a type in it.
func (m *Machine) weight(v Value) backend.Tensor {
	x := m.p.of(v)
	return m.params.Weight(x.index).Slice(x.first, x.rows.n)
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
