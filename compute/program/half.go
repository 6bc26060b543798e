package program

// halver rewrites the operations of a program so that products and sums over lists read bfloat16. A
// value that they read is converted once, where it is made, or made so if nothing else needs it as
// it is.
type halver struct {
	p      *Program
	ops    []op
	half   map[Value]Value // bfloat16 of a value that is not a view
	floats map[Value]Value // float32 of one that is bfloat16
	wanted map[Value]bool  // values that are read as bfloat16
	needed map[Value]bool  // those that are read as float32
}

// halve has products and sums over lists read bfloat16.
func (p *Program) halve() {
	h := &halver{p: p, half: map[Value]Value{}, floats: map[Value]Value{},
		wanted: map[Value]bool{}, needed: map[Value]bool{p.logits: true, p.seed: true,
			p.input: true}}
	for i := range p.values {
		if p.values[i].half {
			h.half[Value(i)] = Value(i)
		}
	}
	p.fuseDropouts()
	p.fuseELUs()
	for i := range p.ops {
		h.look(&p.ops[i])
	}
	forward := 0
	for i, o := range p.ops {
		if i == p.forward {
			forward = len(h.ops)
			if p.seed != 0 && h.wanted[p.seed] {
				h.narrow(p.seed)
			}
		}
		h.add(o)
	}
	if p.forward == len(p.ops) {
		forward = len(h.ops)
	}
	p.ops, p.forward = h.ops, forward
}

// look notes how the operands of an operation are read.
func (h *halver) look(o *op) {
	for i, v := range o.in {
		switch h.p.takes(o, i) {
		case takesHalf:
			h.wanted[h.p.root(v)] = true
		case takesFloats:
			h.needed[h.p.root(v)] = true
		}
	}
	if o.acc != 0 {
		h.needed[h.p.root(o.acc)] = true
	}
}

// add appends an operation with operands as it takes them, and what narrows its result.
func (h *halver) add(o op) {
	in := make([]Value, len(o.in))
	for i, v := range o.in {
		in[i] = h.operand(&o, i, v)
	}
	o.in = in
	out := o.out
	if !h.wanted[out] {
		h.ops = append(h.ops, o)
		return
	}
	if h.needed[out] || !h.p.writesHalf(&o) || h.p.of(out).role != roleStep {
		h.ops = append(h.ops, o)
		h.narrow(out)
		return
	}
	v := *h.p.of(out)
	v.half = true
	o.out, o.inPlace = h.p.new(v), -1
	h.half[out] = o.out
	h.ops = append(h.ops, o)
}

// operand returns the value that an operation reads in the place of v.
func (h *halver) operand(o *op, i int, v Value) Value {
	root := h.p.root(v)
	takes, half := h.p.takes(o, i), h.half[root]
	if o.kind.follows && h.p.of(root).half && h.wanted[o.out] && !h.needed[o.out] {
		takes = takesEither
	}
	switch {
	case takes == takesFloats && h.p.of(root).half:
		if h.floats[root] == 0 {
			h.floats[root] = h.convert(opWiden, root, false)
		}
		return h.view(h.floats[root], v)
	case takes == takesHalf && half == 0:
		return h.view(h.narrow(root), v)
	case takes != takesFloats && half != 0:
		return h.view(half, v)
	}
	return v
}

// view returns x, or the rows of it that v has of its root.
func (h *halver) view(x, v Value) Value { return h.p.tail(x, h.p.of(v).rows) }

// narrow appends the conversion of a value to bfloat16.
func (h *halver) narrow(v Value) Value {
	h.half[v] = h.convert(opNarrow, v, true)
	return h.half[v]
}

func (h *halver) convert(kind *Kind, v Value, half bool) Value {
	x := *h.p.of(v)
	o := simple(kind, v)
	o.out = h.p.new(value{rows: x.rows, cols: x.cols, half: half})
	h.ops = append(h.ops, o)
	return o.out
}

// fuseDropouts makes one operation of an activation and a dropout that alone reads it.
func (p *Program) fuseDropouts() {
	uses, from := p.uses(), p.producers()
	for i := range p.ops {
		o := &p.ops[i]
		if o.kind != opDropout || o.tail || uses[o.in[0]] != 1 || i >= p.forward {
			continue
		}
		j, ok := from[o.in[0]]
		if !ok || j >= p.forward {
			continue
		}
		if first := &p.ops[j]; first.kind != nil && first.kind.dropout && first.rate == 0 {
			o.kind, o.in = first.kind, first.in
			first.kind = nil
		}
	}
	p.dropFused()
}

// dropFused removes operations that became part of others.
func (p *Program) dropFused() {
	for i := range p.ops[:p.forward] {
		if p.ops[i].kind == nil {
			p.forward--
		}
	}
	p.dropNone()
}

// fuseELUs makes one operation of an ELU, a dropout that alone reads it but for the gradient, and a
// bias before it, and one of their gradients, where the result is read as bfloat16 only.
func (p *Program) fuseELUs() {
	uses, from := p.uses(), p.producers()
	for i := range p.forward {
		o := &p.ops[i]
		if o.kind != opELU || !p.fuseELU(o, uses, from) {
			continue
		}
		b, ok := from[o.in[0]]
		if ok && p.ops[b].kind == opBias && p.ops[b].rate == 0 && uses[o.in[0]] == 1 {
			o.in = p.ops[b].in
			p.ops[b].kind = nil
		}
	}
	p.dropFused()
}

// fuseELU makes a dropout part of an ELU, and says whether there is such a one.
func (p *Program) fuseELU(o *op, uses map[Value]int, from map[Value]int) bool {
	var drop, grad *op
	for i := range p.ops {
		switch r := &p.ops[i]; {
		case i < p.forward && r.kind == opDropout && r.in[0] == o.out && !r.tail:
			drop = r
		case r.kind == opELUGrad && r.in[1] == o.out:
			grad = r
		}
	}
	if drop == nil || !p.readAsHalf(drop.out) {
		return false
	}
	if grad != nil {
		back := &p.ops[from[grad.in[0]]]
		if back.kind != opDropout || back.site != drop.site || uses[back.out] != 1 ||
			uses[o.out] != 2 {
			return false
		}
		grad.in, grad.rate, grad.site = []Value{back.in[0], drop.out}, drop.rate, drop.site
		back.kind = nil
	} else if uses[o.out] != 1 {
		return false
	}
	o.out, o.rate, o.site = drop.out, drop.rate, drop.site
	drop.kind = nil
	return true
}

// readAsHalf reports whether a value, and its views, are read as bfloat16 only.
func (p *Program) readAsHalf(v Value) bool {
	half := false
	for i := range p.ops {
		o := &p.ops[i]
		for k, in := range o.in {
			if p.root(in) != v {
				continue
			}
			takes := p.takes(o, k)
			if half = half || takes == takesHalf; takes == takesFloats {
				return false
			}
		}
		if o.acc != 0 && p.root(o.acc) == v {
			return false
		}
	}
	return half && v != p.logits && p.of(v).role == roleStep
}
