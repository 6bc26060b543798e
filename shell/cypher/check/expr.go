package check

import (
	"maps"
	"slices"
	"strings"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/words"
)

// place says what may stand where an expression stands.
type place struct {
	predicate   bool // a pattern may
	noAggregate bool
	aggregate   bool // inside an aggregate
}

// inner returns the place of an operand.
func (p place) inner() place { p.predicate = false; return p }

func clash(x ast.Expr, format string, args ...any) error {
	return ast.Syntax(x.Pos(), "InvalidArgumentType", format, args...)
}

// expr checks an expression and returns what is known of its type.
func (c *checker) expr(x ast.Expr, p place) (kind, error) {
	switch x := x.(type) {
	case *ast.Literal:
		return literal(x.Value), nil
	case *ast.Var:
		t, ok := c.scope[x.Name]
		if !ok {
			return unknown, c.undefined(x.Pos(), x.Name)
		}
		return t, nil
	case *ast.Exists:
		return boolean, c.exists(x, p)
	case *ast.PatternComp:
		return listOf, c.within(func() error { return c.patternComp(x) })
	case *ast.ListComp:
		return c.listComp(x, p)
	case *ast.Quantifier:
		return boolean, c.quantifier(x, p)
	case *ast.Reduce:
		return unknown, c.reduce(x, p)
	case *ast.Call:
		return c.function(x, p)
	case *ast.Binary:
		return c.binary(x, p)
	}
	return c.simple(x, p)
}

func literal(v any) kind {
	switch v.(type) {
	case bool:
		return boolean
	case int64:
		return integer
	case float64:
		return float
	case string:
		return text
	}
	return unknown
}

// simple checks expressions that define no variables and are made of operands.
func (c *checker) simple(x ast.Expr, p place) (kind, error) {
	in := p.inner()
	if u, ok := x.(*ast.Unary); ok {
		in.predicate = p.predicate && u.Op == "NOT"
	}
	var types []kind
	for _, child := range ast.Children(x) {
		t, err := c.expr(child, in)
		if err != nil {
			return unknown, err
		}
		types = append(types, t)
	}
	switch x := x.(type) {
	case *ast.Prop:
		return c.property(x, types[0])
	case *ast.Index:
		if t := types[0]; t.scalar() || t == path {
			return unknown, ast.Errorf(x.Pos(), "TypeError", "InvalidArgumentType",
				"%s has no elements", t.text())
		}
		if t := types[1]; types[0].isList() && t != unknown && t != integer {
			return unknown, ast.Errorf(x.Pos(), "TypeError", "InvalidArgumentType",
				"a list is indexed by an integer, not by %s", t.text())
		}
		return types[0].element(), nil
	case *ast.Slice:
		return types[0], nil
	case *ast.List:
		return listOf + common(types), nil
	case *ast.Map:
		return mapping, nil
	case *ast.Compare, *ast.IsNull, *ast.HasLabels:
		return boolean, nil
	case *ast.Unary:
		return unary(x, types[0])
	}
	return unknown, nil
}

// common returns the type that all have; null has any type.
func common(types []kind) kind {
	out := unknown
	for _, t := range types {
		if t == unknown || out != unknown && t != out {
			return unknown
		}
		out = t
	}
	return out
}

func unary(x *ast.Unary, t kind) (kind, error) {
	switch {
	case x.Op == "NOT" && t != unknown && t != boolean:
		return unknown, clash(x, "NOT wants true or false, not %s", t.text())
	case x.Op == "NOT":
		return boolean, nil
	case t != unknown && t != integer && t != float:
		return unknown, clash(x, "a sign stands before a number, not before %s", t.text())
	}
	return t, nil
}

func (c *checker) property(x *ast.Prop, of kind) (kind, error) {
	if of == path {
		return unknown, clash(x, "a path has no properties")
	}
	if of.scalar() || of.isList() {
		return unknown, ast.Errorf(x.Pos(), "TypeError", "InvalidArgumentType",
			"%s has no properties", of.text())
	}
	return unknown, nil
}

func (c *checker) binary(x *ast.Binary, p place) (kind, error) {
	logic := x.Op == "AND" || x.Op == "OR" || x.Op == "XOR"
	in := p
	in.predicate = p.predicate && logic
	l, err := c.expr(x.L, in)
	if err != nil {
		return unknown, err
	}
	r, err := c.expr(x.R, in)
	if err != nil {
		return unknown, err
	}
	switch x.Op {
	case "AND", "OR", "XOR":
		for _, t := range []kind{l, r} {
			if t != unknown && t != boolean {
				return unknown, clash(x, "%s wants true or false, not %s", x.Op, t.text())
			}
		}
		return boolean, nil
	case "IN":
		if r != unknown && !r.isList() {
			return unknown, clash(x, "IN wants a list, not %s", r.text())
		}
		return boolean, nil
	case "STARTS WITH", "ENDS WITH", "CONTAINS", "=~":
		return boolean, nil
	case "+":
		return plus(l, r), nil
	}
	for _, t := range []kind{l, r} {
		if t != unknown && t != integer && t != float {
			return unknown, clash(x, "%s is not defined for %s", x.Op, t.text())
		}
	}
	return number(x.Op, l, r), nil
}

func plus(l, r kind) kind {
	switch {
	case l.isList() || r.isList():
		return listOf
	case l == text && r == text:
		return text
	}
	return number("+", l, r)
}

// number returns the type of an operation on numbers.
func number(op string, l, r kind) kind {
	switch {
	case l == unknown || r == unknown || l == boolean || r == boolean:
		return unknown
	case l == integer && r == integer && op != "^":
		return integer
	case l != text && r != text:
		return float
	}
	return unknown
}

// function checks a call of a function or an aggregate.
func (c *checker) function(x *ast.Call, p place) (kind, error) {
	least, most, ok := eval.Arguments(x.Name)
	aggregate := ast.Aggregates[x.Name]
	switch {
	case !ok:
		return unknown, ast.Syntax(x.Pos(), "UnknownFunction", "there is no function %s%s", x.Name,
			words.Near(x.Name, slices.Concat(eval.Functions(),
				slices.Sorted(maps.Keys(ast.Aggregates)))))
	case aggregate && p.aggregate:
		return unknown, ast.Syntax(x.Pos(), "NestedAggregation", "an aggregate stands in another")
	case aggregate && p.noAggregate:
		return unknown, ast.Syntax(x.Pos(), "InvalidAggregation",
			"%s() is an aggregate, which stands in RETURN and WITH only", x.Name)
	case !x.Star && (len(x.Args) < least || len(x.Args) > most):
		return unknown, ast.Syntax(x.Pos(), "InvalidNumberOfArguments",
			"%s() does not take %d arguments", x.Name, len(x.Args))
	case x.Name == "rand" && p.aggregate:
		return unknown, ast.Syntax(x.Pos(), "NonConstantExpression",
			"rand() stands in an aggregate, where it has another value for each row")
	}
	in := p.inner()
	in.aggregate = p.aggregate || aggregate
	in.predicate = x.Name == "exists"
	for i, arg := range x.Args {
		t, err := c.expr(arg, in)
		if err != nil {
			return unknown, err
		}
		if refused := refuses[x.Name]; i == 0 && t != unknown && refused != nil && refused(t) {
			return unknown, clash(x, "%s() does not take %s", x.Name, t.text())
		}
	}
	return results[x.Name], nil
}

// within runs fn, and takes back what it adds to the scope.
func (c *checker) within(fn func() error) error {
	outer, bound := c.scope, c.bound
	c.scope = maps.Clone(outer)
	defer func() { c.scope, c.bound = outer, bound }()
	return fn()
}

func (c *checker) patternComp(x *ast.PatternComp) error {
	if err := c.match(&ast.Match{Patterns: []*ast.Pattern{x.Pattern}, Where: x.Where}); err != nil {
		return err
	}
	_, err := c.expr(x.Each, place{noAggregate: true})
	return err
}

func (c *checker) exists(x *ast.Exists, p place) error {
	if !x.Bare {
		return c.within(func() error {
			if x.Query != nil {
				_, err := c.query(x.Query, true)
				return err
			}
			return c.match(x.Match)
		})
	}
	if !p.predicate {
		return ast.Syntax(x.Pos(), "UnexpectedSyntax",
			"a pattern stands here, where a value is wanted; take EXISTS { } or [pattern | value]")
	}
	for _, pt := range x.Match.Patterns {
		names := map[string]int{}
		for _, n := range pt.Nodes {
			names[n.Name] = n.Pos()
		}
		for _, r := range pt.Rels {
			names[r.Name] = r.Pos()
		}
		delete(names, "")
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if _, ok := c.scope[name]; !ok {
				return c.undefined(names[name], name)
			}
		}
	}
	return c.within(func() error { return c.match(x.Match) })
}

// local checks an expression in which a variable is defined.
func (c *checker) local(name string, t kind, x ast.Expr, p place) (out kind, err error) {
	if x == nil {
		return t, nil
	}
	err = c.within(func() error {
		c.scope[name] = t
		out, err = c.expr(x, p)
		return err
	})
	return out, err
}

func (c *checker) elements(x ast.Expr, p place) (kind, error) {
	t, err := c.expr(x, p.inner())
	if err == nil && t != unknown && !t.isList() {
		err = clash(x, "a list is wanted, not %s", t.text())
	}
	return t.element(), err
}

func (c *checker) listComp(x *ast.ListComp, p place) (kind, error) {
	t, err := c.elements(x.In, p)
	if err != nil {
		return unknown, err
	}
	where := place{predicate: true, noAggregate: true}
	if _, err := c.local(x.Name, t, x.Where, where); err != nil {
		return unknown, err
	}
	each, err := c.local(x.Name, t, x.Each, place{noAggregate: true})
	return listOf + each, err
}

func (c *checker) quantifier(x *ast.Quantifier, p place) error {
	t, err := c.elements(x.In, p)
	if err != nil {
		return err
	}
	w, err := c.local(x.Name, t, x.Where, place{predicate: true, noAggregate: true})
	if err == nil && w != unknown && w != boolean {
		err = clash(x, "%s() wants a condition, not %s", strings.ToLower(x.Kind), w.text())
	}
	return err
}

func (c *checker) reduce(x *ast.Reduce, p place) error {
	if _, err := c.expr(x.Init, p.inner()); err != nil {
		return err
	}
	t, err := c.elements(x.In, p)
	if err != nil {
		return err
	}
	return c.within(func() error {
		c.scope[x.Acc] = unknown
		_, err := c.local(x.Name, t, x.Each, place{noAggregate: true})
		return err
	})
}
