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
	// add sums up gradients.
	add *Kind
}

type dropped struct {
	out  Value
	rate float32
}

// rule appends the gradients of an operation's operands, given that of its result.
type rule func(t *tape, o *op, dy Value)

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
	out := t.p.add(inPlace(t.add, t.grads[v], part), to.rows, to.cols)
	t.p.of(out).role, t.p.of(out).index = to.role, to.index
	t.grads[v] = out
}
