package engine

import (
	"context"

	"gdb/shell/cypher/ast"
)

// lookUpCost is what a look-up of a node costs beside a step over an entry of a list.
const lookUpCost = 16

// lookUp finds out whether a node can be looked up for each row of the clauses before, by an
// equation of one of its properties with what these rows have.
func (p *pattern) lookUp(ctx context.Context, i int, src Source) error {
	n := p.nodes[i]
	if p.in == nil || n.bound || n.anchored {
		return nil
	}
	for _, c := range append(p.cross[:len(p.cross):len(p.cross)], p.last...) {
		x, ok := c.x.(*ast.Compare)
		if !ok || len(x.Ops) != 1 || x.Ops[0] != "=" {
			continue
		}
		for k := range 2 {
			key, ok := propertyOf(x.Xs[k], n.name)
			if !ok || !p.given(x.Xs[1-k]) {
				continue
			}
			_, ok, err := src.Find(ctx, n.labels, key, int64(0))
			if err != nil {
				return err
			}
			if ok {
				n.by, n.key = x.Xs[1-k], key
			}
		}
	}
	return nil
}

// propertyOf returns the key of x if it is a property of a variable.
func propertyOf(x ast.Expr, name string) (string, bool) {
	p, ok := x.(*ast.Prop)
	if !ok {
		return "", false
	}
	v, ok := p.Of.(*ast.Var)
	return p.Key, ok && v.Name == name
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
