package engine

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// projection computes the columns of the WITH or RETURN after a pattern, without aggregates, and
// the keys of its ORDER BY.
type projection struct {
	items, keys []ast.Expr
	desc        []bool
	scopes      bool // whether its WHERE wants the variables of rows
}

// newProjection returns the projection of a clause; nil if its rows are made one by one.
func newProjection(p *ast.Project, pt *pattern) *projection {
	out := &projection{scopes: p.Where != nil}
	for _, i := range p.Items {
		if p.Limit != nil && !pt.safeValue(i.X) { // it may fail for rows that are not wanted
			return nil
		}
		out.items = append(out.items, i.X)
	}
	for _, k := range p.OrderBy {
		x, ok := sortKey(p, k.X)
		if !ok {
			return nil
		}
		out.keys, out.desc = append(out.keys, x), append(out.desc, k.Desc)
	}
	return out
}

// sortKey returns a key of ORDER BY as the rows of the pattern have it: a column stands for what it
// is made of. It is false for an expression in which a column stands.
func sortKey(p *ast.Project, x ast.Expr) (ast.Expr, bool) {
	read := names(x)
	for _, i := range p.Items {
		v, isVar := x.(*ast.Var)
		if isVar && v.Name == i.Name {
			return i.X, true
		}
		if of, ok := i.X.(*ast.Var); read[i.Name] && !(ok && of.Name == i.Name) {
			return nil, false
		}
	}
	return x, true
}

// compute returns the values of expressions for the rows of a batch.
func compute(xs []ast.Expr, env *vector.Env, b *batch) (out []*vector.Vector, err error) {
	for _, x := range xs {
		v, err := env.Eval(x, b)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// at returns the values of a row.
func at(cols []*vector.Vector, row int) value.List {
	out := make(value.List, len(cols))
	for i, c := range cols {
		out[i] = c.At(row)
	}
	return out
}

// scope returns the variables of a row, if they are wanted.
func (p *projection) scope(env *vector.Env, b *batch, row int) *eval.Scope {
	if !p.scopes {
		return nil
	}
	env.Rows.Lock()
	defer env.Rows.Unlock()
	return b.Scope(row)
}

// limitOf returns how many rows SKIP and LIMIT of a clause may want; false for any number.
func limitOf(p *ast.Project, env *eval.Env) (int, bool) {
	n := 0
	for _, x := range []ast.Expr{p.Skip, p.Limit} {
		if x == nil {
			continue
		}
		v, err := env.Eval(x, nil)
		k, ok := v.(int64)
		if err != nil || !ok || k < 0 || k > math.MaxInt32 {
			return 0, false
		}
		n += int(k)
	}
	return n, p.Limit != nil
}

// ranked is a row that may be among the first.
type ranked struct {
	keys, vals value.List
	scope      *eval.Scope
	order      uint64 // of rows with equal keys
}

// first keeps the first n rows of one thread, by ORDER BY.
type first struct {
	*projection
	env  *vector.Env
	n    int
	base int // number of the first part
	rows []ranked
	last value.List // the keys of the n-th row, once there are as many
	seq  uint64
	keep []bool
}

// firstSpare is how many rows or groups more than n are kept before those are dropped that come
// later.
const firstSpare = 1024

func (f *first) compare(a, b ranked) int {
	if c := f.rank(a.keys, func(i int) any { return b.keys[i] }); c != 0 {
		return c
	}
	return cmp.Compare(a.order, b.order)
}

// rank compares keys with others.
func (f *first) rank(keys value.List, other func(i int) any) int {
	for i, k := range keys {
		if c := value.Order(k, other(i)); c != 0 {
			if f.desc[i] {
				return -c
			}
			return c
		}
	}
	return 0
}

func (f *first) take(part int, b *batch) error {
	keys, err := compute(f.keys, f.env, b)
	if err != nil {
		return err
	}
	if f.last != nil {
		for i := range b.n {
			f.keep[i] = f.rank(f.last, func(k int) any { return keys[k].At(i) }) > 0
		}
		if b.compact(f.keep); b.n == 0 {
			return nil
		}
		if keys, err = compute(f.keys, f.env, b); err != nil {
			return err
		}
	}
	cols, err := compute(f.items, f.env, b)
	if err != nil {
		return err
	}
	had := len(f.rows)
	for i := range b.n {
		r := ranked{at(keys, i), at(cols, i), f.scope(f.env, b, i), 0}
		for range min(b.times[i], int64(f.n)) {
			f.seq++
			r.order = uint64(f.base+part)<<32 | f.seq
			f.rows = append(f.rows, r)
		}
	}
	if err := f.env.Row.Grow(groupBytes * int64(len(f.rows)-had)); err != nil {
		return err
	}
	return f.drop()
}

func (f *first) end(int) error { return nil }

// drop drops the rows that are not among the first n, once there are many.
func (f *first) drop() error {
	had := len(f.rows)
	if had < f.n+firstSpare {
		return nil
	}
	slices.SortFunc(f.rows, f.compare)
	clear(f.rows[f.n:])
	f.rows = f.rows[:f.n]
	f.last = f.rows[f.n-1].keys
	return f.env.Row.Grow(-groupBytes * int64(had-f.n))
}

// ranking makes the first rows of a plan, by ORDER BY.
type ranking struct {
	*plan
	of   *projection
	env  *vector.Env
	n    int
	all  []*first // of each thread
	base int      // parts that have been run
}

// run runs the plan, for one input of several.
func (r *ranking) run(ctx context.Context) error {
	next := 0
	err := r.plan.run(ctx, r.env, r.src.Threads(), func() sink {
		if next == len(r.all) {
			r.all = append(r.all, &first{projection: r.of, env: r.env, n: r.n,
				keep: make([]bool, r.most)})
		}
		f := r.all[next]
		f.base = r.base
		next++
		return r.sinks(r.env, f)
	})
	r.base += len(r.parts())
	return err
}

// end hands on the first rows, in the order in which they came.
func (r *ranking) end(out plain.Out) error {
	var rows []ranked
	for _, f := range r.all {
		rows = append(rows, f.rows...)
	}
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, r.all[0].compare)
	rows = rows[:min(len(rows), r.n)]
	slices.SortFunc(rows, func(a, b ranked) int { return cmp.Compare(a.order, b.order) })
	for _, row := range rows {
		if err := out.Values(row.scope, row.vals, row.keys); err != nil {
			return err
		}
	}
	return nil
}
