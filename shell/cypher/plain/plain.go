// Package plain runs openCypher statements row by row, clause by clause, as the specification tells
// them. It is the meaning of the language, with which faster engines are compared: right, not fast.
package plain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/check"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/parse"
	"gdb/shell/cypher/value"
)

// Graph is what a statement reads.
type Graph interface {
	// Nodes calls yield with all nodes that have all of the labels, until it returns an error.
	Nodes(ctx context.Context, labels []string, yield func(value.Node) error) error
	// Rels calls yield with the relationships that leave a node, with those that enter it, or with
	// both, and the node at their other end. They are of one of the types, or of any where types is
	// empty. A relationship of a node with itself comes once.
	Rels(ctx context.Context, n value.Node, dir ast.Direction, types []string,
		yield func(r value.Rel, other value.Node) error) error
	// Keeps reports whether Rels is cheap in a direction.
	Keeps(dir ast.Direction) bool
}

// Finder is a Graph that finds nodes by a property without looking at all.
type Finder interface {
	// FindsBy reports whether Find knows a property of nodes with labels.
	FindsBy(key string, labels []string) bool
	// Find calls yield with all nodes with the labels that may have the value as a property. It
	// returns false if it cannot tell, and has called nothing then.
	Find(ctx context.Context, labels []string, key string, v any, yield func(value.Node) error) (
		bool, error)
}

// Procedure is what CALL calls.
type Procedure struct {
	check.Signature
	// Run calls yield with rows, of a value for each of Signature.Out.
	Run func(ctx context.Context, args []any, yield func([]any) error) error
}

// Options are what a run has besides its graph. The zero value is ready to use.
type Options struct {
	Params     value.Map
	Procedures map[string]Procedure
	// Grow counts memory that is held until the statement ends, and takes back negative bytes; nil
	// counts none.
	Grow func(bytes int64) error
	// Engine runs what it can instead of this package; it may be nil.
	Engine Engine
	// Write runs a clause that writes, for tests; it returns the row with what it made.
	Write func(e *eval.Env, s *eval.Scope, w *ast.Write) (*eval.Scope, error)
}

// Engine runs clauses faster than row by row.
type Engine interface {
	// Take returns how clauses are run from the at-th on, for about this many rows of the clauses
	// before; nil if the at-th is not.
	Take(ctx context.Context, env *eval.Env, clauses []ast.Clause, at int, rows float64) (*Stage,
		error)
	// Reach calls yield with the nodes that a search finds, nearest first; path gives the
	// relationships of a shortest path. It is false if it does not search.
	Reach(ctx context.Context, s Search, yield func(node int64, hops int,
		path func() []value.Rel) error) (bool, error)
}

// Search is a search in breadth.
type Search struct {
	From   int64 // a node
	Dir    ast.Direction
	Types  []string // of relationships; empty for all
	Most   int      // hops; -1 for any number
	Target int64    // the only node that is wanted; -1 for all
}

// Query is a statement that can run.
type Query struct {
	Columns []string
	AST     *ast.Query
}

// Prepare reads a statement and checks it, for a run with the same options. A mistake is an
// *ast.Error.
func Prepare(src string, o Options) (*Query, error) {
	q, err := parse.Parse(src)
	if err != nil {
		return nil, err
	}
	procs := check.Procedures{}
	for name, p := range o.Procedures {
		procs[name] = p.Signature
	}
	columns, err := check.Check(q, procs, o.Write != nil)
	if err != nil {
		return nil, err
	}
	return &Query{columns, q}, nil
}

// Plan lets the engine plan what it would run.
func (q *Query) Plan(ctx context.Context, g Graph, o Options) error {
	x := newExecution(ctx, g, o)
	for _, s := range q.AST.Singles {
		rows := 1.0
		for at := 0; at < len(s.Clauses); {
			stage, err := o.Engine.Take(ctx, x.env, s.Clauses, at, rows)
			if err != nil {
				return err
			}
			at, rows = after(s.Clauses, at, rows, stage)
		}
	}
	return nil
}

// Run calls row with the rows of the answer, a value for each of Columns.
func (q *Query) Run(ctx context.Context, g Graph, o Options, row func([]any) error) error {
	x := newExecution(ctx, g, o)
	err := x.query(q.AST, nil, q.Columns, row)
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

func newExecution(ctx context.Context, g Graph, o Options) *execution {
	x := &execution{ctx: ctx, graph: g, opts: o}
	x.env = &eval.Env{Params: o.Params, Now: time.Now(), Match: x.match, Any: x.any, Grow: o.Grow,
		Stop: ctx.Err}
	if o.Grow == nil {
		x.env.Grow = func(int64) error { return nil }
	}
	return x
}

// errStop ends the clauses before a LIMIT that has its rows.
var errStop = errors.New("no more rows are wanted")

// execution is one run of a statement.
type execution struct {
	ctx   context.Context
	graph Graph
	opts  Options
	env   *eval.Env
	// fronted says that an engine is running: subqueries are not for it.
	fronted bool
}

// sink takes the rows that a clause gives. After errStop it takes no more, but end is called.
type sink interface {
	push(s *eval.Scope) error
	end() error
}

// query runs the sides of UNION in turn.
func (x *execution) query(q *ast.Query, outer *eval.Scope, columns []string,
	row func([]any) error) error {
	if len(q.All) > 0 && !q.All[0] {
		row = x.distinct(row)
	}
	for _, s := range q.Singles {
		c := &chain{x, s.Clauses, x.opts.Engine != nil && outer == nil && !x.fronted,
			&results{columns, row}}
		first, err := c.from(0, 1)
		if err != nil {
			return err
		}
		if err := first.push(outer); err != nil && !errors.Is(err, errStop) {
			return err
		}
		if err := first.end(); err != nil && !errors.Is(err, errStop) {
			return err
		}
	}
	return nil
}

// errFound ends a subquery of which one row is enough.
var errFound = errors.New("found")

func (x *execution) any(s *eval.Scope, q *ast.Query) (bool, error) {
	err := x.query(q, s, nil, func([]any) error { return errFound })
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// distinct returns row without rows that were before.
func (x *execution) distinct(row func([]any) error) func([]any) error {
	seen := map[string]bool{}
	return func(vals []any) error {
		key := string(value.Key(nil, value.List(vals)))
		if seen[key] {
			return nil
		}
		seen[key] = true
		if err := x.env.Grow(int64(len(key)) + rowBytes); err != nil {
			return err
		}
		return row(vals)
	}
}

// chain makes the sinks of clauses, which end in last.
type chain struct {
	x       *execution
	clauses []ast.Clause
	staged  bool // an engine may run some
	last    sink
}

// from returns the sink of the at-th clause, which takes about this many rows.
func (c *chain) from(at int, rows float64) (sink, error) {
	if at == len(c.clauses) {
		return c.last, nil
	}
	var stage *Stage
	if c.staged {
		var err error
		if stage, err = c.x.opts.Engine.Take(c.x.ctx, c.x.env, c.clauses, at, rows); err != nil {
			return nil, err
		}
	}
	to, rows := after(c.clauses, at, rows, stage)
	next, err := c.from(to, rows)
	switch {
	case err != nil:
		return nil, err
	case stage != nil:
		return newStaged(c.x, stage, next), nil
	}
	return c.x.sink(c.clauses[at], next)
}

// sink returns the sink of a clause.
func (x *execution) sink(c ast.Clause, next sink) (sink, error) {
	switch c := c.(type) {
	case *ast.Match:
		return &matching{x, c, next}, nil
	case *ast.Unwind:
		return &unwinding{x, c, next}, nil
	case *ast.CallProc:
		return &calling{x, c, x.opts.Procedures[c.Name], next}, nil
	case *ast.Write:
		if x.opts.Write == nil {
			return nil, parse.Refuse(c)
		}
		return &writing{x, c, next}, nil
	}
	return x.projection(c.(*ast.Project), next)
}

// results hands out the columns of rows.
type results struct {
	columns []string
	row     func([]any) error
}

func (r *results) push(s *eval.Scope) error {
	out := make([]any, len(r.columns))
	for i, name := range r.columns {
		out[i], _ = s.Lookup(name)
	}
	return r.row(out)
}

func (r *results) end() error { return nil }

// matching is MATCH and OPTIONAL MATCH.
type matching struct {
	x    *execution
	m    *ast.Match
	next sink
}

func (m *matching) push(s *eval.Scope) error {
	found := false
	err := m.x.match(s, m.m, func(in *eval.Scope) error {
		found = true
		return m.next.push(in)
	})
	if err != nil || found || !m.m.Optional {
		return err
	}
	for _, name := range m.m.Names() {
		if _, ok := s.Lookup(name); !ok {
			s = s.With(name, nil)
		}
	}
	return m.next.push(s)
}

func (m *matching) end() error { return m.next.end() }

type unwinding struct {
	x    *execution
	u    *ast.Unwind
	next sink
}

func (u *unwinding) push(s *eval.Scope) error {
	v, err := u.x.env.Eval(u.u.X, s)
	if err != nil || v == nil {
		return err
	}
	list, ok := v.(value.List)
	if !ok {
		list = value.List{v}
	}
	for _, item := range list {
		if err := u.x.ctx.Err(); err != nil {
			return err
		}
		if err := u.next.push(s.With(u.u.Name, item)); err != nil {
			return err
		}
	}
	return nil
}

func (u *unwinding) end() error { return u.next.end() }

type writing struct {
	x    *execution
	w    *ast.Write
	next sink
}

func (w *writing) push(s *eval.Scope) error {
	s, err := w.x.opts.Write(w.x.env, s, w.w)
	if err != nil {
		return err
	}
	return w.next.push(s)
}

func (w *writing) end() error { return w.next.end() }

type calling struct {
	x    *execution
	c    *ast.CallProc
	proc Procedure
	next sink
}

func (c *calling) push(s *eval.Scope) error {
	args, err := c.arguments(s)
	if err != nil {
		return err
	}
	if len(c.proc.Out) == 0 {
		if err := c.proc.Run(c.x.ctx, args, func([]any) error { return nil }); err != nil {
			return err
		}
		return c.next.push(s)
	}
	return c.proc.Run(c.x.ctx, args, func(row []any) error {
		out := s
		for _, y := range c.c.Yield {
			for i, f := range c.proc.Out {
				if f.Name == y.Field {
					out = out.With(y.Name, row[i])
				}
			}
		}
		ok, err := c.x.env.Holds(c.c.Where, out)
		if err != nil || !ok {
			return err
		}
		return c.next.push(out)
	})
}

// arguments returns what the procedure gets: the arguments of CALL, or parameters of their names.
// Those that are left out are null.
func (c *calling) arguments(s *eval.Scope) (args []any, err error) {
	for i, in := range c.proc.In {
		var v any
		switch {
		case c.c.Implicit:
			var ok bool
			if v, ok = c.x.opts.Params[in.Name]; !ok && i < len(c.proc.In)-c.proc.Optional {
				return nil, ast.Errorf(c.c.Pos(), "ParameterMissing", "MissingParameter",
					"the statement has no value for $%s, which %s wants", in.Name, c.c.Name)
			}
		case i < len(c.c.Args):
			if v, err = c.x.env.Eval(c.c.Args[i], s); err != nil {
				return nil, err
			}
		}
		if n, ok := v.(int64); ok && in.Type == "FLOAT" {
			v = float64(n)
		}
		if !fits(in.Type, v) {
			return nil, ast.Errorf(c.c.Pos(), "TypeError", "InvalidArgumentValue",
				"%s wants %s for %s, not %s", c.c.Name, in.Type, in.Name, value.Kind(v))
		}
		args = append(args, v)
	}
	return args, nil
}

// fits reports whether a procedure that wants a type takes a value.
func fits(want string, v any) (ok bool) {
	if v == nil {
		return true
	}
	switch want {
	case "STRING":
		_, ok = v.(string)
	case "INTEGER":
		_, ok = v.(int64)
	case "NODE":
		_, ok = v.(value.Node)
	case "LIST":
		_, ok = v.(value.List)
	case "NODES":
		return fits("NODE", v) || fits("LIST", v)
	default:
		return true
	}
	return ok
}

func (c *calling) end() error { return c.next.end() }

// count returns the number of SKIP or LIMIT.
func (x *execution) count(e ast.Expr, without int64) (int64, error) {
	if e == nil {
		return without, nil
	}
	v, err := x.env.Eval(e, nil)
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	switch {
	case !ok:
		return 0, ast.Syntax(e.Pos(), "InvalidArgumentType",
			"SKIP and LIMIT take an integer, not %s", value.Kind(v))
	case n < 0:
		return 0, ast.Syntax(e.Pos(), "NegativeIntegerArgument",
			"SKIP and LIMIT take no negative number, as %s is", fmt.Sprint(n))
	}
	return n, nil
}
