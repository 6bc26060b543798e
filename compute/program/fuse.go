package program

import "slices"

// fuseElements makes one operation of a bias and what follows it, such as ReLU.
func (p *Program) fuseElements() {
	uses, from := p.uses(), p.producers()
	for i := range p.ops {
		o := &p.ops[i]
		if o.kind == nil || o.kind.biased == nil || uses[o.in[0]] != 1 {
			continue
		}
		j, ok := from[o.in[0]]
		if !ok || o.kind.biased[p.ops[j].kind] == nil {
			continue
		}
		o.kind, o.in = o.kind.biased[p.ops[j].kind], p.ops[j].in
		p.ops[j].kind = nil
	}
	p.dropNone()
}

// fuseSums lets an operation add to a sum what it computes, where nothing else reads it. It is then
// done where the sum was.
func (p *Program) fuseSums() {
	uses, from := p.uses(), p.producers()
	ends := p.forward
	for i := range p.ops {
		o := p.ops[i]
		if o.kind != opAdd {
			continue
		}
		x, y := o.in[0], o.in[1]
		for _, way := range [][2]Value{{x, y}, {y, x}} {
			to, part := way[0], way[1]
			j, ok := from[part]
			if !ok || !p.addable(to, part, &p.ops[j], uses) || (j < ends) != (i < ends) {
				continue
			}
			sum := p.ops[j]
			sum.acc, sum.out, sum.rows = to, o.out, p.of(part).rows
			p.ops[i], p.ops[j].kind = sum, nil
			from[o.out] = i
			break
		}
	}
	for i := range ends {
		if p.ops[i].kind == nil {
			p.forward--
		}
	}
	p.dropNone()
}

// addable reports whether an operation may add its result, part, to another value, where that has
// whole rows for it. One that has more results, which others read, stays where it is.
func (p *Program) addable(to, part Value, from *op, uses map[Value]int) bool {
	return from.kind != nil && from.kind.accumulates && from.acc == 0 && len(from.extra) == 0 &&
		uses[part] == 1 &&
		p.of(part).base == 0 && p.of(to).base == 0 && p.of(part).role == roleStep &&
		(p.of(to).rows == p.of(part).rows || p.of(to).rows.n < p.of(part).rows.n &&
			p.of(to).rows.kind == nodeRows)
}

// readInPlace lets the first layer's aggregation read rows of the features where they are kept, and
// not in the batch (003, Figure 5.7), which then has only those of Nodes(1). It says whether that
// can be: everything else reads only these.
func (p *Program) readInPlace() bool {
	f := p.features
	for i := range p.ops {
		o := &p.ops[i]
		if o.kind == opDropout && o.in[0] == f && p.onlyPulled(o.out) {
			continue
		}
		if slices.Contains(o.in, f) && o.kind != opPullMean {
			return false
		}
	}
	if !p.onlyPulled(f) {
		return false
	}
	v := *p.of(f)
	table := p.new(value{rows: v.rows, cols: v.cols, role: roleTable, half: v.half})
	p.own = p.new(value{rows: Nodes(1), cols: v.cols, role: roleFeatures, half: v.half})
	var ops []op
	dropouts := map[Value]op{}
	for _, o := range p.ops {
		switch {
		case o.kind == opDropout && o.in[0] == f:
			own := o
			own.in, own.tail = []Value{p.own}, true
			dropouts[o.out] = own
			own.out = p.moveTail(o.out, p.new(value{rows: Nodes(1), cols: v.cols}))
			ops = append(ops, own)
			continue
		case o.kind == opPullMean && o.in[0] == f:
			o.in = []Value{table}
		case o.kind == opPullMean && dropouts[o.in[0]].kind == opDropout:
			d := dropouts[o.in[0]]
			o.kind, o.in, o.rate, o.site = opPullMeanDropped, []Value{table}, d.rate, d.site
		}
		ops = append(ops, o)
	}
	p.ops = ops
	p.moveTail(f, p.own)
	return true
}

// onlyPulled reports whether x is only read by means over the first hop, by its dropout, and by
// views of the nodes of the first layer's outputs.
func (p *Program) onlyPulled(x Value) bool {
	for i := range p.ops {
		o := &p.ops[i]
		for _, v := range o.in {
			whole := v == x && o.kind != opPullMean && o.kind != opDropout
			if whole || p.of(v).base == x && p.of(v).rows != Nodes(1) {
				return false
			}
		}
	}
	return true
}

// moveTail lets all that reads the view of x that has the rows of Nodes(1) read y.
func (p *Program) moveTail(x, y Value) Value {
	for i := range p.values {
		if p.values[i].base != x || p.values[i].rows != Nodes(1) {
			continue
		}
		for k := range p.ops {
			for n, v := range p.ops[k].in {
				if v == Value(i) {
					p.ops[k].in = slices.Clone(p.ops[k].in)
					p.ops[k].in[n] = y
				}
			}
		}
	}
	return y
}

// dropDead removes operations whose results nothing reads.
func (p *Program) dropDead() {
	live := map[Value]bool{p.logits: true, p.input: true, p.maskGrad: true}
	for i := len(p.ops) - 1; i >= 0; i-- {
		o := &p.ops[i]
		needed := false
		for _, v := range append([]Value{o.out}, o.extra...) {
			needed = needed || live[v] || p.of(v).role == roleGrad
		}
		if !needed {
			o.kind = nil
			if i < p.forward {
				p.forward--
			}
			continue
		}
		for _, v := range o.reads() {
			live[v] = true
			if base := p.of(v).base; base != 0 {
				live[base] = true
			}
		}
	}
	p.dropNone()
}
