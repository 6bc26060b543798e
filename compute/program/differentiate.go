package program

// differentiate appends the backward pass.
func (p *Program) differentiate() {
	t := &tape{p: p, grads: map[Value]Value{}, masked: map[Value]dropped{}, uses: p.uses(),
		tails: map[Value][]Value{}, add: opAdd}
	for i := range p.values {
		if base := p.values[i].base; base != 0 {
			t.tails[base] = append(t.tails[base], Value(i))
		}
	}
	logits := *p.of(p.logits)
	p.seed = p.new(value{rows: logits.rows, cols: logits.cols})
	t.grads[p.logits] = p.seed
	for i := p.forward - 1; i >= 0; i-- {
		o := p.ops[i]
		dy := t.gradient(o.out)
		if dy != 0 && o.kind.grad != nil {
			o.kind.grad(t, &o, dy)
		}
	}
	if p.of(p.features).grad {
		p.input = t.gradient(p.features)
	}
	if p.mask != 0 {
		p.maskGrad = t.gradient(p.mask)
	}
}

// gradient returns the gradient of a value, to which it adds the gradients of its views.
func (t *tape) gradient(v Value) Value {
	for _, view := range t.tails[v] {
		part := t.grads[view]
		if part == 0 {
			continue
		}
		if t.grads[v] == 0 {
			whole := t.p.of(v)
			t.grads[v] = t.p.add(simple(opEmbed, part), whole.rows, whole.cols)
			continue
		}
		t.sum(v, part)
	}
	return t.grads[v]
}
