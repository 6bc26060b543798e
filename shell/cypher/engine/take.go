package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/group"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/vector"
)

// Engine runs the first clauses of statements over a source.
type Engine struct {
	Source Source
	// Tell is told how a statement is run; it may be nil.
	Tell func(steps []Step)
}

// Take returns how clauses are run from the at-th on, if they are MATCH without variable length and
// paths, or a shortestPath of which the length is wanted; nil if they are not, or if there is no
// memory for the lists. After the first, those are taken that are outer joins if they are only
// counted, and a Project after them that groups.
func (e *Engine) Take(ctx context.Context, row *eval.Env, clauses []ast.Clause, at int,
	rows float64) (*plain.Stage, error) {
	var matches []*ast.Match
	for _, c := range clauses[at:] {
		m, ok := c.(*ast.Match)
		if !ok {
			break
		}
		matches = append(matches, m)
	}
	before, clauses := clauses[:at], clauses[at:]
	input := func() *input {
		if len(matches) == 0 || at == 0 && !matches[0].Optional {
			return nil
		}
		return &input{vars: variables(before), wanted: names(clauses), estimate: rows}
	}
	if len(matches) > 0 && len(clauses) > 1 {
		if of := lengths(matches[0]); of != nil {
			return e.takeLengths(ctx, row, clauses, of, input)
		}
	}
	in := input()
	for len(matches) > 0 && len(matches) < len(clauses) {
		if in != nil && matches[0].Optional {
			in.optional, matches = true, matches[:1]
		}
		f, err := e.take(ctx, row, clauses, matches, in, true)
		if err == nil || !errors.Is(err, errFewer) && !errors.Is(err, errOuter) {
			return f, err
		}
		matches = matches[:len(matches)-1]
	}
	return nil, nil
}

// errFewer says that the engine does not run the last of some clauses.
var errFewer = errors.New("not for the engine")

// take returns how some clauses are run and, if groups is set, those that follow them as far as
// rows are grouped.
func (e *Engine) take(ctx context.Context, row *eval.Env, clauses []ast.Clause,
	matches []*ast.Match, in *input, groups bool) (*plain.Stage, error) {
	p, ok := newPattern(matches, in, clauses[len(matches)])
	if !ok {
		return nil, errFewer
	}
	n := len(matches)
	last, ok := clauses[n].(*ast.Project)
	var g *grouping
	rest := clauses[n:]
	if ok {
		rest = clauses[n : n+1]
		g = newGrouping(last)
		switch {
		case !groups && len(g.calls) > 0:
			g, last = nil, nil
		case !groups, len(g.calls) == 0 && !(last.Distinct && len(last.OrderBy) == 0):
			g = nil
		}
	}
	p.want(rest, g)
	for i, n := range p.nodes { // counted, or left to the reference
		if n.outer && (g == nil || n.needed || p.wantsRel(i)) {
			return nil, errFewer
		}
	}
	p.grouped = g != nil && g.counts()
	env := &vector.Env{Row: row, Rows: &sync.Mutex{},
		Property: func(of *vector.Vector, key string, out *vector.Vector) (bool, error) {
			return e.Source.Property(ctx, of, key, out)
		}}
	pl, err := makePlan(ctx, p, env, e.Source)
	if pl == nil || err != nil {
		return nil, err
	}
	if p.grouped {
		pl.takeTurns()
	}
	if e.Tell != nil {
		e.Tell(pl.explain())
	}
	s := &plain.Stage{Clauses: n, Groups: g != nil, Rows: pl.steps[len(pl.steps)-1].rows}
	if g == nil {
		pl.stage(ctx, env, s, last)
		return s, nil
	}
	g.nodesOf(p, e.Source, in == nil && len(pl.steps) == 1)
	c := pl.newCollector(g, env, topOf(last, row, g))
	s.Run = func(rows []*eval.Scope, _ plain.Out) error { return c.run(ctx, rows) }
	s.End = func(out plain.Out) error { return c.end(ctx, out.Group) }
	return s, nil
}

// stage says how a stage without groups runs, before a Project or, if that is nil, another clause.
func (pl *plan) stage(ctx context.Context, env *vector.Env, s *plain.Stage, last *ast.Project) {
	var of *projection
	if last != nil {
		of = newProjection(last, pl.p)
	}
	s.Values = of != nil
	if s.Values && len(of.keys) > 0 && !last.Distinct {
		if n, ok := limitOf(last, env.Row); ok && n > 0 {
			r := &ranking{plan: pl, of: of, env: env, n: n}
			s.Run = func(rows []*eval.Scope, _ plain.Out) error {
				pl.p.in.set(rows)
				return r.run(ctx)
			}
			s.End = r.end
			return
		}
	}
	s.Run = func(rows []*eval.Scope, out plain.Out) error {
		pl.p.in.set(rows)
		return pl.rows(ctx, env, of, out)
	}
}

// want says which variables the clauses that follow want. Aggregates that do not count want all.
func (p *pattern) want(rest []ast.Clause, g *grouping) {
	for name := range names(rest) {
		if i, ok := p.byName[name]; ok { // rows have what is bound
			p.nodes[i].needed = !p.nodes[i].bound || g != nil
		}
		if i, ok := p.relByName[name]; ok {
			p.rels[i].needed = true
		}
	}
	if g != nil && !g.counts() {
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

// counts reports whether all aggregates take a row as often as it counts.
func (g *grouping) counts() bool {
	return !slices.ContainsFunc(g.calls, func(c *ast.Call) bool { return !group.Counts(c) })
}

// threads returns on how many threads groups are made.
func (g *grouping) threads(src Source) int {
	if !g.counts() {
		return 1
	}
	return src.Threads()
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

func (f *filtered) end(part int) error { return f.next.end(part) }

// top is ORDER BY an aggregate with a LIMIT: groups that cannot be among the first are left out.
type top struct {
	call int // of the aggregates
	desc bool
	n    int
}

// topOf returns the top of a clause; nil if there is none.
func topOf(p *ast.Project, env *eval.Env, g *grouping) *top {
	n, ok := limitOf(p, env)
	if !ok || len(p.OrderBy) == 0 || p.Distinct {
		return nil
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

// keep returns the groups that may be among the first n.
func (t *top) keep(g *groups, all []int32) ([]int32, error) {
	if len(all) <= t.n || t.n == 0 {
		return all, nil
	}
	compare, err := group.Comparison(g.of[t.call], all)
	if err != nil {
		return nil, err
	}
	order := func(a, b int32) int {
		if t.desc {
			a, b = b, a
		}
		return compare(a, b)
	}
	first := slices.Clone(all[:t.n])
	slices.SortFunc(first, order)
	for _, i := range all[t.n:] {
		if order(i, first[t.n-1]) >= 0 {
			continue
		}
		if first = append(first, i); len(first) == t.n+firstSpare {
			slices.SortFunc(first, order)
			first = first[:t.n]
		}
	}
	slices.SortFunc(first, order)
	last := first[t.n-1]
	return slices.DeleteFunc(all, func(i int32) bool { return order(last, i) < 0 }), nil
}
