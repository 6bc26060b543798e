// Package check proves of a statement, before it runs, what the specification wants proved: that
// variables are defined, that types do not clash, that aggregates stand where they may.
package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/parse"
	"gdb/shell/words"
)

// Field is an argument or a column of a procedure.
type Field struct {
	Name string
	Type string // STRING, INTEGER, FLOAT, NUMBER, BOOLEAN, LIST, MAP, NODE, NODES (or one) or ANY
}

// Signature is what a procedure takes and gives.
type Signature struct {
	In, Out  []Field
	Optional int // how many of the last of In may be left out
}

// takes returns how many arguments there may be, as text.
func (s Signature) takes() string {
	if s.Optional > 0 {
		return fmt.Sprintf("%d to %d arguments", len(s.In)-s.Optional, len(s.In))
	}
	return fmt.Sprintf("%d arguments", len(s.In))
}

// Procedures are procedures by name.
type Procedures map[string]Signature

// checker checks the clauses of a statement in turn.
type checker struct {
	procs  Procedures
	writes bool
	scope  scope
	bound  map[string]bool // variables of relationships that this MATCH has had
}

// Check checks a statement and returns its columns. It writes out RETURN * and the like in q. A
// mistake is an *ast.Error, and so is a clause that writes without writes.
func Check(q *ast.Query, procs Procedures, writes bool) ([]string, error) {
	c := &checker{procs: procs, writes: writes, scope: scope{}}
	return c.query(q, false)
}

func (c *checker) query(q *ast.Query, sub bool) ([]string, error) {
	outer := c.scope
	defer func() { c.scope = outer }()
	var columns []string
	for i, s := range q.Singles {
		c.scope = maps.Clone(outer)
		names, err := c.single(s, sub)
		if err != nil {
			return nil, err
		}
		if i > 0 && !slices.Equal(names, columns) {
			return nil, ast.Syntax(s.Pos(), "DifferentColumnsInUnion",
				"both sides of UNION must have the same columns")
		}
		if i > 1 && q.All[i-1] != q.All[0] {
			return nil, ast.Syntax(s.Pos(), "InvalidClauseComposition",
				"UNION and UNION ALL do not mix in a statement")
		}
		columns = names
	}
	return columns, nil
}

func (c *checker) single(s *ast.Single, sub bool) (columns []string, err error) {
	for i, cl := range s.Clauses {
		last := i == len(s.Clauses)-1
		switch cl := cl.(type) {
		case *ast.Match:
			err = c.match(cl)
		case *ast.Unwind:
			err = c.unwind(cl)
		case *ast.Project:
			columns, err = c.project(cl)
		case *ast.CallProc:
			columns, err = c.call(cl, len(s.Clauses) == 1)
		case *ast.Write:
			err = c.write(cl)
		}
		if err != nil {
			return nil, err
		}
		if last && !sub && !ends(cl, len(s.Clauses)) {
			return nil, ast.Syntax(cl.Pos(), "InvalidClauseComposition",
				"a statement that reads ends with RETURN")
		}
	}
	return columns, nil
}

// ends reports whether a statement of n clauses may end with a clause.
func ends(cl ast.Clause, n int) bool {
	switch cl := cl.(type) {
	case *ast.Project:
		return !cl.With
	case *ast.CallProc:
		return n == 1 || cl.NoYield
	}
	_, ok := cl.(*ast.Write)
	return ok
}

func (c *checker) write(w *ast.Write) error {
	if !c.writes {
		return parse.Refuse(w)
	}
	c.bound = map[string]bool{}
	for _, p := range w.Patterns {
		if err := c.pattern(p); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) unwind(u *ast.Unwind) error {
	t, err := c.expr(u.X, place{})
	if err != nil {
		return err
	}
	if _, ok := c.scope[u.Name]; ok {
		return alreadyBound(u.Pos(), u.Name)
	}
	c.scope[u.Name] = t.element()
	return nil
}

func alreadyBound(pos int, name string) error {
	return ast.Syntax(pos, "VariableAlreadyBound", "%s is defined before; take another name", name)
}

func (c *checker) match(m *ast.Match) error {
	c.bound = map[string]bool{}
	for _, p := range m.Patterns {
		if err := c.pattern(p); err != nil {
			return err
		}
	}
	for _, p := range m.Patterns {
		if err := c.patternProps(p); err != nil {
			return err
		}
	}
	return c.condition(m.Where)
}

// pattern defines the variables of a pattern.
func (c *checker) pattern(p *ast.Pattern) error {
	for i, n := range p.Nodes {
		if err := c.bind(n.Pos(), n.Name, node); err != nil {
			return err
		}
		if i == len(p.Rels) {
			break
		}
		r := p.Rels[i]
		t := rel
		if r.Variable {
			t = kind("list of " + rel)
		}
		if r.Name != "" && c.bound[r.Name] {
			return ast.Syntax(r.Pos(), "RelationshipUniquenessViolation",
				"%s stands twice in a pattern, and no relationship matches twice", r.Name)
		}
		if err := c.bind(r.Pos(), r.Name, t); err != nil {
			return err
		}
		c.bound[r.Name] = true
	}
	if p.Name == "" {
		return nil
	}
	if _, ok := c.scope[p.Name]; ok {
		return alreadyBound(p.Pos(), p.Name)
	}
	c.scope[p.Name] = path
	return nil
}

// bind defines a variable of a pattern, or proves that it has the type.
func (c *checker) bind(pos int, name string, t kind) error {
	if name == "" {
		return nil
	}
	had, ok := c.scope[name]
	list := had.isList() && had.element() == unknown && t.isList()
	if ok && had != t && had != unknown && !list {
		return ast.Syntax(pos, "VariableTypeConflict", "%s is %s, and here it would be %s", name,
			had.text(), t.text())
	}
	if !ok || had == unknown {
		c.scope[name] = t
	}
	return nil
}

func (c *checker) patternProps(p *ast.Pattern) error {
	check := func(x ast.Expr) error {
		if x == nil {
			return nil
		}
		_, err := c.expr(x, place{noAggregate: true})
		return err
	}
	for _, n := range p.Nodes {
		if err := check(n.Props); err != nil {
			return err
		}
	}
	for _, r := range p.Rels {
		if err := check(r.Props); err != nil {
			return err
		}
	}
	return nil
}

// condition checks WHERE.
func (c *checker) condition(x ast.Expr) error {
	if x == nil {
		return nil
	}
	t, err := c.expr(x, place{predicate: true, noAggregate: true})
	if err == nil && t != unknown && t != boolean {
		err = ast.Syntax(x.Pos(), "InvalidArgumentType", "a condition is true or false, not %s",
			t.text())
	}
	return err
}

func (c *checker) call(p *ast.CallProc, alone bool) (columns []string, err error) {
	sig, ok := c.procs[p.Name]
	if !ok {
		return nil, ast.Errorf(p.Pos(), "ProcedureError", "ProcedureNotFound",
			"there is no procedure %s%s", p.Name, c.near(p.Name))
	}
	switch {
	case p.Implicit && !alone:
		return nil, ast.Syntax(p.Pos(), "InvalidArgumentPassingMode",
			"a CALL among other clauses names its arguments in parentheses")
	case !p.Implicit && (len(p.Args) > len(sig.In) || len(p.Args) < len(sig.In)-sig.Optional):
		return nil, ast.Syntax(p.Pos(), "InvalidNumberOfArguments", "%s takes %s, not %d", p.Name,
			sig.takes(), len(p.Args))
	case p.Star && !alone:
		return nil, ast.Syntax(p.Pos(), "UnexpectedSyntax",
			"a CALL among other clauses names its columns behind YIELD")
	}
	for i, x := range p.Args {
		t, err := c.expr(x, place{noAggregate: true})
		if err != nil {
			return nil, err
		}
		if !accepts(sig.In[i].Type, t) {
			return nil, ast.Syntax(x.Pos(), "InvalidArgumentType", "%s wants %s for %s, not %s",
				p.Name, sig.In[i].Type, sig.In[i].Name, t.text())
		}
	}
	if p.Star || alone && p.NoYield {
		for _, f := range sig.Out {
			p.Yield = append(p.Yield, ast.Yield{At: p.At, Field: f.Name, Name: f.Name})
		}
	}
	return c.yield(p, sig, alone)
}

// near suggests a procedure for a name that none has: one of a near name, or of the same name
// behind the last dot.
func (c *checker) near(name string) string {
	all := slices.Sorted(maps.Keys(c.procs))
	last := func(name string) string { return name[strings.LastIndex(name, ".")+1:] }
	for _, p := range all {
		if strings.EqualFold(last(p), last(name)) {
			return fmt.Sprintf("; did you mean %s?", p)
		}
	}
	if text := words.Near(name, all); text != "" || len(all) == 0 {
		return text
	}
	return "; there are " + strings.Join(all, ", ")
}

// accepts reports whether an argument of a type may be passed where a procedure wants another.
func accepts(want string, t kind) bool {
	switch want {
	case "STRING":
		return t == unknown || t == text
	case "INTEGER":
		return t == unknown || t == integer
	case "FLOAT", "NUMBER":
		return t == unknown || t == integer || t == float
	case "BOOLEAN":
		return t == unknown || t == boolean
	case "NODE":
		return t == unknown || t == node
	case "NODES":
		return t == unknown || t == node || t.isList()
	case "LIST":
		return t == unknown || t.isList()
	}
	return true
}

func (c *checker) yield(p *ast.CallProc, sig Signature, alone bool) (columns []string, err error) {
	for _, y := range p.Yield {
		i := slices.IndexFunc(sig.Out, func(f Field) bool { return f.Name == y.Field })
		if i < 0 {
			return nil, ast.Syntax(y.Pos(), "UndefinedVariable", "%s gives no %s%s", p.Name,
				y.Field, words.Near(y.Field, names(sig.Out)))
		}
		if _, ok := c.scope[y.Name]; ok {
			return nil, alreadyBound(y.Pos(), y.Name)
		}
		c.scope[y.Name] = unknown
		columns = append(columns, y.Name)
	}
	if !alone && p.NoYield && len(sig.Out) > 0 {
		return nil, ast.Syntax(p.Pos(), "UndefinedVariable",
			"a CALL among other clauses names its columns behind YIELD")
	}
	return columns, c.condition(p.Where)
}

func names(fields []Field) (out []string) {
	for _, f := range fields {
		out = append(out, f.Name)
	}
	return out
}

// undefined returns the error of a variable that is not in scope.
func (c *checker) undefined(pos int, name string) error {
	return ast.Syntax(pos, "UndefinedVariable", "%s is not defined%s", name,
		words.Near(name, slices.Sorted(maps.Keys(c.scope))))
}
