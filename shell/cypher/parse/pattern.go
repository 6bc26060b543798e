package parse

import (
	"strings"

	"gdb/shell/cypher/ast"
)

// patterns reads patterns with commas between.
func (p *parser) patterns() (out []*ast.Pattern, err error) {
	for {
		pt, err := p.pattern()
		if err != nil {
			return nil, err
		}
		out = append(out, pt)
		if !p.sign(",") {
			return out, nil
		}
	}
}

// pattern reads [name =] path, which may be in shortestPath( ).
func (p *parser) pattern() (*ast.Pattern, error) {
	at, name := p.here(), ""
	if n := p.tok(); (n.kind == tokName || n.kind == tokQuoted) && p.peek(1).text == "=" {
		name = n.text
		p.at += 2
	}
	for _, short := range []string{"shortestPath", "allShortestPaths"} {
		if p.is(short) && p.peek(1).text == "(" {
			p.at += 2
			pt, err := p.path()
			if err != nil {
				return nil, err
			}
			if len(pt.Rels) != 1 {
				return nil, ast.Syntax(pt.Pos(), "UnexpectedSyntax",
					"%s wants one relationship between two nodes, as in (a)-[*]->(b)", short)
			}
			pt.At, pt.Name, pt.Shortest = at, name, short
			return pt, p.need(")")
		}
	}
	pt, err := p.path()
	if err != nil {
		return nil, err
	}
	pt.At, pt.Name = at, name
	return pt, nil
}

// path reads nodes with relationships between. Parentheses around all of it are allowed.
func (p *parser) path() (*ast.Pattern, error) {
	if err := p.nested(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	if p.isSign("(") && p.peek(1).kind == tokSign && p.peek(1).text == "(" {
		p.at++
		pt, err := p.path()
		if err != nil {
			return nil, err
		}
		return pt, p.need(")")
	}
	pt := &ast.Pattern{At: p.here()}
	n, err := p.node()
	if err != nil {
		return nil, err
	}
	pt.Nodes = append(pt.Nodes, n)
	for p.isSign("-") || p.isSign("<") {
		r, err := p.rel()
		if err != nil {
			return nil, err
		}
		if n, err = p.node(); err != nil {
			return nil, err
		}
		pt.Rels, pt.Nodes = append(pt.Rels, r), append(pt.Nodes, n)
	}
	return pt, nil
}

func (p *parser) node() (*ast.Node, error) {
	n := &ast.Node{At: p.here()}
	if err := p.need("("); err != nil {
		return nil, err
	}
	if t := p.tok(); t.kind == tokName || t.kind == tokQuoted {
		n.Name = t.text
		p.at++
	}
	var err error
	if n.Labels, err = p.labels(); err != nil {
		return nil, err
	}
	if n.Props, err = p.props(); err != nil {
		return nil, err
	}
	return n, p.need(")")
}

func (p *parser) labels() (out []string, err error) {
	for p.sign(":") {
		l, err := p.name("a label")
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// props reads {key: value}; nil for none.
func (p *parser) props() (ast.Expr, error) {
	if t := p.tok(); t.kind == tokSign && t.text == "$" {
		return nil, ast.Syntax(t.pos, "InvalidParameterUse",
			"a pattern takes properties one by one, as in {name: $name}")
	}
	if !p.isSign("{") {
		return nil, nil
	}
	return p.mapLiteral()
}

func (p *parser) rel() (*ast.Rel, error) {
	r := &ast.Rel{At: p.here(), Least: 1, Most: 1}
	left := p.sign("<")
	if err := p.need("-"); err != nil {
		return nil, err
	}
	if p.sign("[") {
		if err := p.relDetail(r); err != nil {
			return nil, err
		}
	}
	if err := p.need("-"); err != nil {
		return nil, err
	}
	right := p.sign(">")
	switch {
	case left && !right:
		r.Dir = ast.In
	case right && !left:
		r.Dir = ast.Out
	}
	return r, nil
}

func (p *parser) relDetail(r *ast.Rel) (err error) {
	if t := p.tok(); t.kind == tokName || t.kind == tokQuoted {
		r.Name = t.text
		p.at++
	}
	if p.isSign(":") {
		for p.sign(":") || len(r.Types) > 0 && p.sign("|") {
			p.sign(":")
			t, err := p.name("a type")
			if err != nil {
				return err
			}
			r.Types = append(r.Types, t)
		}
	}
	if p.sign("*") {
		if err := p.hops(r); err != nil {
			return err
		}
	} else if p.isSign("..") {
		return ast.Syntax(p.tok().pos, "InvalidRelationshipPattern",
			"a range of hops begins with a star, as in *1..3")
	}
	if r.Props, err = p.props(); err != nil {
		return err
	}
	return p.need("]")
}

// hops reads the range behind a star: n, n.., ..m, n..m or nothing.
func (p *parser) hops(r *ast.Rel) (err error) {
	r.Variable, r.Most = true, -1
	if p.isSign("-") {
		return ast.Syntax(p.tok().pos, "InvalidRelationshipPattern", "a range of hops has no sign")
	}
	if p.tok().kind == tokInt {
		if r.Least, err = p.count(); err != nil {
			return err
		}
		r.Most = r.Least
	}
	if !p.sign("..") {
		return nil
	}
	r.Most = -1
	if p.tok().kind == tokInt {
		r.Most, err = p.count()
	}
	return err
}

// hopsMost bounds the numbers of a range of hops.
const hopsMost = 1 << 30

func (p *parser) count() (int, error) {
	t := p.tok()
	v, err := literal(t, "")
	if err != nil {
		return 0, err
	}
	p.at++
	return int(min(v.(int64), hopsMost)), nil
}

// tryPattern reads a pattern with a relationship where an expression may stand; nil, with nothing
// taken, if there is none. It remembers where it failed, so that nesting costs no more than that.
func (p *parser) tryPattern() *ast.Pattern {
	at, depth := p.at, p.depth
	if p.plain[at] {
		return nil
	}
	pt, err := p.pattern()
	if err == nil && (len(pt.Rels) > 0 || pt.Shortest != "") {
		return pt
	}
	if e, ok := err.(*ast.Error); ok && (p.far == nil || e.Pos > p.far.Pos) &&
		!strings.HasPrefix(e.Msg, "unexpected") {
		p.far = e
	}
	p.at, p.depth, p.plain[at] = at, depth, true
	return nil
}
