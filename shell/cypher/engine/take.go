package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// Engine runs the first clauses of statements over a source.
type Engine struct {
	Source Source
	// Tell is told how a statement is run; it may be nil.
	Tell func(steps []Step)
}

// Take returns how the first clauses are run, if they are MATCH without variable length, paths and
// outer joins that are not only counted; nil if they are not, or if there is no memory for the
// lists. A Project after them that groups is taken too.
func (e *Engine) Take(ctx context.Context, row *eval.Env, clauses []ast.Clause) (*plain.Front,
	error) {
	var matches []*ast.Match
	for _, c := range clauses {
		m, ok := c.(*ast.Match)
		if !ok || len(matches) == 0 && m.Optional {
			break
		}
		matches = append(matches, m)
	}
	for len(matches) > 0 && len(matches) < len(clauses) {
		f, err := e.take(ctx, row, clauses, matches)
		if err == nil || !errors.Is(err, errFewer) && !errors.Is(err, errOuter) {
			return f, err
		}
		matches = matches[:len(matches)-1]
	}
	return nil, nil
}

// errFewer says that the engine does not run the last of some clauses.
var errFewer = errors.New("not for the engine")

// take returns how some clauses are run, and those that follow them as far as rows are grouped.
func (e *Engine) take(ctx context.Context, row *eval.Env, clauses []ast.Clause,
	matches []*ast.Match) (*plain.Front, error) {
	p, ok := newPattern(matches)
	if !ok {
		return nil, errFewer
	}
	n := len(matches)
	last, ok := clauses[n].(*ast.Project)
	var g *grouping
	rest := clauses[n:]
	if ok {
		g = newGrouping(last)
		if len(g.calls) == 0 && !(last.Distinct && len(last.OrderBy) == 0) {
			g = nil
		} else {
			rest = clauses[n : n+1]
		}
	}
	p.want(rest, g)
	for i, n := range p.nodes { // counted, or left to the reference
		if n.outer && (g == nil || n.needed || p.wantsRel(i)) {
			return nil, errFewer
		}
	}
	env := &vector.Env{Row: row, Rows: &sync.Mutex{},
		Property: func(nodes *vector.Vector, key string, out *vector.Vector) (bool, error) {
			return e.Source.Property(ctx, nodes, key, out)
		}}
	pl, err := makePlan(ctx, p, env, e.Source)
	if pl == nil || err != nil {
		return nil, err
	}
	if e.Tell != nil {
		e.Tell(pl.explain())
	}
	if g == nil {
		return &plain.Front{Clauses: n, Run: func(out plain.Out) error {
			return pl.rows(ctx, env, out.Row)
		}}, nil
	}
	g.nodesOf(p, e.Source, len(pl.steps) == 1)
	top := topOf(last, row, g)
	return &plain.Front{Clauses: n, Groups: true, Run: func(out plain.Out) error {
		return pl.groups(ctx, env, g, top, out.Group)
	}}, nil
}

// want says which variables the clauses that follow want. Aggregates that do not count want all.
func (p *pattern) want(rest []ast.Clause, g *grouping) {
	for name := range names(rest) {
		if i, ok := p.byName[name]; ok {
			p.nodes[i].needed = true
		}
		if i, ok := p.relByName[name]; ok {
			p.rels[i].needed = true
		}
	}
	if g != nil && slices.ContainsFunc(g.calls, func(c *ast.Call) bool { return !counts(c) }) {
		for _, n := range p.nodes {
			n.needed = true
		}
	}
	for _, c := range p.last {
		for _, n := range c.nodes {
			p.nodes[n].needed = true
		}
		for _, r := range c.rels {
			p.rels[r].needed = true
		}
	}
	for _, r := range p.rels {
		if r.needed {
			p.nodes[r.from].needed, p.nodes[r.to].needed = true, true
		}
	}
}

// wantsRel reports whether a relationship of a node is wanted.
func (p *pattern) wantsRel(n int) bool {
	return slices.ContainsFunc(p.rels, func(r *rel) bool {
		return r.needed && (r.from == n || r.to == n)
	})
}

// threads returns on how many threads groups are made.
func (g *grouping) threads(src Source) int {
	if slices.ContainsFunc(g.calls, func(c *ast.Call) bool { return !counts(c) }) {
		return 1
	}
	return src.Threads()
}

// groups runs the plan and hands on its groups, in the order in which their first rows come.
func (pl *plan) groups(ctx context.Context, env *vector.Env, g *grouping, top *top,
	yield func(first *eval.Scope, results []any) error) error {
	like := pl.newBatch(pl.steps[len(pl.steps)-1])
	var all []*groups
	err := pl.run(ctx, env, g.threads(pl.src), func() sink {
		gs := g.newGroups(env, like)
		all = append(all, gs)
		return &filtered{pl, env, gs, make([]bool, batchRows)}
	}, func(int) {})
	if err != nil || len(all) == 0 {
		return err
	}
	for _, o := range all[1:] {
		if err := all[0].merge(o); err != nil {
			return err
		}
	}
	gs, err := all[0].byValue()
	if err != nil {
		return err
	}
	order := gs.inOrder()
	if top != nil {
		if order, err = top.keep(gs, order); err != nil {
			return err
		}
	}
	for _, i := range order {
		if err := ctx.Err(); err != nil {
			return err
		}
		results := make([]any, len(gs.of))
		for k, a := range gs.of {
			if results[k], err = a.result(i); err != nil {
				return err
			}
		}
		if err := yield(gs.firsts.Scope(int(i)), results); err != nil {
			return err
		}
	}
	return nil
}

// filtered hands on the rows that meet the conditions that may fail.
type filtered struct {
	pl   *plan
	env  *vector.Env
	next sink
	keep []bool
}

func (f *filtered) take(part int, b *batch) error {
	for _, c := range f.pl.p.last {
		if err := f.env.Filter(c.x, b, f.keep[:b.n]); err != nil {
			return err
		}
		b.compact(f.keep)
	}
	if b.n == 0 {
		return nil
	}
	return f.next.take(part, b)
}

// top is ORDER BY an aggregate with a LIMIT: groups that cannot be among the first are left out.
type top struct {
	call int // of the aggregates
	desc bool
	n    int
}

// topOf returns the top of a clause; nil if there is none.
func topOf(p *ast.Project, env *eval.Env, g *grouping) *top {
	if p.Limit == nil || len(p.OrderBy) == 0 || p.Distinct {
		return nil
	}
	n := 0
	for _, x := range []ast.Expr{p.Skip, p.Limit} {
		if x == nil {
			continue
		}
		v, err := env.Eval(x, nil)
		k, ok := v.(int64)
		if err != nil || !ok || k < 0 || k > math.MaxInt32 {
			return nil
		}
		n += int(k)
	}
	x := p.OrderBy[0].X
	if v, ok := x.(*ast.Var); ok {
		for _, i := range p.Items {
			if i.Name == v.Name {
				x = i.X
			}
		}
	}
	for i, c := range g.calls {
		if ast.Same(c, x) {
			return &top{i, p.OrderBy[0].Desc, n}
		}
	}
	return nil
}

// keep returns the groups that may be among the first n, in their order.
func (t *top) keep(g *groups, order []int32) ([]int32, error) {
	if len(order) <= t.n || t.n == 0 {
		return order, nil
	}
	vals := make([]any, len(order))
	for k, i := range order {
		var err error
		if vals[k], err = g.of[t.call].result(i); err != nil {
			return nil, err
		}
	}
	sorted := slices.Clone(vals)
	less := func(a, b any) int {
		if t.desc {
			a, b = b, a
		}
		return value.Order(a, b)
	}
	slices.SortFunc(sorted, less)
	bound := sorted[t.n-1]
	out := order[:0]
	for k, i := range order {
		if less(vals[k], bound) <= 0 {
			out = append(out, i)
		}
	}
	return out, nil
}
