package program

import "slices"

// The order of aggregation and product: (AX)W and A(XW) are the same, and which costs less depends
// on the widths and on how many nodes and entries a batch has (Joestar, 003, section 5.3.3 and
// Figure 5.10).

// place is where the two may change places.
type place struct {
	pull, product int // operations, by their numbers
	transforms    bool
}

// findPlaces finds all places of a forward pass. A pull between two products is in one place only,
// with the first.
func (p *Program) findPlaces() (places []place) {
	uses, from := p.uses(), p.producers()
	taken := map[int]bool{}
	for i := range p.ops {
		o := &p.ops[i]
		switch {
		case o.kind == opMatMul:
			j, ok := from[o.in[0]]
			if ok && !taken[j] && uses[o.in[0]] == 1 && isPull(&p.ops[j]) &&
				p.of(o.in[1]).role == roleParam {
				places = append(places, place{pull: j, product: i})
			}
		case o.kind.linear:
			j, ok := from[o.in[0]]
			if ok && p.ops[j].kind == opMatMul && p.of(p.ops[j].in[1]).role == roleParam &&
				p.movable(o, uses) {
				places = append(places, place{pull: i, product: j, transforms: true})
				taken[i] = true
			}
		}
	}
	return places
}

// isPull reports whether an operation reduces lists in a way that is linear in the rows.
func isPull(o *op) bool {
	return o.kind.linear && o.heads <= 1
}

// movable reports whether all that reads the product that o pulls can do without it.
func (p *Program) movable(o *op, uses map[Value]int) bool {
	z := o.in[0]
	if o.kind != opPullWeighted {
		return uses[z] == 1
	}
	scores := 0
	for i := range p.ops {
		for _, v := range p.ops[i].in[:min(1, len(p.ops[i].in))] {
			if p.ops[i].kind == opHeadMul && (v == z || p.of(v).base == z) {
				scores++
			}
		}
	}
	return uses[z] == scores+1 && !o.shared
}

// reorder gives each place the order that is wanted: true transforms first. The last place is the
// first to change, since operations before a place keep their numbers.
func (p *Program) reorder(order []bool) {
	for i := len(p.findPlaces()) - 1; i >= 0; i-- {
		pl := p.findPlaces()[i]
		if i >= len(order) || order[i] == pl.transforms {
			continue
		}
		switch {
		case order[i]:
			p.transformFirst(pl)
		case p.ops[pl.pull].heads > 1 || p.uses()[p.ops[pl.pull].in[0]] > 1: // by scores
			p.weighFirst(pl)
		default:
			p.pullFirst(pl)
		}
	}
}

// transformFirst turns (AX)W into A(XW).
func (p *Program) transformFirst(pl place) {
	pull, product := p.ops[pl.pull], p.ops[pl.product]
	x, w := pull.in[0], product.in[1]
	vx := *p.of(x)
	z := p.new(value{rows: vx.rows, cols: p.of(w).cols, grad: true})
	first, then := simple(opMatMul, x, w), pull
	first.out, then.in, then.out = z, slices.Clone(pull.in), product.out
	then.in[0] = z
	p.ops[pl.pull], p.ops[pl.product] = first, then
}

// pullFirst turns A(XW) into (AX)W.
func (p *Program) pullFirst(pl place) {
	pull, product := p.ops[pl.pull], p.ops[pl.product]
	x, w := product.in[0], product.in[1]
	vx := *p.of(x)
	y := p.new(value{rows: pull.list.has(), cols: vx.cols, grad: vx.grad})
	first, then := pull, simple(opMatMul, y, w)
	first.in, first.out, then.out = slices.Clone(pull.in), y, pull.out
	first.in[0] = x
	// Both come where the pull was: its weights may be computed after the product.
	p.ops[pl.pull] = then
	p.ops = slices.Insert(p.ops, pl.pull, first)
	p.ops = slices.Delete(p.ops, pl.product, pl.product+1)
}

// weighFirst turns A(XW) into (AX)W where A has weights for each head, which are computed from XW:
// XW·a is X·(W·a).
func (p *Program) weighFirst(pl place) {
	pull, product := p.ops[pl.pull], p.ops[pl.product]
	x, w, z := product.in[0], product.in[1], product.out
	var ops []op
	for i, o := range p.ops {
		of := Value(0)
		if o.kind == opHeadMul {
			of = o.in[0]
		}
		switch {
		case i == pl.product:
		case i == pl.pull:
			ops = append(ops, p.sharedPull(pull, x, w)...)
		case of != 0 && (of == z || p.of(of).base == z):
			from := x
			if of != z {
				from = p.tail(x, p.of(of).rows)
			}
			a := o.in[1]
			v := p.new(value{rows: p.of(w).rows, cols: p.of(a).cols, grad: true})
			first, then := simple(opHeadMul, w, a), simple(opMatMul, from, v)
			first.heads, first.out, then.out = o.heads, v, o.out
			ops = append(ops, first, then)
		default:
			ops = append(ops, o)
		}
	}
	p.ops = ops
}

// sharedPull weighs whole rows of x for each head, and multiplies each with the head's weights.
func (p *Program) sharedPull(pull op, x, w Value) []op {
	y := p.new(value{rows: pull.list.has(), cols: pull.heads * p.of(x).cols, grad: true})
	first, then := pull, simple(opHeadMul, y, w)
	first.in, first.out, first.shared = []Value{x, pull.in[1]}, y, true
	then.heads, then.out = pull.heads, pull.out
	return []op{first, then}
}
