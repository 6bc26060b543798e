package program

import "gdb/compute/backend"

// operands are those of an operation, as tensors.
type operands struct {
	out   backend.Tensor
	in    [4]backend.Tensor
	extra [2]backend.Tensor
	acc   bool
}

// prepare finds the operands of an operation, and copies what it works in the place of and is read
// again.
func (m *Machine) prepare(o *op) (t operands) {
	for i, v := range o.in {
		t.in[i] = m.tensor(v)
	}
	for i, v := range o.extra {
		t.extra[i] = m.tensor(v)
	}
	t.out, t.acc = m.tensor(o.out), o.acc != 0
	if o.copies {
		m.be.Copy(t.out, m.tensor(o.target()))
	}
	return t
}

// lastRows are the last n rows of a matrix.
func lastRows(x backend.Tensor, n int) backend.Tensor { return x.Slice(x.Rows-n, n) }

// run does an operation.
func (m *Machine) run(o *op) {
	t := m.prepare(o)
	o.kind.run(m, o, &t)
}

// firstDropped is the position of the first value of a matrix that is dropped out.
func (m *Machine) firstDropped(o *op, x backend.Tensor) int {
	first := -m.padding(m.p.of(o.out).rows)
	if o.tail { // the positions are those among all nodes
		first = m.own.Nodes[0] - m.sizes.Nodes[1]
	}
	return first * x.Cols
}

// dropAfter does the dropout that an activation has after it, if any.
func (m *Machine) dropAfter(o *op, x backend.Tensor) {
	if o.rate > 0 {
		m.be.Dropout(x, m.firstDropped(o, x), o.rate, m.key(o.site))
	}
}

// halves is what the backend has of half precision.
func (m *Machine) halves() backend.Halves { return m.be.(backend.Halves) }

// dropped is the dropout of matrix x that an operation has, if any.
func (m *Machine) dropped(o *op, x backend.Tensor) (a backend.Activation) {
	if o.rate > 0 {
		a.Rate, a.First, a.Key = o.rate, m.firstDropped(o, x), m.key(o.site)
	}
	return a
}

// activate does an activation whose result is of bfloat16, and the dropout that it has.
func (m *Machine) activate(o *op, t *operands, a backend.Activation) {
	drop := m.dropped(o, t.out)
	a.Rate, a.First, a.Key = drop.Rate, drop.First, drop.Key
	m.halves().Activate(t.out, t.in[0], a)
}

// fresh is how many rows of a gradient are written for the first time.
func (t *operands) fresh() int {
	if t.acc {
		return 0
	}
	return t.out.Rows
}
