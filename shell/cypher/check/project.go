package check

import (
	"maps"
	"slices"

	"gdb/shell/cypher/ast"
)

// project checks WITH or RETURN and returns its columns.
func (c *checker) project(p *ast.Project) ([]string, error) {
	if p.Star {
		if err := c.star(p); err != nil {
			return nil, err
		}
	}
	out, columns := scope{}, []string(nil)
	aggregates := false
	for _, i := range p.Items {
		t, err := c.expr(i.X, place{})
		if err != nil {
			return nil, err
		}
		if _, ok := i.X.(*ast.Var); p.With && !ok && !i.Named {
			return nil, ast.Syntax(i.Pos(), "NoExpressionAlias",
				"an expression in WITH has a name, as in %s AS x", i.Name)
		}
		if _, ok := out[i.Name]; ok {
			return nil, ast.Syntax(i.Pos(), "ColumnNameConflict", "two columns have the name %s",
				i.Name)
		}
		out[i.Name] = t
		columns = append(columns, i.Name)
		aggregates = aggregates || len(ast.AggregatesOf(i.X)) > 0
	}
	for _, i := range p.Items {
		if len(ast.AggregatesOf(i.X)) > 0 && !grouped(i.X, p.Items, nil) {
			return nil, ambiguous(i.X)
		}
	}
	if err := c.after(p, out, aggregates); err != nil {
		return nil, err
	}
	c.scope = out
	return columns, nil
}

// star writes out the variables that * stands for.
func (c *checker) star(p *ast.Project) error {
	names := slices.Sorted(maps.Keys(c.scope))
	if len(names) == 0 && !p.With {
		return ast.Syntax(p.Pos(), "NoVariablesInScope", "RETURN * has no variables to return")
	}
	var items []ast.Item
	for _, name := range names {
		items = append(items, ast.Item{At: p.At, X: &ast.Var{At: p.At, Name: name}, Name: name})
	}
	p.Items, p.Star = append(items, p.Items...), false
	return nil
}

func ambiguous(x ast.Expr) error {
	return ast.Syntax(x.Pos(), "AmbiguousAggregationExpression",
		"beside an aggregate stands what is no column by itself; make it one with WITH")
}

// grouped reports whether an expression has, beside aggregates, only what is the same in all rows
// of a group: constants, and variables and properties that are columns or local.
func grouped(x ast.Expr, items []ast.Item, local []string) bool {
	switch x := x.(type) {
	case *ast.Call:
		if ast.Aggregates[x.Name] {
			return true
		}
	case *ast.Var:
		return slices.Contains(local, x.Name) || isColumn(x, items)
	case *ast.Prop:
		if isColumn(x, items) {
			return true
		}
	case *ast.ListComp:
		local = append(slices.Clone(local), x.Name)
	case *ast.Quantifier:
		local = append(slices.Clone(local), x.Name)
	case *ast.Reduce:
		local = append(slices.Clone(local), x.Name, x.Acc)
	}
	for _, child := range ast.Children(x) {
		if !grouped(child, items, local) {
			return false
		}
	}
	return true
}

func isColumn(x ast.Expr, items []ast.Item) bool {
	return slices.ContainsFunc(items, func(i ast.Item) bool { return ast.Same(i.X, x) })
}

// after checks ORDER BY, SKIP, LIMIT and WHERE, which see the columns in out.
func (c *checker) after(p *ast.Project, out scope, aggregates bool) error {
	seen := maps.Clone(out)
	if !aggregates && !p.Distinct {
		seen = maps.Clone(c.scope)
		maps.Copy(seen, out)
	}
	before := c.scope
	c.scope = seen
	defer func() { c.scope = before }()
	for _, k := range p.OrderBy {
		if err := c.orderBy(k.X, p, aggregates); err != nil {
			return err
		}
	}
	for _, x := range []ast.Expr{p.Skip, p.Limit} {
		if err := c.count(x); err != nil {
			return err
		}
	}
	if !aggregates { // a condition sees what the columns are made of
		c.scope = maps.Clone(before)
		maps.Copy(c.scope, out)
	}
	return c.condition(p.Where)
}

// orderBy checks a key. Behind aggregates and DISTINCT it is made of columns, by their names or as
// they are written.
func (c *checker) orderBy(x ast.Expr, p *ast.Project, aggregates bool) error {
	if isColumn(x, p.Items) {
		return nil
	}
	if has := len(ast.AggregatesOf(x)) > 0; has && !aggregates {
		return ast.Syntax(x.Pos(), "InvalidAggregation",
			"ORDER BY has an aggregate, and the columns have none")
	} else if has && slices.ContainsFunc(p.Items, func(i ast.Item) bool {
		return !simple(i.X) && len(ast.AggregatesOf(i.X)) == 0 && contains(x, i.X)
	}) {
		return ambiguous(x)
	}
	if !aggregates && !p.Distinct {
		_, err := c.expr(x, place{})
		return err
	}
	return c.columns(x, p.Items)
}

func simple(x ast.Expr) bool {
	switch x.(type) {
	case *ast.Var, *ast.Prop:
		return true
	}
	return false
}

// contains reports whether part stands in x.
func contains(x, part ast.Expr) bool {
	return ast.Same(x, part) || slices.ContainsFunc(ast.Children(x), func(child ast.Expr) bool {
		return contains(child, part)
	})
}

// columns checks an expression that may have columns as they are written as parts.
func (c *checker) columns(x ast.Expr, items []ast.Item) error {
	if isColumn(x, items) {
		return nil
	}
	children := ast.Children(x)
	switch x.(type) {
	case *ast.ListComp, *ast.Quantifier, *ast.Reduce, *ast.PatternComp, *ast.Exists:
		children = nil
	}
	if len(children) == 0 {
		_, err := c.expr(x, place{})
		return err
	}
	for _, child := range children {
		if err := c.columns(child, items); err != nil {
			return err
		}
	}
	return nil
}

// count checks SKIP and LIMIT.
func (c *checker) count(x ast.Expr) error {
	if x == nil {
		return nil
	}
	if hasVar(x) {
		return ast.Syntax(x.Pos(), "NonConstantExpression", "SKIP and LIMIT take no variables")
	}
	t, err := c.expr(x, place{noAggregate: true})
	if err != nil {
		return err
	}
	if l, ok := x.(*ast.Literal); ok {
		if n, ok := l.Value.(int64); ok && n < 0 {
			return ast.Syntax(x.Pos(), "NegativeIntegerArgument",
				"SKIP and LIMIT take no negative number")
		}
	}
	if t != unknown && t != integer {
		return clash(x, "SKIP and LIMIT take an integer, not %s", t.text())
	}
	return nil
}

func hasVar(x ast.Expr) bool {
	switch x.(type) {
	case *ast.Var, *ast.PatternComp, *ast.Exists:
		return true
	}
	return slices.ContainsFunc(ast.Children(x), hasVar)
}
