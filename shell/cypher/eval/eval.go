// Package eval computes openCypher expressions and aggregates, one row at a time. It is the
// meaning of the language; what is faster is compared with it.
package eval

import (
	"time"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/value"
)

// Scope holds the variables of a row. A scope shares what it holds with the scope it came from.
type Scope struct {
	name string
	val  any
	up   *Scope
}

// With returns s with one more variable, which hides others of its name.
func (s *Scope) With(name string, v any) *Scope { return &Scope{name, v, s} }

// Lookup returns the value of a variable.
func (s *Scope) Lookup(name string) (any, bool) {
	for ; s != nil; s = s.up {
		if s.name == name {
			return s.val, true
		}
	}
	return nil, false
}

// Env is what expressions read besides the row. Its functions are never nil.
type Env struct {
	Params value.Map
	Now    time.Time // of the statement

	// Match calls yield with the scopes of all matches of m, whose Where holds.
	Match func(s *Scope, m *ast.Match, yield func(*Scope) error) error
	// Any reports whether a subquery gives a row.
	Any func(s *Scope, q *ast.Query) (bool, error)
	// Grow counts memory that is held until the statement ends; an error means that there is no
	// more. Negative bytes are given back.
	Grow func(bytes int64) error
	// Stop returns an error if the statement is to end.
	Stop func() error

	// Aggregates holds the results of aggregates, by their calls, while a row of a group is made.
	Aggregates map[*ast.Call]any
}

// roomLeast is the size from which on a value that is not held is counted.
const roomLeast = 64 << 10

// room returns an error if there is no memory for a value, which is not held beyond its row.
func (e *Env) room(bytes int64) error {
	if bytes < roomLeast {
		return nil
	}
	if err := e.Grow(bytes); err != nil {
		return err
	}
	return e.Grow(-bytes)
}

// Eval returns the value of x in a row.
func (e *Env) Eval(x ast.Expr, s *Scope) (any, error) {
	switch x := x.(type) {
	case *ast.Literal:
		return x.Value, nil
	case *ast.Param:
		v, ok := e.Params[x.Name]
		if !ok {
			return nil, ast.Errorf(x.Pos(), "ParameterMissing", "MissingParameter",
				"the statement has no value for $%s", x.Name)
		}
		return v, nil
	case *ast.Var:
		v, ok := s.Lookup(x.Name)
		if !ok {
			return nil, ast.Syntax(x.Pos(), "UndefinedVariable", "%s is not defined", x.Name)
		}
		return v, nil
	case *ast.Prop:
		of, err := e.Eval(x.Of, s)
		if err != nil {
			return nil, err
		}
		return Property(x, of, x.Key)
	case *ast.List:
		return e.list(x, s)
	case *ast.Map:
		m := value.Map{}
		for i, k := range x.Keys {
			v, err := e.Eval(x.Values[i], s)
			if err != nil {
				return nil, err
			}
			m[k] = v
		}
		return m, nil
	case *ast.Index:
		return e.index(x, s)
	case *ast.Slice:
		return e.slice(x, s)
	}
	return e.operation(x, s)
}

// operation computes what has an operator or a body.
func (e *Env) operation(x ast.Expr, s *Scope) (any, error) {
	switch x := x.(type) {
	case *ast.Unary:
		return e.unary(x, s)
	case *ast.Binary:
		return e.binary(x, s)
	case *ast.Compare:
		return e.compare(x, s)
	case *ast.IsNull:
		v, err := e.Eval(x.X, s)
		return (v == nil) != x.Not, err
	case *ast.HasLabels:
		return e.hasLabels(x, s)
	case *ast.Call:
		return e.call(x, s)
	case *ast.Case:
		return e.caseOf(x, s)
	case *ast.ListComp:
		return e.listComp(x, s)
	case *ast.Quantifier:
		return e.quantifier(x, s)
	case *ast.Reduce:
		return e.reduce(x, s)
	case *ast.PatternComp:
		return e.patternComp(x, s)
	case *ast.Exists:
		return e.exists(x, s)
	}
	return nil, ast.Syntax(x.Pos(), "UnexpectedSyntax", "no expression stands here")
}

// TypeError returns the error for a value of a type that an expression does not take.
func TypeError(x ast.Expr, format string, args ...any) error {
	return ast.Errorf(x.Pos(), "TypeError", "InvalidArgumentType", format, args...)
}

// Property returns a property of a node or relationship, a value of a map, or a part of a time.
func Property(x ast.Expr, of any, key string) (any, error) {
	switch of := of.(type) {
	case nil:
		return nil, nil
	case value.Map:
		return of[key], nil
	case value.Node:
		return of.G.NodeProp(of.ID, key)
	case value.Rel:
		return of.G.RelProp(of, key)
	case value.Temporal:
		part, err := of.Component(key)
		if err != nil {
			return nil, TypeError(x, "%v", err)
		}
		return part, nil
	}
	return nil, TypeError(x, "%s has no properties", value.Kind(of))
}

func (e *Env) list(x *ast.List, s *Scope) (any, error) {
	out := make(value.List, len(x.Items))
	for i, item := range x.Items {
		var err error
		if out[i], err = e.Eval(item, s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (e *Env) index(x *ast.Index, s *Scope) (any, error) {
	of, err := e.Eval(x.Of, s)
	if err != nil {
		return nil, err
	}
	i, err := e.Eval(x.I, s)
	if err != nil {
		return nil, err
	}
	switch of := of.(type) {
	case nil:
		return nil, nil
	case value.List:
		n, ok := i.(int64)
		switch {
		case i == nil:
			return nil, nil
		case !ok:
			return nil, TypeError(x, "a list is indexed by an integer, not by %s", value.Kind(i))
		}
		if n < 0 {
			n += int64(len(of))
		}
		if n < 0 || n >= int64(len(of)) {
			return nil, nil
		}
		return of[n], nil
	case value.Map, value.Node, value.Rel, value.Temporal:
		key, ok := i.(string)
		if i == nil {
			return nil, nil
		}
		if !ok {
			return nil, ast.Errorf(x.Pos(), "TypeError", "MapElementAccessByNonString",
				"%s is indexed by a string, not by %s", value.Kind(of), value.Kind(i))
		}
		return Property(x, of, key)
	}
	return nil, TypeError(x, "%s has no elements", value.Kind(of))
}

func (e *Env) slice(x *ast.Slice, s *Scope) (any, error) {
	of, err := e.Eval(x.Of, s)
	if err != nil || of == nil {
		return nil, err
	}
	list, ok := of.(value.List)
	if !ok {
		return nil, TypeError(x, "%s has no parts; a list has", value.Kind(of))
	}
	from, to := int64(0), int64(len(list))
	for _, end := range []struct {
		x  ast.Expr
		to *int64
	}{{x.From, &from}, {x.To, &to}} {
		if end.x == nil {
			continue
		}
		v, err := e.Eval(end.x, s)
		if err != nil || v == nil {
			return nil, err
		}
		n, ok := v.(int64)
		if !ok {
			return nil, TypeError(end.x, "a list is cut at an integer, not at %s", value.Kind(v))
		}
		if n < 0 {
			n += int64(len(list))
		}
		*end.to = min(max(n, 0), int64(len(list)))
	}
	return list[from:max(from, to)], nil
}

func (e *Env) hasLabels(x *ast.HasLabels, s *Scope) (any, error) {
	v, err := e.Eval(x.X, s)
	if err != nil || v == nil {
		return nil, err
	}
	if r, ok := v.(value.Rel); ok {
		return len(x.Labels) == 1 && r.Type == x.Labels[0], nil
	}
	n, ok := v.(value.Node)
	if !ok {
		return nil, TypeError(x, "%s has no labels", value.Kind(v))
	}
	return HasAll(n, x.Labels)
}

// HasAll reports whether a node has all of the labels.
func HasAll(n value.Node, labels []string) (bool, error) {
	if len(labels) == 0 {
		return true, nil
	}
	has, err := n.G.Labels(n.ID)
	if err != nil {
		return false, err
	}
	for _, l := range labels {
		if !contains(has, l) {
			return false, nil
		}
	}
	return true, nil
}

func contains(all []string, s string) bool {
	for _, a := range all {
		if a == s {
			return true
		}
	}
	return false
}

func (e *Env) caseOf(x *ast.Case, s *Scope) (any, error) {
	var of any
	var err error
	if x.Of != nil {
		if of, err = e.Eval(x.Of, s); err != nil {
			return nil, err
		}
	}
	for i, when := range x.Whens {
		v, err := e.Eval(when, s)
		if err != nil {
			return nil, err
		}
		if x.Of != nil && value.Equal(of, v) == value.True || x.Of == nil && v == true {
			return e.Eval(x.Thens[i], s)
		}
	}
	if x.Otherwise == nil {
		return nil, nil
	}
	return e.Eval(x.Otherwise, s)
}

// Holds reports whether a condition is true. A nil condition holds.
func (e *Env) Holds(x ast.Expr, s *Scope) (bool, error) {
	t, err := e.tri(x, s)
	return t == value.True, err
}

// tri returns a condition as a value of three-valued logic.
func (e *Env) tri(x ast.Expr, s *Scope) (value.Tri, error) {
	if x == nil {
		return value.True, nil
	}
	v, err := e.Eval(x, s)
	if err != nil {
		return value.Null, err
	}
	switch v := v.(type) {
	case nil:
		return value.Null, nil
	case bool:
		return value.Of(v), nil
	}
	return value.Null, TypeError(x, "a condition is true, false or null, not %s", value.Kind(v))
}
