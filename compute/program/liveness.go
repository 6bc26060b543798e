package program

import "slices"

// noUse is the last use of what nothing reads.
const noUse = -1

// assign finds which values share memory, and marks what must be copied. Operations have numbers as
// the program does them: the loss, which reads the logits and writes their gradient, stands between
// the passes.
func (p *Program) assign() *memoryMap {
	m := &memoryMap{of: make([]int, len(p.values))}
	for i := range m.of {
		m.of[i] = noUse
	}
	last := p.lastUses()
	if p.inPlace {
		m.start(p, p.own, -1)
	} else {
		m.start(p, p.features, -1)
	}
	for i := range p.ops {
		if i == p.forward && p.seed != 0 {
			m.startBackward(p, last[p.logits])
		}
		o := &p.ops[i]
		at := p.time(i)
		target := o.target()
		switch {
		case target != 0 && p.replaceable(o, target, last[p.root(target)], at):
			m.of[o.out] = m.of[p.root(target)]
		default:
			o.copies = target != 0
			m.start(p, o.out, at)
		}
		for _, v := range o.extra {
			m.start(p, v, at)
		}
	}
	m.end(p, last)
	return m
}

// startBackward begins the gradient of the logits: the loss writes it in their place, value by
// value, unless the backward pass reads them.
func (m *memoryMap) startBackward(p *Program, last int) {
	if last > p.forward {
		m.start(p, p.seed, p.forward)
		return
	}
	m.of[p.seed] = m.of[p.logits]
}

// time is when an operation is done.
func (p *Program) time(i int) int {
	if i >= p.forward {
		return i + 1
	}
	return i
}

// replaceable reports whether the result of an operation may take the place of a value.
func (p *Program) replaceable(o *op, target Value, last, at int) bool {
	switch t, out := p.of(target), p.of(o.out); {
	case out.role == roleGrad:
		return t.role == roleGrad
	case t.role != roleStep && t.role != roleFeatures:
		return false
	case t.role == roleFeatures && p.keepsFeatures:
		return false
	case o.acc == 0 && t.rows != out.rows, t.half != out.half: // a view of more rows
		return false
	}
	return last <= at && p.lone(o, target)
}

// lone reports whether an operation reads a value once only.
func (p *Program) lone(o *op, target Value) bool {
	n := 0
	for _, v := range o.reads() {
		if p.root(v) == p.root(target) {
			n++
		}
	}
	return n == 1
}

// lastUses returns the last operations that read values or views of them.
func (p *Program) lastUses() []int {
	last := make([]int, len(p.values))
	for i := range last {
		last[i] = noUse
	}
	for i := range p.ops {
		for _, v := range p.ops[i].reads() {
			last[v] = p.time(i)
			last[p.root(v)] = p.time(i)
		}
	}
	last[p.input] = p.time(len(p.ops)) // both gradients are read when all is done
	last[p.maskGrad] = p.time(len(p.ops))
	return last
}

// start begins a group with a value.
func (m *memoryMap) start(p *Program, v Value, at int) {
	x := p.of(v)
	m.groups = append(m.groups, group{rows: x.rows, cols: x.cols, half: x.half, role: x.role,
		index: x.index, begin: at, kept: x.role == roleFeatures && p.keepsFeatures})
	m.of[v] = len(m.groups) - 1
}

// end finds the segments of all groups.
func (m *memoryMap) end(p *Program, last []int) {
	for v := range p.values {
		x := &p.values[v]
		if x.base != 0 {
			m.of[v] = m.of[x.base]
		}
	}
	for v := range p.values {
		if m.of[v] < 0 {
			continue
		}
		g := &m.groups[m.of[v]]
		use := last[v]
		if p.values[v].base == 0 {
			use = p.ownUse(Value(v))
		}
		rows := p.values[v].rows
		i := slices.IndexFunc(g.segments, func(s segment) bool { return s.rows == rows })
		if i < 0 {
			g.segments = append(g.segments, segment{rows: rows, last: use})
			continue
		}
		g.segments[i].last = max(g.segments[i].last, use)
	}
	for i := range m.groups {
		m.groups[i].settle()
	}
}

// ownUse returns the last operation that reads a value, views of it aside.
func (p *Program) ownUse(v Value) int {
	if v == p.input || v == p.maskGrad {
		return p.time(len(p.ops))
	}
	last := noUse
	for i := range p.ops {
		if slices.Contains(p.ops[i].reads(), v) {
			last = p.time(i)
		}
	}
	return last
}

// settle sorts the segments from the first row on; rows that a later segment has are read by all
// that reads an earlier one.
func (g *group) settle() {
	slices.SortFunc(g.segments, func(a, b segment) int { return a.rows.n - b.rows.n })
	for i := 1; i < len(g.segments); i++ {
		g.segments[i].last = max(g.segments[i].last, g.segments[i-1].last)
	}
}
