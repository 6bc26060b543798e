package engine

import (
	"cmp"
	"slices"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/value"
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
	once = once || slices.ContainsFunc(g.calls, func(c *ast.Call) bool { return !counts(c) })
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
func (g *grouping) aggregate(c *ast.Call, env *vector.Env) aggregate {
	if x := g.args[c]; x != nil {
		c = &ast.Call{At: c.At, Name: c.Name, Distinct: c.Distinct, Args: []ast.Expr{x}}
	}
	return newAggregate(c, env)
}

// groups are the groups of the rows of one thread.
type groups struct {
	*grouping
	env   *vector.Env
	table *table           // of g.by
	keys  map[string]int32 // of the keys themselves
	of    []aggregate
	n     int32
	// order says where a group began: the part of the first nodes, and the group's number then.
	// Parts are numbered from base on.
	order []uint64
	base  int
	// firsts is the first row of each group.
	firsts  *batch
	numbers []int32
	key     []byte
}

func (g *grouping) newGroups(env *vector.Env, like *batch) *groups {
	out := &groups{grouping: g, env: env, keys: map[string]int32{}, firsts: like.empty()}
	if len(g.by) > 0 {
		out.table = newTable()
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
	g.numbers = g.numbers[:0]
	had := g.n
	var err error
	switch {
	case len(g.grouping.keys) == 0:
		err = g.whole(part, b)
	case g.table != nil:
		g.byNodes(part, b)
	default:
		err = g.byKeys(part, b)
	}
	if err != nil {
		return err
	}
	if more := int64(g.n - had); more > 0 {
		if err := g.env.Row.Grow(more * (groupBytes + 32*int64(len(g.of)))); err != nil {
			return err
		}
	}
	for _, a := range g.of {
		if err := a.add(b, g.numbers, int(g.n)); err != nil {
			return err
		}
	}
	return nil
}

func (g *groups) end(int) error { return nil }

// begin makes the group of a row.
func (g *groups) begin(part int, b *batch, row int) {
	g.order = append(g.order, uint64(g.base+part)<<32|uint64(g.n))
	g.firsts.push(b, row)
	g.n++
}

func (g *groups) whole(part int, b *batch) error {
	if g.n == 0 {
		g.begin(part, b, 0)
	}
	for range b.n {
		g.numbers = append(g.numbers, 0)
	}
	return nil
}

func (g *groups) byNodes(part int, b *batch) {
	x := b.nodes[g.by[0]]
	y := b.nodes[g.by[len(g.by)-1]]
	one := len(g.by) == 1
	for i := range b.n {
		key := uint64(x[i])
		if !one {
			key |= uint64(y[i]) << 32
		}
		n, isNew := g.table.group(key, g.n)
		if isNew {
			g.begin(part, b, i)
		}
		g.numbers = append(g.numbers, n)
	}
}

func (g *groups) byKeys(part int, b *batch) error {
	var cols []*vector.Vector
	for _, x := range g.grouping.keys {
		v, err := g.env.Eval(x, b)
		if err != nil {
			return err
		}
		cols = append(cols, v)
	}
	for i := range b.n {
		g.key = g.key[:0]
		for _, v := range cols {
			g.key = value.Key(g.key, v.At(i))
		}
		n, ok := g.keys[string(g.key)]
		if !ok {
			n = g.n
			g.keys[string(g.key)] = n
			g.begin(part, b, i)
			if err := g.env.Row.Grow(int64(len(g.key))); err != nil {
				return err
			}
		}
		g.numbers = append(g.numbers, n)
	}
	return nil
}

// merge takes the groups of another thread.
func (g *groups) merge(o *groups) error {
	to := make([]int32, o.n)
	keys := make([]string, o.n)
	for k, n := range o.keys {
		keys[n] = k
	}
	for i := range int(o.n) {
		n, isNew := int32(0), g.n == 0
		switch {
		case len(g.grouping.keys) == 0:
		case g.table != nil:
			n, isNew = g.table.group(o.nodeKey(i), g.n)
		default:
			var ok bool
			if n, ok = g.keys[keys[i]]; !ok {
				n = g.n
				g.keys[keys[i]] = n
			}
			isNew = !ok
		}
		to[i] = n
		if isNew {
			g.order = append(g.order, o.order[i])
			g.firsts.push(o.firsts, i)
			g.n++
		} else if o.order[i] < g.order[n] {
			g.order[n] = o.order[i]
			g.firsts.replace(int(n), o.firsts, i)
		}
	}
	for k, a := range g.of {
		if err := a.merge(o.of[k], to); err != nil {
			return err
		}
	}
	return nil
}

func (g *groups) nodeKey(i int) uint64 {
	key := uint64(g.firsts.nodes[g.by[0]][i])
	if len(g.by) == 2 {
		key |= uint64(g.firsts.nodes[g.by[1]][i]) << 32
	}
	return key
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

// byValue puts together the groups of nodes whose keys are equal.
func (g *groups) byValue() (*groups, error) {
	if g.table == nil || g.exact {
		return g, nil
	}
	out := &groups{grouping: g.grouping, env: g.env, keys: map[string]int32{},
		firsts: g.firsts.empty()}
	for _, c := range g.calls {
		out.of = append(out.of, g.aggregate(c, g.env))
	}
	all := *g.firsts
	to := make([]int32, 0, g.n)
	for at := 0; at < int(g.n); at += batchRows {
		part := all.slice(at, min(at+batchRows, int(g.n)))
		out.numbers = out.numbers[:0]
		if err := out.byKeys(0, part); err != nil {
			return nil, err
		}
		to = append(to, out.numbers...)
	}
	out.order = out.order[:0]
	for i, n := range to {
		if int(n) == len(out.order) {
			out.order = append(out.order, g.order[i])
		} else if g.order[i] < out.order[n] {
			out.order[n] = g.order[i]
			out.firsts.replace(int(n), g.firsts, i)
		}
	}
	for k, a := range out.of {
		if err := a.merge(g.of[k], to); err != nil {
			return nil, err
		}
	}
	return out, nil
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

// inOrder returns the numbers of the groups in the order in which they began.
func (g *groups) inOrder() []int32 {
	out := make([]int32, g.n)
	for i := range out {
		out[i] = int32(i)
	}
	slices.SortFunc(out, func(a, b int32) int { return cmp.Compare(g.order[a], g.order[b]) })
	return out
}
