package program

import "gdb/compute/backend"

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

// operands are those of an operation, without tensors and lists.
func (o *op) operands() backend.Operands {
	return backend.Operands{Acc: o.acc != 0, Heads: o.heads, Shared: o.shared, First: o.first,
		Scalar: o.scalar}
}

// firstDropped is the position of the first value of a matrix that is dropped out.
func (m *Machine) firstDropped(o *op, x backend.Tensor) int {
	first := -m.padding(m.p.of(o.out).rows)
	if o.tail { // the positions are those among all nodes
		first = m.own.Nodes[0] - m.sizes.Nodes[1]
	}
	return first * x.Cols
}
