package engine

import (
	"cmp"
	"slices"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/group"
	"gdb/shell/cypher/vector"
)

// grouping says how rows are grouped: the columns without aggregates are keys.
type grouping struct {
	keys  []ast.Expr
	calls []*ast.Call
	// by are the nodes that all keys are of, if there are at most two, and rows are grouped by
	// these first; nil if by the keys at once.
	by []int
	// exact says that rows of the same nodes are rows of the same keys, and the reverse.
	exact bool
	args  map[*ast.Call]ast.Expr // what aggregates are of, where that is not as it is written
}

// newGrouping returns the grouping of a clause.
func newGrouping(p *ast.Project) *grouping {
	g := &grouping{args: map[*ast.Call]ast.Expr{}}
	for _, i := range p.Items {
		if calls := ast.AggregatesOf(i.X); len(calls) > 0 {
			g.calls = append(g.calls, calls...)
		} else {
			g.keys = append(g.keys, i.X)
		}
	}
	for _, k := range p.OrderBy {
		g.calls = append(g.calls, ast.AggregatesOf(k.X)...)
	}
	return g
}

// unique returns the node of which x is a property that tells it from others; nil if it is none.
func (p *pattern) unique(x ast.Expr, src Source) *ast.Var {
	prop, ok := x.(*ast.Prop)
	if !ok {
		return nil
	}
	v, ok := prop.Of.(*ast.Var)
	if !ok {
		return nil
	}
	i, ok := p.byName[v.Name]
	if !ok || !src.Unique(prop.Key, p.nodes[i].set) {
		return nil
	}
	return v
}

// nodesOf finds the nodes that the keys are of: variables, and their properties. Where nodes come
// once each, and where groups cannot be put together later, only those count that tell nodes apart.
func (g *grouping) nodesOf(p *pattern, src Source, once bool) {
	for _, c := range g.calls {
		if c.Distinct && c.Name == "count" {
			if v := p.unique(c.Args[0], src); v != nil {
				g.args[c] = v
			}
		}
	}
	var by []int
	exact := true
	once = once || !g.counts()
	for _, x := range g.keys {
		if v := p.unique(x, src); v != nil {
			x = v
		} else if prop, ok := x.(*ast.Prop); ok {
			x, exact = prop.Of, false
		}
		v, ok := x.(*ast.Var)
		if !ok {
			return
		}
		i, ok := p.byName[v.Name]
		if !ok {
			return
		}
		if !slices.Contains(by, i) {
			by = append(by, i)
		}
	}
	if len(by) <= 2 && (exact || !once) {
		g.by, g.exact = by, exact
	}
}

// aggregate returns the state of an aggregate.
func (g *grouping) aggregate(c *ast.Call, env *vector.Env) group.Aggregate {
	if x := g.args[c]; x != nil {
		c = &ast.Call{At: c.At, Name: c.Name, Distinct: c.Distinct, Args: []ast.Expr{x}}
	}
	return group.New(c, env)
}

// groups are the groups of the rows of one thread.
type groups struct {
	*grouping
	env *vector.Env
	// nodes numbers values of g.by, if rows are grouped by these, and else cols numbers values of
	// each key, and pairs the numbers of the keys before the k-th together with that of the k-th.
	nodes *group.Table
	cols  []*group.Coder
	pairs []*group.Table
	of    []group.Aggregate
	n     int32
	// order says where a group began: the part of the first nodes, and the group's number then.
	// Parts are numbered from base on.
	order []uint64
	base  int
	// firsts is the first row of each group.
	firsts  *batch
	numbers []int32 // of the groups of the rows of a batch
}

func (g *grouping) newGroups(env *vector.Env, like *batch) *groups {
	out := &groups{grouping: g, env: env, firsts: like.empty()}
	for k := range g.keys {
		out.cols = append(out.cols, group.NewCoder(env))
		if k > 0 {
			out.pairs = append(out.pairs, group.NewTable())
		}
	}
	for _, c := range g.calls {
		out.of = append(out.of, g.aggregate(c, env))
	}
	return out
}

// empty returns a batch without rows that has the columns of b.
func (b *batch) empty() *batch {
	out := &batch{p: b.p, src: b.src, nodes: make([][]uint32, len(b.nodes)),
		ents: make([][]uint32, len(b.ents))}
	for i, c := range b.nodes {
		if c != nil {
			out.nodes[i] = []uint32{}
		}
	}
	for i, c := range b.ents {
		if c != nil {
			out.ents[i] = []uint32{}
		}
	}
	if b.row != nil {
		out.row = []uint32{}
	}
	return out
}

// push appends a row of a batch with the same columns.
func (b *batch) push(from *batch, row int) {
	for i, c := range from.nodes {
		if c != nil {
			b.nodes[i] = append(b.nodes[i], c[row])
		}
	}
	for i, c := range from.ents {
		if c != nil {
			b.ents[i] = append(b.ents[i], c[row])
		}
	}
	if b.row != nil {
		b.row = append(b.row, uint32(len(b.in)))
		b.in = append(b.in, from.in[from.row[row]])
	}
	b.times = append(b.times, from.times[row])
	b.n++
}

// groupBytes is the memory that is counted for a group, without its aggregates.
const groupBytes = 96

// take groups the rows of a batch.
func (g *groups) take(part int, b *batch) error {
	if g.n == 0 {
		if err := g.choose(b); err != nil {
			return err
		}
	}
	if err := g.number(b); err != nil {
		return err
	}
	had := g.n
	for i, n := range g.numbers {
		if n == g.n {
			g.begin(uint64(g.base+part)<<32|uint64(n), b, i)
		}
	}
	if err := g.count(had); err != nil {
		return err
	}
	for _, a := range g.of {
		if err := a.Add(group.Rows{Rows: b, Times: b.times}, g.numbers, int(g.n)); err != nil {
			return err
		}
	}
	return nil
}

func (g *groups) end(int) error { return nil }

// choose decides whether rows are grouped by nodes first: not if the keys' own values are numbered
// as fast.
func (g *groups) choose(b *batch) error {
	if len(g.by) == 0 {
		return nil
	}
	fast := !g.exact
	for _, x := range g.keys {
		if !fast {
			break
		}
		v, err := g.env.Eval(x, b)
		if err != nil {
			return err
		}
		fast = group.HasTable(v.Kind)
	}
	if !fast {
		g.nodes = group.NewTable()
	}
	return nil
}

// count counts the memory of the groups from some number on.
func (g *groups) count(had int32) error {
	if had == g.n {
		return nil
	}
	return g.env.Row.Grow(int64(g.n-had) * (groupBytes + 32*int64(len(g.of))))
}

// begin makes the group of a row.
func (g *groups) begin(order uint64, b *batch, row int) {
	g.order = append(g.order, order)
	g.firsts.push(b, row)
	g.n++
}

// number finds the groups of the rows of a batch. Groups that are new have the numbers from g.n on,
// by their first rows.
func (g *groups) number(b *batch) error {
	if g.numbers = g.numbers[:0]; g.nodes != nil {
		g.byNodes(b)
		return nil
	}
	if len(g.keys) == 0 {
		g.numbers = append(g.numbers, make([]int32, b.n)...)
		return nil
	}
	codes := make([]int32, b.n)
	for k, x := range g.keys {
		v, err := g.env.Eval(x, b)
		if err != nil {
			return err
		}
		if err := g.cols[k].Codes(v, codes); err != nil {
			return err
		}
		if k == 0 {
			g.numbers = append(g.numbers, codes...)
			continue
		}
		for i, c := range codes {
			both := uint64(g.numbers[i])<<32 | uint64(c)
			g.numbers[i] = g.pairs[k-1].Number(both)
		}
	}
	return nil
}

func (g *groups) byNodes(b *batch) {
	x := b.nodes[g.by[0]]
	y := b.nodes[g.by[len(g.by)-1]]
	one := len(g.by) == 1
	for i := range b.n {
		key := uint64(x[i])
		if !one {
			key |= uint64(y[i]) << 32
		}
		g.numbers = append(g.numbers, g.nodes.Number(key))
	}
}

// together puts the groups of all threads together.
func (g *grouping) together(all []*groups, env *vector.Env, like *batch) (*groups, error) {
	all = slices.DeleteFunc(all, func(g *groups) bool { return g.n == 0 })
	var out *groups
	if len(all) > 0 && !slices.ContainsFunc(all, func(o *groups) bool {
		return o.nodes != nil && !g.exact // their keys may be equal
	}) {
		out, all = all[0], all[1:]
	} else {
		out = g.newGroups(env, like)
	}
	for _, o := range all {
		if err := out.merge(o); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// merge takes the groups of another thread.
func (g *groups) merge(o *groups) error {
	had := g.n
	to := make([]int32, 0, o.n)
	for at := 0; at < int(o.n); at += batchRows {
		rows := o.firsts.slice(at, min(at+batchRows, int(o.n)))
		if err := g.number(rows); err != nil {
			return err
		}
		for i, n := range g.numbers {
			began := o.order[at+i]
			switch {
			case n == g.n:
				g.begin(began, rows, i)
			case began < g.order[n]:
				g.order[n] = began
				g.firsts.replace(int(n), rows, i)
			}
		}
		to = append(to, g.numbers...)
	}
	for k, a := range g.of {
		if err := a.Merge(o.of[k], to); err != nil {
			return err
		}
	}
	return g.count(had)
}

// replace sets a row to a row of a batch with the same columns.
func (b *batch) replace(row int, from *batch, at int) {
	for i, c := range from.nodes {
		if c != nil {
			b.nodes[i][row] = c[at]
		}
	}
	for i, c := range from.ents {
		if c != nil {
			b.ents[i][row] = c[at]
		}
	}
	if b.row != nil {
		b.in[b.row[row]] = from.in[from.row[at]]
	}
}

// slice returns rows from … to-1.
func (b *batch) slice(from, to int) *batch {
	out := b.empty()
	for i, c := range b.nodes {
		if c != nil {
			out.nodes[i] = c[from:to]
		}
	}
	for i, c := range b.ents {
		if c != nil {
			out.ents[i] = c[from:to]
		}
	}
	if b.row != nil {
		out.in, out.row = b.in, b.row[from:to]
	}
	out.times, out.n = b.times[from:to], to-from
	return out
}

// inOrder sorts the numbers of groups by where these began.
func (g *groups) inOrder(of []int32) {
	slices.SortFunc(of, func(a, b int32) int { return cmp.Compare(g.order[a], g.order[b]) })
}
