package engine

import (
	"context"
	"slices"
	"sync/atomic"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// input is the rows of the clauses before a pattern, of which each is matched.
type input struct {
	vars     map[string]form
	wanted   map[string]bool // names that the pattern and what follows have
	estimate float64         // of rows
	// optional says that a row without a match is handed on too, with null for what is new.
	optional bool
	rows     []*eval.Scope
	matched  []bool
	out      atomic.Int64 // rows that an optional one hands on
}

// form is what is known of a variable: whether it is a node or null, or a list of such.
type form uint8

const (
	anyForm form = iota
	nodeForm
	nodesForm
)

// variables returns the variables that rows have after some clauses.
func variables(clauses []ast.Clause) map[string]form {
	vars := map[string]form{}
	for _, c := range clauses {
		switch c := c.(type) {
		case *ast.Match:
			matchForms(c.Patterns, vars)
		case *ast.Write:
			matchForms(c.Patterns, vars)
		case *ast.Unwind:
			f := anyForm
			if formOf(c.X, vars) == nodesForm {
				f = nodeForm
			}
			vars[c.Name] = f
		case *ast.CallProc:
			for _, y := range c.Yield {
				vars[y.Name] = anyForm
			}
		case *ast.Project:
			out := map[string]form{}
			for _, i := range c.Items {
				out[i.Name] = formOf(i.X, vars)
			}
			vars = out
		}
	}
	return vars
}

func matchForms(patterns []*ast.Pattern, vars map[string]form) {
	for _, name := range (&ast.Match{Patterns: patterns}).Names() {
		if _, ok := vars[name]; !ok {
			vars[name] = anyForm
		}
	}
	for _, p := range patterns {
		for _, n := range p.Nodes {
			if n.Name != "" {
				vars[n.Name] = nodeForm
			}
		}
	}
}

func formOf(x ast.Expr, vars map[string]form) form {
	switch x := x.(type) {
	case *ast.Var:
		return vars[x.Name]
	case *ast.Call:
		if x.Name == "collect" && formOf(x.Args[0], vars) == nodeForm {
			return nodesForm
		}
	}
	return anyForm
}

// has reports whether rows have a variable.
func (in *input) has(name string) bool {
	if in == nil {
		return false
	}
	_, ok := in.vars[name]
	return ok
}

// bind adds the nodes that rows have and that are wanted.
func (p *pattern) bind() {
	if p.in == nil {
		return
	}
	for name, f := range p.in.vars {
		if f == nodeForm && p.in.wanted[name] {
			p.byName[name] = len(p.nodes)
			p.nodes = append(p.nodes, &node{name: name, named: true, bound: true})
		}
	}
}

// bound returns the nodes of a pattern that rows have.
func (in *input) bound(p *pattern) (out []int) {
	for i, n := range p.nodes {
		if n.bound {
			out = append(out, i)
		}
	}
	return out
}

// mayBeNull reports whether one of some nodes may be null.
func (p *pattern) mayBeNull(nodes []int) bool {
	return slices.ContainsFunc(nodes, func(i int) bool {
		return p.nodes[i].bound && !p.nodes[i].matched
	})
}

// union returns how many numbers are in one of two lists of different ones.
func union(a, b []int) int {
	n := len(a)
	for _, v := range b {
		if !slices.Contains(a, v) {
			n++
		}
	}
	return n
}

// set sets the rows of a run.
func (in *input) set(rows []*eval.Scope) {
	if in == nil {
		return
	}
	in.rows = rows
	if in.optional {
		in.matched = make([]bool, len(rows))
	}
}

// morselRows is how many rows of the clauses before a thread takes at once.
const morselRows = 128

// rowParts returns numbers of rows of the clauses before, in parts: long ones where lists are read,
// of which those that are in a block are wanted at once.
func (pl *plan) rowParts() []Range {
	rows := len(pl.p.in.rows)
	each := morselRows
	if pl.reads {
		each = min(max(each, rows/(4*max(pl.src.Threads(), 1))), pl.most)
	}
	all := everything(uint64(rows))
	return all.split(uint32(each))
}

// first makes the step that binds what rows have, and that of relationships that join such nodes;
// false if there is no memory for their lists.
func (pl *plan) first(ctx context.Context) (bool, error) {
	pl.steps = append(pl.steps, &step{node: -1, rows: pl.p.in.estimate})
	join := &step{node: -1, rows: pl.p.in.estimate}
	for _, r := range pl.p.rels {
		if !pl.p.nodes[r.from].bound || !pl.p.nodes[r.to].bound {
			continue
		}
		owner := r.from
		if !pl.follows(r, owner) {
			owner = r.to
		}
		if ok, err := pl.load(ctx, r, owner); !ok || err != nil {
			return ok, err
		}
		join.legs = append(join.legs, r)
	}
	if len(join.legs) > 0 {
		pl.steps = append(pl.steps, join)
	}
	return true, nil
}

// given takes rows of the clauses before.
func (w *worker) given(of Range) error {
	out := w.outs[0]
	out.in, out.n = w.p.in.rows, 0
	for row := of.From; row < of.End; row++ {
		ok, err := w.p.fill(out, row, true)
		if err != nil {
			return err
		}
		if ok {
			out.times[out.n], out.row[out.n] = 1, row
			out.n++
		}
	}
	return w.hand(0, out)
}

// fill sets the bound nodes of the next row of a batch. With check it is false if the row cannot
// match.
func (p *pattern) fill(b *batch, row uint32, check bool) (bool, error) {
	for i, n := range p.nodes {
		if !n.bound {
			continue
		}
		x, _ := p.in.rows[row].Lookup(n.name)
		v := vector.NoNode
		switch x := x.(type) {
		case nil:
		case value.Node:
			v = uint32(x.ID)
		default:
			return false, ast.Errorf(n.at.Pos(), "TypeError", "InvalidArgumentValue",
				"%s is %s, not a node", n.name, value.Kind(x))
		}
		if check && !n.fits(v) {
			return false, nil
		}
		if b.nodes[i] != nil {
			b.nodes[i][b.n] = v
		}
	}
	return true, nil
}

// fits reports whether a bound node may have a value.
func (n *node) fits(v uint32) bool {
	if v == vector.NoNode {
		return !n.matched && len(n.labels) == 0
	}
	return n.set.Has(v)
}

// given returns a variable of the clauses before that is no node.
func (b *batch) given(name string) *vector.Vector {
	if !b.p.in.has(name) {
		return nil
	}
	vals := make([]any, b.n)
	for i := range vals {
		vals[i], _ = b.in[b.row[i]].Lookup(name)
	}
	return vector.From(vals)
}

// outer hands on a row without a match for each row of the clauses before that has none.
type outer struct {
	pl    *plan
	parts []Range
	next  sink
}

// sinks returns what a worker hands rows to before next takes them.
func (pl *plan) sinks(env *vector.Env, next sink) sink {
	if in := pl.p.in; in != nil && in.optional {
		next = &outer{pl, pl.rowParts(), next}
	}
	return &filtered{pl, env, next, make([]bool, pl.most)}
}

func (o *outer) take(part int, b *batch) error {
	for _, row := range b.row[:b.n] {
		o.pl.p.in.matched[row] = true
	}
	o.pl.p.in.out.Add(int64(b.n))
	return o.next.take(part, b)
}

func (o *outer) end(part int) error {
	b := o.pl.newBatch(o.pl.steps[len(o.pl.steps)-1])
	p := o.pl.p
	b.in = p.in.rows
	for row := o.parts[part].From; row < o.parts[part].End; row++ {
		if p.in.matched[row] {
			continue
		}
		for _, col := range b.nodes {
			if col != nil {
				col[b.n] = vector.NoNode
			}
		}
		for _, col := range b.ents {
			if col != nil {
				col[b.n] = noEntry
			}
		}
		if _, err := p.fill(b, row, false); err != nil {
			return err
		}
		b.times[b.n], b.row[b.n] = 1, row
		b.n++
	}
	if b.n > 0 {
		p.in.out.Add(int64(b.n))
		if err := o.next.take(part, b); err != nil {
			return err
		}
	}
	return o.next.end(part)
}
