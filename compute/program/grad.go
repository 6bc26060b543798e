package program

// tape derives the backward pass of a program, operation by operation from the last to the first.
type tape struct {
	p     *Program
	grads map[Value]Value // the gradient of a value, as far as it is summed up
	// masked are outputs of ReLU that are only read through a dropout, and what came of it: the
	// gradient of both is one operation, which reads that.
	masked map[Value]dropped
	uses   map[Value]int
	tails  map[Value][]Value // views of a value
}

type dropped struct {
	out  Value
	rate float32
}

// rule appends the gradients of an operation's operands, given that of its result.
type rule func(t *tape, o *op, dy Value)

// rules are the gradients of operations. One that is not here has none: nothing that is learned
// comes before it.
var rules map[Kind]rule

func init() {
	rules = map[Kind]rule{opMatMul: matMulRule, opHeadMul: headMulRule, opAdd: addRule,
		opHeadMean: headMeanRule, opColumns: columnsRule, opScale: scaleRule,
		opRowScale: rowScaleRule,
		opShift:    shiftRule, opBias: biasRule,
		opBiasReLU: biasReLURule, opReLU: reluRule, opELU: eluRule, opGELU: geluRule,
		opLeakyReLU: leakyRule, opDropout: dropoutRule, opLayerNorm: normRule(opLayerNormGrad),
		opBatchNorm: normRule(opBatchNormGrad),
		opPullMean:  pullRule(opPullMeanGrad), opPullSum: pullRule(opPullSumGrad),
		opPullMax: pullMaxRule, opPullWeighted: pullWeightedRule, opScores: scoresRule,
		opScores2: scores2Rule, opSoftmax: softmaxRule, opTypeRows: typeRowsRule}
}

// differentiate appends the backward pass.
func (p *Program) differentiate() {
	t := &tape{p: p, grads: map[Value]Value{}, masked: map[Value]dropped{}, uses: p.uses(),
		tails: map[Value][]Value{}}
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
		if r := rules[o.kind]; dy != 0 && r != nil {
			r(t, &o, dy)
		}
	}
	if p.of(p.features).grad {
		p.input = t.gradient(p.features)
	}
}

// uses counts the operands that are a value or a view of it.
func (p *Program) uses() map[Value]int {
	n := map[Value]int{}
	for i := range p.ops {
		for _, v := range p.ops[i].reads() {
			n[v]++
			if base := p.of(v).base; base != 0 {
				n[base]++
			}
		}
	}
	return n
}

// reads are the values that an operation reads.
func (o *op) reads() []Value {
	if o.acc == 0 {
		return o.in
	}
	return append(o.in[:len(o.in):len(o.in)], o.acc)
}

// gradient is that of a value, with those of its views.
func (t *tape) gradient(v Value) Value {
	for _, view := range t.tails[v] {
		part := t.grads[view]
		if part == 0 {
			continue
		}
		delete(t.grads, view)
		if t.grads[v] == 0 {
			whole := t.p.of(v)
			t.grads[v] = t.p.add(simple(opEmbed, part), whole.rows, whole.cols)
			continue
		}
		t.sum(v, part)
	}
	return t.grads[v]
}

// give appends an operation that computes a part of the gradient of v.
func (t *tape) give(v Value, o op) {
	x := *t.p.of(v)
	if !x.grad {
		return
	}
	t.hold(v, t.p.add(o, x.rows, x.cols))
}

// hold adds part to the gradient of v.
func (t *tape) hold(v, part Value) {
	x := t.p.of(v)
	switch {
	case !x.grad:
	case t.grads[v] != 0:
		t.sum(v, part)
	case x.role == roleParam:
		t.p.of(part).role, t.p.of(part).index = roleGrad, x.index
		t.grads[v] = part
	default:
		t.grads[v] = part
	}
}

// sum adds part, whose rows may be the last ones only, to the gradient of v.
func (t *tape) sum(v, part Value) {
	to := *t.p.of(t.grads[v])
	out := t.p.add(inPlace(opAdd, t.grads[v], part), to.rows, to.cols)
	t.p.of(out).role, t.p.of(out).index = to.role, to.index
	t.grads[v] = out
}

func matMulRule(t *tape, o *op, dy Value) {
	x, w := o.in[0], o.in[1]
	t.give(w, simple(opMatMulTA, x, dy))
	t.give(x, simple(opMatMulTB, dy, w))
}

func headMulRule(t *tape, o *op, dy Value) {
	x, w := o.in[0], o.in[1]
	for _, g := range []struct {
		of Value
		op op
	}{{w, simple(opHeadMulTA, x, dy)}, {x, simple(opHeadMulTB, dy, w)}} {
		g.op.heads = o.heads
		t.give(g.of, g.op)
	}
}

func addRule(t *tape, o *op, dy Value) {
	t.hold(o.in[0], dy)
	t.hold(o.in[1], dy)
}

func headMeanRule(t *tape, o *op, dy Value) {
	g := simple(opHeadMeanGr, dy)
	g.heads = o.heads
	t.give(o.in[0], g)
}

func columnsRule(t *tape, o *op, dy Value) {
	g := simple(opColumnsGr, dy)
	g.first = o.first
	t.give(o.in[0], g)
}

func scaleRule(t *tape, o *op, dy Value) {
	g := inPlace(opScale, dy)
	g.scalar = o.scalar
	t.give(o.in[0], g)
}

func rowScaleRule(t *tape, o *op, dy Value) { t.give(o.in[0], inPlace(opRowScale, dy, o.in[1])) }

func shiftRule(t *tape, o *op, dy Value) { t.hold(o.in[0], dy) }

func biasRule(t *tape, o *op, dy Value) {
	t.give(o.in[1], simple(opColumnSum, dy))
	t.hold(o.in[0], dy)
}

// reluGrad is the gradient of ReLU, and of a dropout after it.
func (t *tape) reluGrad(o *op, dy Value) Value {
	g := inPlace(opReLUGrad, dy, o.out)
	if d, ok := t.masked[o.out]; ok {
		g.in[1], g.scalar = d.out, d.rate
	}
	v := *t.p.of(o.out)
	return t.p.add(g, v.rows, v.cols)
}

func biasReLURule(t *tape, o *op, dy Value) {
	dz := t.reluGrad(o, dy)
	t.give(o.in[1], simple(opColumnSum, dz))
	t.hold(o.in[0], dz)
}

func reluRule(t *tape, o *op, dy Value) { t.hold(o.in[0], t.reluGrad(o, dy)) }

func eluRule(t *tape, o *op, dy Value) { t.give(o.in[0], inPlace(opELUGrad, dy, o.out)) }

func geluRule(t *tape, o *op, dy Value) { t.give(o.in[0], inPlace(opGELUGrad, dy, o.in[0])) }

func leakyRule(t *tape, o *op, dy Value) {
	g := inPlace(opLeakyReLUGrad, dy, o.out)
	g.scalar = o.scalar
	t.give(o.in[0], g)
}

// dropoutRule: a dropout is its own gradient. After ReLU both are one operation.
func dropoutRule(t *tape, o *op, dy Value) {
	x := o.in[0]
	for i := range t.p.forward {
		from := &t.p.ops[i]
		if from.out == x && t.uses[x] == 1 && (from.kind == opReLU || from.kind == opBiasReLU) {
			t.masked[x] = dropped{o.out, o.scalar}
			t.hold(x, dy)
			return
		}
	}
	g := inPlace(opDropout, dy)
	g.scalar, g.site, g.tail = o.scalar, o.site, o.tail
	t.give(x, g)
}

func normRule(kind Kind) rule {
	return func(t *tape, o *op, dy Value) {
		x, gamma, beta := o.in[0], o.in[1], o.in[2]
		g := simple(kind, dy, x, gamma, o.extra[0])
		v := *t.p.of(x)
		for range 2 {
			g.extra = append(g.extra, t.p.new(value{rows: Fixed(1), cols: v.cols, grad: true}))
		}
		dx := t.p.add(g, v.rows, v.cols)
		t.hold(gamma, g.extra[0])
		t.hold(beta, g.extra[1])
		t.hold(x, dx)
	}
}

func pullRule(kind Kind) rule {
	return func(t *tape, o *op, dy Value) {
		g := simple(kind, dy)
		g.list = o.list
		t.give(o.in[0], g)
	}
}

func pullMaxRule(t *tape, o *op, dy Value) {
	g := simple(opPullMaxGrad, dy, o.extra[0])
	g.list = o.list
	t.give(o.in[0], g)
}

func pullWeightedRule(t *tape, o *op, dy Value) {
	x, w := o.in[0], o.in[1]
	for _, g := range []struct {
		of Value
		op op
	}{{w, simple(opEntryDot, dy, x)}, {x, simple(opPullWeightedGradX, dy, w)}} {
		g.op.list, g.op.heads, g.op.shared = o.list, o.heads, o.shared
		t.give(g.of, g.op)
	}
}

// overEntries copies what an operation over entries is about.
func (o op) overEntries(from *op) op {
	o.list, o.heads, o.scalar = from.list, from.heads, from.scalar
	return o
}

func scoresRule(t *tape, o *op, dy Value) {
	v := *t.p.of(o.out)
	ds := t.p.add(inPlace(opScoresGrad, dy, o.out).overEntries(o), v.rows, v.cols)
	t.give(o.in[0], simple(opEntryToRow, ds).overEntries(o))
	t.give(o.in[1], simple(opEntryToList, ds).overEntries(o))
}

func scores2Rule(t *tape, o *op, dy Value) {
	src, dst, att := o.in[0], o.in[1], o.in[2]
	g := simple(opScores2GradList, dy, src, dst, att).overEntries(o)
	a := *t.p.of(att)
	g.extra = []Value{t.p.new(value{rows: a.rows, cols: a.cols, grad: true})}
	v := *t.p.of(dst)
	ddst := t.p.add(g, v.rows, v.cols)
	t.hold(att, g.extra[0])
	t.hold(dst, ddst)
	t.give(src, simple(opScores2GradRow, dy, src, dst, att).overEntries(o))
}

func typeRowsRule(t *tape, o *op, dy Value) {
	t.give(o.in[0], simple(opTypeRowsGrad, dy, o.in[1]))
}

func softmaxRule(t *tape, o *op, dy Value) {
	t.give(o.in[0], inPlace(opSoftmaxGrad, dy, o.out).overEntries(o))
}
