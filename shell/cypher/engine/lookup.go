package engine

import (
	"context"
	"slices"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// lookUpCost is what a look-up of a node costs beside a step over an entry of a list.
const lookUpCost = 16

// foundMost is how many nodes are found by constants at most: of more, all nodes are looked at, as
// without what finds them.
const foundMost = 1 << 20

// find looks a node up by a property, or its number, that equals a constant, or is in a list of
// constants.
func (p *pattern) find(ctx context.Context, n *node, env *vector.Env, src Source) error {
	if n.bound {
		return nil
	}
	for _, x := range p.about(n) {
		key, want := equation(x, n.name)
		if want == nil || !vector.Constant(want) {
			continue
		}
		v, err := env.Row.Eval(want, nil)
		if err != nil {
			return nil // whatever matches all else meets the mistake again
		}
		list, ok := v.(value.List)
		if _, in := x.(*ast.Binary); !in {
			list, ok = value.List{v}, true
		}
		if !ok {
			continue
		}
		if nodes, ok, err := findAll(ctx, n, key, list, src); err != nil {
			return err
		} else if ok {
			n.anchor, n.anchored, n.key = nodes, true, key
		}
	}
	return n.pick(env, src)
}

// pick computes the conditions of the only values that a node can have.
func (n *node) pick(env *vector.Env, src Source) error {
	if !n.anchored {
		return nil
	}
	rows := &column{name: n.name, v: vector.Vector{Kind: vector.Node, Nodes: n.anchor, G: src}}
	keep := make([]bool, len(n.anchor))
	for _, x := range n.filters {
		if err := env.Filter(x, rows, keep[:rows.Len()]); err != nil {
			return err
		}
		i := 0
		rows.v.Nodes = slices.DeleteFunc(rows.v.Nodes, func(uint32) bool { i++; return !keep[i-1] })
	}
	n.anchor, n.filters = rows.v.Nodes, nil
	return nil
}

// about returns the conditions of a node alone.
func (p *pattern) about(n *node) []ast.Expr {
	out := slices.Clone(n.filters)
	for _, c := range p.last {
		if len(c.nodes) == 1 && p.nodes[c.nodes[0]] == n {
			out = append(out, c.x)
		}
	}
	return out
}

// equation returns the property, or id(), of a variable that x says is equal to something, or is IN
// it.
func equation(x ast.Expr, name string) (key string, want ast.Expr) {
	switch x := x.(type) {
	case *ast.Compare:
		if len(x.Ops) != 1 || x.Ops[0] != "=" {
			return "", nil
		}
		for k := range 2 {
			if key, ok := ast.KeyOf(x.Xs[k], name); ok {
				return key, x.Xs[1-k]
			}
		}
	case *ast.Binary:
		if key, ok := ast.KeyOf(x.L, name); ok && x.Op == "IN" {
			return key, x.R
		}
	}
	return "", nil
}

// findAll returns the nodes that may have one of some values, in order; false if the source would
// have to look at all for one of them.
func findAll(ctx context.Context, n *node, key string, vals value.List, src Source) (out []uint32,
	ok bool, err error) {
	for _, v := range vals {
		if v == nil { // equals nothing
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		nodes, ok, err := src.Find(ctx, n.labels, key, v)
		if !ok || err != nil {
			return nil, ok, err
		}
		if out = append(out, nodes...); len(out) > foundMost {
			return nil, false, nil
		}
	}
	slices.Sort(out)
	return slices.Compact(out), true, nil
}

// isAnchor reports whether a node may have a value as far as it has been found.
func (n *node) isAnchor(v uint32) bool {
	if !n.anchored {
		return true
	}
	_, ok := slices.BinarySearch(n.anchor, v)
	return ok
}

// lookUp finds out whether a node can be looked up for each row of the clauses before, by an
// equation of one of its properties with what these rows have.
func (p *pattern) lookUp(ctx context.Context, i int, src Source) error {
	n := p.nodes[i]
	if p.in == nil || n.bound || n.anchored {
		return nil
	}
	for _, c := range append(slices.Clone(p.cross), p.last...) {
		key, want := equation(c.x, n.name)
		if _, ok := c.x.(*ast.Compare); !ok || want == nil || !p.given(want) {
			continue
		}
		_, ok, err := src.Find(ctx, n.labels, key, int64(0))
		if err != nil {
			return err
		}
		if ok {
			n.by, n.key = want, key
		}
	}
	return nil
}

// given reports whether rows of the clauses before have all that x reads.
func (p *pattern) given(x ast.Expr) bool {
	for name := range names(x) {
		if !p.in.has(name) {
			return false
		}
	}
	return true
}

// look takes the nodes that a row's value finds, or all if it finds none by it.
func (w *worker) look(k int, in *batch, row int) error {
	n := w.p.nodes[w.steps[k].node]
	w.env.Rows.Lock()
	v, err := w.env.Row.Eval(n.by, in.in[in.row[row]])
	w.env.Rows.Unlock()
	if err != nil { // whatever matches all else meets the mistake again
		return w.all(k, in, row)
	}
	nodes, ok, err := w.src.Find(w.ctx, n.labels, n.key, v)
	if err != nil {
		return err
	}
	if !ok {
		return w.all(k, in, row)
	}
	for _, v := range nodes {
		if err := w.try(k, in, row, v); err != nil {
			return err
		}
	}
	return nil
}
