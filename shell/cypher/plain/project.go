package plain

import (
	"errors"
	"math"
	"slices"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/value"
)

// rowBytes is the memory that is counted for a row or a value that is held.
const rowBytes = 64

// projecting is WITH and RETURN: columns, groups, DISTINCT, ORDER BY, SKIP, LIMIT and WHERE.
type projecting struct {
	x     *execution
	p     *ast.Project
	next  sink
	skip  int64
	limit int64

	calls  []*ast.Call // the aggregates of the columns and of ORDER BY
	groups map[string]*group
	order  []*group // in the order of their first rows
	given  bool     // whether an engine has given groups

	seen map[string]bool // of DISTINCT
	rows []row           // of ORDER BY
}

// group is the rows that are equal in all columns without aggregates.
type group struct {
	first      *eval.Scope
	aggregates []*eval.Aggregate
}

// row is a row of columns, which may also see the variables that it was made of.
type row struct {
	narrow, wide *eval.Scope
	keys         []any
	bytes        int64 // that are counted
}

func (x *execution) projection(p *ast.Project, next sink) (*projecting, error) {
	out := &projecting{x: x, p: p, next: next, groups: map[string]*group{}, seen: map[string]bool{}}
	for _, i := range p.Items {
		out.calls = append(out.calls, ast.AggregatesOf(i.X)...)
	}
	for _, k := range p.OrderBy {
		out.calls = append(out.calls, ast.AggregatesOf(k.X)...)
	}
	var err error
	if out.skip, err = x.count(p.Skip, 0); err != nil {
		return nil, err
	}
	out.limit, err = x.count(p.Limit, math.MaxInt64)
	return out, err
}

func (p *projecting) push(s *eval.Scope) error {
	if len(p.calls) == 0 {
		return p.project(s)
	}
	g, err := p.groupOf(s)
	if err != nil {
		return err
	}
	for _, a := range g.aggregates {
		if err := a.Add(s); err != nil {
			return err
		}
	}
	return nil
}

// groupOf returns the group of a row.
func (p *projecting) groupOf(s *eval.Scope) (*group, error) {
	var key []byte
	for _, i := range p.p.Items {
		if len(ast.AggregatesOf(i.X)) > 0 {
			continue
		}
		v, err := p.x.env.Eval(i.X, s)
		if err != nil {
			return nil, err
		}
		key = value.Key(key, v)
	}
	g := p.groups[string(key)]
	if g == nil {
		g = p.newGroup(s)
		p.groups[string(key)] = g
		n := int64(len(key)) + rowBytes*int64(len(p.calls)+2)
		if err := p.x.env.Grow(n); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (p *projecting) newGroup(s *eval.Scope) *group {
	g := &group{first: s}
	for _, c := range p.calls {
		g.aggregates = append(g.aggregates, p.x.env.NewAggregate(c))
	}
	p.order = append(p.order, g)
	return g
}

// group takes a group that an engine has made.
func (p *projecting) group(first *eval.Scope, results []any) error {
	p.given = true
	if len(p.calls) == 0 {
		return p.project(first)
	}
	of := map[*ast.Call]any{}
	for i, v := range results {
		of[p.calls[i]] = v
	}
	return p.of(first, of)
}

// of makes a row of a group with the results of its aggregates.
func (p *projecting) of(first *eval.Scope, results map[*ast.Call]any) error {
	outer := p.x.env.Aggregates
	defer func() { p.x.env.Aggregates = outer }()
	p.x.env.Aggregates = results
	return p.project(first)
}

// end hands on the groups, then the sorted rows.
func (p *projecting) end() error {
	err := p.endGroups()
	if err == nil {
		slices.SortStableFunc(p.rows, p.compare)
		for _, r := range p.rows {
			if err = p.emit(r); err != nil {
				break
			}
		}
	}
	if err != nil && !errors.Is(err, errStop) {
		return err
	}
	return p.next.end()
}

// endGroups makes a row of each group. Without columns to group by there is one, even of no rows.
func (p *projecting) endGroups() error {
	keyed := slices.ContainsFunc(p.p.Items, func(i ast.Item) bool {
		return len(ast.AggregatesOf(i.X)) == 0
	})
	if len(p.calls) > 0 && len(p.order) == 0 && !keyed && !p.given {
		p.newGroup(nil)
	}
	results := map[*ast.Call]any{}
	for _, g := range p.order {
		for i, a := range g.aggregates {
			var err error
			if results[p.calls[i]], err = a.Result(); err != nil {
				return err
			}
		}
		if err := p.of(g.first, results); err != nil {
			return err
		}
	}
	return nil
}

// project makes the columns of a row.
func (p *projecting) project(s *eval.Scope) error {
	vals := make(value.List, len(p.p.Items))
	for i, item := range p.p.Items {
		var err error
		if vals[i], err = p.x.env.Eval(item.X, s); err != nil {
			return err
		}
	}
	return p.values(s, vals, nil)
}

// values takes the columns of a row, and the keys of ORDER BY unless they are to be computed.
func (p *projecting) values(s *eval.Scope, vals, keys value.List) error {
	r := row{wide: s, keys: keys}
	for i, item := range p.p.Items {
		r.narrow = r.narrow.With(item.Name, vals[i])
		if p.p.Where != nil || len(p.p.OrderBy) > len(keys) {
			r.wide = r.wide.With(item.Name, vals[i])
		}
	}
	if p.p.Distinct && !(p.given && len(p.calls) == 0) { // groups without aggregates differ
		key := string(value.Key(nil, vals))
		if p.seen[key] {
			return nil
		}
		p.seen[key] = true
		if err := p.x.env.Grow(int64(len(key)) + rowBytes); err != nil {
			return err
		}
	}
	if len(p.p.OrderBy) == 0 {
		return p.emit(r)
	}
	for _, k := range p.p.OrderBy[len(keys):] {
		v, err := p.key(k.X, vals, r.wide)
		if err != nil {
			return err
		}
		r.keys = append(r.keys, v)
	}
	r.bytes = rowBytes*int64(1+2*len(vals)+len(r.keys)) + value.Bytes(vals)
	p.rows = append(p.rows, r)
	if err := p.x.env.Grow(r.bytes); err != nil {
		return err
	}
	return p.first()
}

// spareRows is how many rows more than LIMIT wants are kept before those are dropped that come
// later.
const spareRows = 1024

// first drops the rows that are not among the first that SKIP and LIMIT want, once there are many.
func (p *projecting) first() error {
	if p.limit > firstMost || p.skip > firstMost {
		return nil
	}
	most := int(p.skip + p.limit)
	if len(p.rows) < 2*most+spareRows {
		return nil
	}
	slices.SortStableFunc(p.rows, p.compare)
	bytes := int64(0)
	for _, r := range p.rows[most:] {
		bytes += r.bytes
	}
	clear(p.rows[most:])
	p.rows = p.rows[:most]
	return p.x.env.Grow(-bytes)
}

// firstMost bounds the numbers of SKIP and LIMIT for which rows are dropped before all have come.
const firstMost = 1 << 30

// key returns a key of ORDER BY: a column that is written the same, or else an expression.
func (p *projecting) key(x ast.Expr, vals value.List, s *eval.Scope) (any, error) {
	if i := slices.IndexFunc(p.p.Items, func(i ast.Item) bool { return ast.Same(i.X, x) }); i >= 0 {
		if v, ok := x.(*ast.Var); !ok || !p.isName(v.Name) {
			return vals[i], nil
		}
	}
	return p.x.env.Eval(x, s)
}

// isName reports whether a column has the name.
func (p *projecting) isName(name string) bool {
	return slices.ContainsFunc(p.p.Items, func(i ast.Item) bool { return i.Name == name })
}

func (p *projecting) compare(a, b row) int {
	for i, k := range p.p.OrderBy {
		if c := value.Order(a.keys[i], b.keys[i]); c != 0 {
			if k.Desc {
				return -c
			}
			return c
		}
	}
	return 0
}

// emit hands on a row that SKIP, LIMIT and WHERE leave.
func (p *projecting) emit(r row) error {
	if err := p.x.ctx.Err(); err != nil {
		return err
	}
	if p.skip > 0 {
		p.skip--
		return nil
	}
	if p.limit == 0 {
		return errStop
	}
	p.limit--
	ok, err := p.x.env.Holds(p.p.Where, r.wide)
	if err != nil {
		return err
	}
	if ok {
		if err := p.next.push(r.narrow); err != nil {
			return err
		}
	}
	if p.limit == 0 {
		return errStop
	}
	return nil
}
