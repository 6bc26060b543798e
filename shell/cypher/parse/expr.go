package parse

import (
	"slices"
	"strings"

	"gdb/shell/cypher/ast"
)

// expr reads an expression.
func (p *parser) expr() (ast.Expr, error) {
	if err := p.nested(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	return p.binary(0)
}

// levels are the operators that join two operands from left to right, the loosest first. Between
// AND and + stand NOT, comparisons and predicates.
var levels = [][]string{{"OR"}, {"XOR"}, {"AND"}, nil, {"+", "-"}, {"*", "/", "%"}, {"^"}}

// The levels that are not of levels' kind.
const (
	levelNot   = 3
	levelUnary = 7
)

func (p *parser) binary(level int) (ast.Expr, error) {
	switch level {
	case levelNot:
		return p.not()
	case levelUnary:
		return p.unary()
	}
	l, err := p.binary(level + 1)
	for err == nil {
		op := p.operator(levels[level])
		if op == "" {
			return l, nil
		}
		at := p.here()
		p.at++
		var r ast.Expr
		if r, err = p.binary(level + 1); err == nil {
			l = &ast.Binary{At: at, Op: op, L: l, R: r}
		}
	}
	return nil, err
}

// operator returns the one of ops that stands here.
func (p *parser) operator(ops []string) string {
	i := slices.IndexFunc(ops, func(op string) bool { return p.isSign(op) || p.is(op) })
	if i < 0 {
		return ""
	}
	return ops[i]
}

func (p *parser) not() (ast.Expr, error) {
	at := p.here()
	if !p.word("NOT") {
		return p.compare()
	}
	if err := p.nested(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	x, err := p.not()
	return &ast.Unary{At: at, Op: "NOT", X: x}, err
}

var comparisons = []string{"=", "<>", "<", ">", "<=", ">="}

func (p *parser) compare() (ast.Expr, error) {
	at := p.here()
	x, err := p.predicate()
	if err != nil {
		return nil, err
	}
	c := &ast.Compare{At: at, Xs: []ast.Expr{x}}
	for {
		op := p.operator(comparisons)
		if op == "" {
			break
		}
		p.at++
		if x, err = p.predicate(); err != nil {
			return nil, err
		}
		c.Ops, c.Xs = append(c.Ops, op), append(c.Xs, x)
	}
	if len(c.Ops) == 0 {
		return x, nil
	}
	return c, nil
}

// predicate reads an operand with predicates of strings, lists and null behind it.
func (p *parser) predicate() (ast.Expr, error) {
	x, err := p.binary(levelNot + 1)
	for err == nil {
		at, op := p.here(), ""
		switch {
		case p.word("IS", "NULL"):
			x = &ast.IsNull{At: at, X: x}
			continue
		case p.word("IS", "NOT", "NULL"):
			x = &ast.IsNull{At: at, X: x, Not: true}
			continue
		case p.word("STARTS", "WITH"):
			op = "STARTS WITH"
		case p.word("ENDS", "WITH"):
			op = "ENDS WITH"
		case p.word("CONTAINS"):
			op = "CONTAINS"
		case p.word("IN"):
			op = "IN"
		case p.sign("=~"):
			op = "=~"
		default:
			return x, nil
		}
		var r ast.Expr
		if r, err = p.binary(levelNot + 1); err == nil {
			x = &ast.Binary{At: at, Op: op, L: x, R: r}
		}
	}
	return nil, err
}

func (p *parser) unary() (ast.Expr, error) {
	at := p.here()
	for _, op := range []string{"+", "-"} {
		if !p.sign(op) {
			continue
		}
		if t := p.tok(); op == "-" && (t.kind == tokInt || t.kind == tokFloat) {
			p.at++
			v, err := literal(t, "-")
			if err != nil {
				return nil, err
			}
			return p.postfix(&ast.Literal{At: at, Value: v})
		}
		if err := p.nested(); err != nil {
			return nil, err
		}
		defer func() { p.depth-- }()
		x, err := p.unary()
		return &ast.Unary{At: at, Op: op, X: x}, err
	}
	x, err := p.atom()
	if err != nil {
		return nil, err
	}
	return p.postfix(x)
}

// postfix reads .key, [i], [i..j] and :Label behind an operand.
func (p *parser) postfix(x ast.Expr) (ast.Expr, error) {
	for {
		at := p.here()
		switch {
		case p.sign("."):
			key, err := p.name("a property")
			if err != nil {
				return nil, err
			}
			x = &ast.Prop{At: at, Of: x, Key: key}
		case p.sign("["):
			var err error
			if x, err = p.subscript(at, x); err != nil {
				return nil, err
			}
		case p.isSign(":"):
			labels, err := p.labels()
			if err != nil {
				return nil, err
			}
			return &ast.HasLabels{At: at, X: x, Labels: labels}, nil
		default:
			return x, nil
		}
	}
}

func (p *parser) subscript(at ast.At, of ast.Expr) (x ast.Expr, err error) {
	var from, to ast.Expr
	if !p.isSign("..") {
		if from, err = p.expr(); err != nil {
			return nil, err
		}
		if p.sign("]") {
			return &ast.Index{At: at, Of: of, I: from}, nil
		}
	}
	if err := p.need(".."); err != nil {
		return nil, err
	}
	if !p.isSign("]") {
		if to, err = p.expr(); err != nil {
			return nil, err
		}
	}
	return &ast.Slice{At: at, Of: of, From: from, To: to}, p.need("]")
}

func (p *parser) atom() (ast.Expr, error) {
	t, at := p.tok(), p.here()
	switch t.kind {
	case tokInt, tokFloat:
		v, err := literal(t, "")
		if err != nil {
			return nil, err
		}
		p.at++
		return &ast.Literal{At: at, Value: v}, nil
	case tokString:
		p.at++
		return &ast.Literal{At: at, Value: t.text}, nil
	case tokName, tokQuoted:
		return p.named(t, at)
	}
	switch {
	case p.sign("$"):
		if n := p.tok(); n.kind == tokInt {
			p.at++
			return &ast.Param{At: at, Name: n.text}, nil
		}
		name, err := p.name("the name of a parameter")
		return &ast.Param{At: at, Name: name}, err
	case p.isSign("{"):
		return p.mapLiteral()
	case p.isSign("["):
		return p.bracket(at)
	case p.isSign("("):
		if pt := p.tryPattern(); pt != nil {
			return bare(pt), nil
		}
		p.at++
		x, err := p.expr()
		if err != nil {
			return nil, err
		}
		return x, p.need(")")
	}
	return nil, p.unexpected("an expression")
}

// bare returns a pattern as a condition.
func bare(pt *ast.Pattern) ast.Expr {
	return &ast.Exists{At: pt.At, Bare: true,
		Match: &ast.Match{At: pt.At, Patterns: []*ast.Pattern{pt}}}
}

// reserved are words that are no variables.
var reserved = []string{"WHERE", "RETURN", "WITH", "MATCH", "OPTIONAL", "UNWIND", "UNION", "AS",
	"AND", "OR", "XOR", "IN", "THEN", "ELSE", "WHEN", "END", "ORDER", "SKIP", "LIMIT",
	"DISTINCT", "IS"}

var constants = map[string]any{"true": true, "false": false, "null": nil}

// named reads an operand that begins with a word.
func (p *parser) named(t token, at ast.At) (ast.Expr, error) {
	low := strings.ToLower(t.text)
	call := p.peek(1).kind == tokSign && p.peek(1).text == "("
	if t.kind == tokQuoted {
		low = ""
	}
	if v, ok := constants[low]; ok {
		p.at++
		return &ast.Literal{At: at, Value: v}, nil
	}
	switch {
	case low == "case" && !call && p.peek(1).text != "." || low == "case" && call:
		return p.caseOf(at)
	case low == "exists" && p.peek(1).text == "{":
		return p.exists(at)
	case call && slices.Contains([]string{"all", "any", "none", "single"}, low):
		return p.quantifier(at, low)
	case call && low == "reduce":
		return p.reduce(at)
	case call && (low == "shortestpath" || low == "allshortestpaths"):
		pt, err := p.pattern()
		if err != nil {
			return nil, err
		}
		return bare(pt), nil
	case slices.Contains(reserved, strings.ToUpper(low)):
		return nil, p.unexpected("an expression")
	}
	if name, n := p.function(); n > 0 {
		p.at += n
		return p.arguments(at, name)
	}
	p.at++
	return &ast.Var{At: at, Name: t.text}, nil
}

// function returns the name of a function that is called here and how many tokens it takes, with
// its parenthesis; 0 if none is.
func (p *parser) function() (string, int) {
	name := p.tok().text
	for n := 1; ; n += 2 {
		switch t := p.peek(n); {
		case t.kind == tokSign && t.text == "(":
			return strings.ToLower(name), n + 1
		case t.kind == tokSign && t.text == "." && p.peek(n+1).kind == tokName:
			name += "." + p.peek(n+1).text
		default:
			return "", 0
		}
	}
}

func (p *parser) arguments(at ast.At, name string) (ast.Expr, error) {
	c := &ast.Call{At: at, Name: name}
	if name == "count" && p.sign("*") {
		c.Star = true
		return c, p.need(")")
	}
	c.Distinct = p.word("DISTINCT")
	var err error
	c.Args, err = p.exprs(")")
	return c, err
}

func (p *parser) caseOf(at ast.At) (ast.Expr, error) {
	p.at++
	c := &ast.Case{At: at}
	var err error
	if !p.is("WHEN") {
		if c.Of, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if !p.is("WHEN") {
		return nil, p.unexpected("WHEN", "WHEN")
	}
	for p.word("WHEN") {
		when, err := p.expr()
		if err != nil {
			return nil, err
		}
		if err := p.needWord("THEN"); err != nil {
			return nil, err
		}
		then, err := p.expr()
		if err != nil {
			return nil, err
		}
		c.Whens, c.Thens = append(c.Whens, when), append(c.Thens, then)
	}
	if p.word("ELSE") {
		if c.Otherwise, err = p.expr(); err != nil {
			return nil, err
		}
	}
	return c, p.needWord("END")
}

// exists reads EXISTS { } with patterns or a query.
func (p *parser) exists(at ast.At) (ast.Expr, error) {
	if err := p.nested(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	p.at += 2
	x := &ast.Exists{At: at}
	var err error
	if p.isSign("(") || p.peek(1).text == "=" {
		x.Match, err = p.match(p.here(), false)
	} else {
		x.Query, err = p.query()
	}
	if err != nil {
		return nil, err
	}
	return x, p.need("}")
}

// in reads NAME IN list.
func (p *parser) in() (name string, list ast.Expr, err error) {
	if name, err = p.name("a variable"); err != nil {
		return "", nil, err
	}
	if err = p.needWord("IN"); err != nil {
		return "", nil, err
	}
	list, err = p.expr()
	return name, list, err
}

func (p *parser) quantifier(at ast.At, kind string) (ast.Expr, error) {
	p.at += 2
	q := &ast.Quantifier{At: at, Kind: kind}
	var err error
	if q.Name, q.In, err = p.in(); err != nil {
		return nil, err
	}
	if q.Where, err = p.where(); err != nil {
		return nil, err
	}
	if q.Where == nil {
		return nil, p.unexpected("WHERE", "WHERE")
	}
	return q, p.need(")")
}

func (p *parser) reduce(at ast.At) (ast.Expr, error) {
	p.at += 2
	r := &ast.Reduce{At: at}
	var err error
	if r.Acc, err = p.name("a variable"); err != nil {
		return nil, err
	}
	if err = p.need("="); err != nil {
		return nil, err
	}
	if r.Init, err = p.expr(); err != nil {
		return nil, err
	}
	if err = p.need(","); err != nil {
		return nil, err
	}
	if r.Name, r.In, err = p.in(); err != nil {
		return nil, err
	}
	if err = p.need("|"); err != nil {
		return nil, err
	}
	if r.Each, err = p.expr(); err != nil {
		return nil, err
	}
	return r, p.need(")")
}

// bracket reads a list, or a comprehension of a list or a pattern.
func (p *parser) bracket(at ast.At) (ast.Expr, error) {
	p.at++
	if k := p.tok().kind; (k == tokName || k == tokQuoted) && p.peek(1).kind == tokName &&
		strings.EqualFold(p.peek(1).text, "IN") {
		return p.listComp(at)
	}
	if p.isSign("(") || p.peek(1).text == "=" && p.peek(2).text == "(" {
		start := p.at
		if pt := p.tryPattern(); pt != nil && (p.is("WHERE") || p.isSign("|")) {
			return p.patternComp(at, pt)
		}
		p.at = start
	}
	items, err := p.exprs("]")
	return &ast.List{At: at, Items: items}, err
}

func (p *parser) listComp(at ast.At) (ast.Expr, error) {
	c := &ast.ListComp{At: at}
	var err error
	if c.Name, c.In, err = p.in(); err != nil {
		return nil, err
	}
	if c.Where, err = p.where(); err != nil {
		return nil, err
	}
	if p.sign("|") {
		if c.Each, err = p.expr(); err != nil {
			return nil, err
		}
	}
	return c, p.need("]")
}

func (p *parser) patternComp(at ast.At, pt *ast.Pattern) (ast.Expr, error) {
	c := &ast.PatternComp{At: at, Pattern: pt}
	var err error
	if c.Where, err = p.where(); err != nil {
		return nil, err
	}
	if err = p.need("|"); err != nil {
		return nil, err
	}
	if c.Each, err = p.expr(); err != nil {
		return nil, err
	}
	return c, p.need("]")
}

func (p *parser) mapLiteral() (ast.Expr, error) {
	m := &ast.Map{At: p.here()}
	p.at++
	for !p.sign("}") {
		if len(m.Keys) > 0 {
			if err := p.need(","); err != nil {
				return nil, err
			}
		}
		key, err := p.name("a key")
		if err != nil {
			return nil, err
		}
		if err := p.need(":"); err != nil {
			return nil, err
		}
		x, err := p.expr()
		if err != nil {
			return nil, err
		}
		m.Keys, m.Values = append(m.Keys, key), append(m.Values, x)
	}
	return m, nil
}
