package parse

import (
	"slices"
	"strings"

	"gdb/internal/message"
	"gdb/shell/cypher/ast"
	"gdb/shell/words"
)

// depthMost bounds how deep expressions and subqueries may nest.
const depthMost = 300

// parser is a recursive descent: a method for each rule of the grammar.
type parser struct {
	src   string
	toks  []token
	at    int
	depth int
	plain map[int]bool // places of parentheses that begin no pattern, found by trying
	far   *ast.Error   // the mistake that is farthest in the text, of what was tried
}

// Parse reads one statement. A mistake is an *ast.Error with its place.
func Parse(src string) (*ast.Query, error) {
	toks, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{src: src, toks: toks, plain: map[int]bool{}}
	q, err := p.query()
	if err == nil {
		if p.is("INTO") && p.peek(1).kind == tokString {
			q.Into = p.peek(1).text
			p.at += 2
		}
		p.sign(";")
		if p.tok().kind != tokEnd {
			err = p.unexpected("the end", clauseWords...)
		}
	}
	if e, ok := err.(*ast.Error); ok && p.far != nil && p.far.Pos > e.Pos {
		err = p.far
	}
	if err != nil {
		return nil, err
	}
	return q, nil
}

func (p *parser) tok() token { return p.toks[p.at] }

// peek returns a token after the current one.
func (p *parser) peek(n int) token { return p.toks[min(p.at+n, len(p.toks)-1)] }

func (p *parser) here() ast.At { return ast.At(p.tok().pos) }

// is reports whether the current tokens are words, without regard to case.
func (p *parser) is(text ...string) bool {
	for i, w := range text {
		if t := p.peek(i); t.kind != tokName || !strings.EqualFold(t.text, w) {
			return false
		}
	}
	return true
}

// word takes the current tokens if they are these words.
func (p *parser) word(text ...string) bool {
	if !p.is(text...) {
		return false
	}
	p.at += len(text)
	return true
}

func (p *parser) isSign(s string) bool { t := p.tok(); return t.kind == tokSign && t.text == s }

func (p *parser) sign(s string) bool {
	if p.isSign(s) {
		p.at++
		return true
	}
	return false
}

func (p *parser) need(s string) error {
	if p.sign(s) {
		return nil
	}
	return p.unexpected(s)
}

func (p *parser) needWord(w string) error {
	if p.word(w) {
		return nil
	}
	return p.unexpected(w, w)
}

// unexpected returns the error of a token that is not what the grammar wants. near are words that
// may have been meant.
func (p *parser) unexpected(wanted string, near ...string) error {
	t := p.tok()
	found := words.Quoted(p.src[t.pos:t.end])
	if t.kind == tokEnd {
		found = "the end"
	}
	hint := ""
	if t.kind == tokName {
		hint = words.Near(t.text, near)
	}
	return ast.Syntax(t.pos, "UnexpectedSyntax", "unexpected %s; expected %s%s", found,
		wanted, hint)
}

// nested counts a level of nesting; the caller subtracts it.
func (p *parser) nested() error {
	if p.depth++; p.depth > depthMost {
		return ast.Syntax(p.tok().pos, "UnexpectedSyntax",
			"the statement nests deeper than %d levels", depthMost)
	}
	return nil
}

// name takes a name of a variable, label, type or property.
func (p *parser) name(what string) (string, error) {
	if t := p.tok(); t.kind == tokName || t.kind == tokQuoted {
		p.at++
		return t.text, nil
	}
	return "", p.unexpected(what)
}

var clauseWords = []string{"MATCH", "OPTIONAL", "WHERE", "WITH", "UNWIND", "RETURN", "CALL",
	"UNION", "ORDER", "SKIP", "LIMIT"}

// writes are the words that begin clauses which change a graph or its schema.
var writes = []string{"CREATE", "MERGE", "SET", "DELETE", "DETACH", "REMOVE", "FOREACH", "DROP",
	"LOAD"}

func (p *parser) query() (*ast.Query, error) {
	q := &ast.Query{}
	for {
		s, err := p.single()
		if err != nil {
			return nil, err
		}
		q.Singles = append(q.Singles, s)
		if !p.word("UNION") {
			return q, nil
		}
		q.All = append(q.All, p.word("ALL"))
	}
}

func (p *parser) single() (*ast.Single, error) {
	s := &ast.Single{At: p.here()}
	for {
		c, err := p.clause()
		if err != nil {
			return nil, err
		}
		if c == nil {
			break
		}
		s.Clauses = append(s.Clauses, c)
		if pr, ok := c.(*ast.Project); ok && !pr.With {
			return s, nil
		}
	}
	if len(s.Clauses) == 0 {
		return nil, p.unexpected("MATCH, UNWIND, WITH, CALL or RETURN", clauseWords...)
	}
	return s, nil
}

// clause reads a clause; nil if none begins here.
func (p *parser) clause() (ast.Clause, error) {
	at := p.here()
	switch {
	case p.word("OPTIONAL"):
		if err := p.needWord("MATCH"); err != nil {
			return nil, err
		}
		return p.match(at, true)
	case p.word("MATCH"):
		return p.match(at, false)
	case p.word("UNWIND"):
		return p.unwind(at)
	case p.word("WITH"):
		return p.project(&ast.Project{At: at, With: true})
	case p.word("RETURN"):
		return p.project(&ast.Project{At: at})
	case p.word("CALL"):
		return p.call(at)
	}
	t := p.tok()
	if i := slices.IndexFunc(writes, func(w string) bool { return p.is(w) }); i >= 0 {
		p.at++
		return p.write(&ast.Write{At: at, Word: writes[i]})
	}
	if t.kind == tokName && p.at > 0 && !p.is("UNION") && words.Near(t.text, clauseWords) != "" {
		return nil, p.unexpected("a clause or the end", clauseWords...)
	}
	return nil, nil
}

func (p *parser) match(at ast.At, optional bool) (*ast.Match, error) {
	m := &ast.Match{At: at, Optional: optional}
	var err error
	if m.Patterns, err = p.patterns(); err != nil {
		return nil, err
	}
	m.Where, err = p.where()
	return m, err
}

// where reads WHERE and its condition; nil for none.
func (p *parser) where() (ast.Expr, error) {
	if !p.word("WHERE") {
		return nil, nil
	}
	return p.expr()
}

func (p *parser) unwind(at ast.At) (ast.Clause, error) {
	x, err := p.expr()
	if err != nil {
		return nil, err
	}
	if err := p.needWord("AS"); err != nil {
		return nil, err
	}
	name, err := p.name("a name")
	return &ast.Unwind{At: at, X: x, Name: name}, err
}

func (p *parser) project(c *ast.Project) (ast.Clause, error) {
	c.Distinct = p.word("DISTINCT")
	if p.sign("*") {
		c.Star = true
	} else {
		item, err := p.item()
		if err != nil {
			return nil, err
		}
		c.Items = append(c.Items, item)
	}
	for p.sign(",") {
		item, err := p.item()
		if err != nil {
			return nil, err
		}
		c.Items = append(c.Items, item)
	}
	var err error
	if p.word("ORDER", "BY") {
		if c.OrderBy, err = p.orderBy(); err != nil {
			return nil, err
		}
	}
	if p.word("SKIP") {
		if c.Skip, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if p.word("LIMIT") {
		if c.Limit, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if c.With {
		c.Where, err = p.where()
	}
	return c, err
}

func (p *parser) item() (ast.Item, error) {
	first := p.tok()
	x, err := p.expr()
	if err != nil {
		return ast.Item{}, err
	}
	i := ast.Item{At: ast.At(first.pos), X: x, Name: p.src[first.pos:p.toks[p.at-1].end]}
	if v, ok := x.(*ast.Var); ok {
		i.Name = v.Name
	}
	if p.word("AS") {
		i.Named = true
		i.Name, err = p.name("a name")
	}
	return i, err
}

func (p *parser) orderBy() (keys []ast.Sort, err error) {
	for {
		var k ast.Sort
		if k.X, err = p.expr(); err != nil {
			return nil, err
		}
		switch {
		case p.word("DESC"), p.word("DESCENDING"):
			k.Desc = true
		case p.word("ASC"), p.word("ASCENDING"):
		}
		keys = append(keys, k)
		if !p.sign(",") {
			return keys, nil
		}
	}
}

func (p *parser) call(at ast.At) (ast.Clause, error) {
	c := &ast.CallProc{At: at, Implicit: true, NoYield: true}
	name, err := p.name("the name of a procedure")
	for c.Name = name; err == nil && p.sign("."); c.Name += "." + name {
		name, err = p.name("the name of a procedure")
	}
	if err != nil {
		return nil, err
	}
	if p.sign("(") {
		c.Implicit = false
		if c.Args, err = p.exprs(")"); err != nil {
			return nil, err
		}
	}
	if !p.word("YIELD") {
		return c, nil
	}
	c.NoYield = false
	if c.Star = p.sign("*"); !c.Star && !p.sign("-") {
		if c.Yield, err = p.yields(); err != nil {
			return nil, err
		}
	}
	c.Where, err = p.where()
	return c, err
}

func (p *parser) yields() (out []ast.Yield, err error) {
	for {
		y := ast.Yield{At: p.here()}
		if y.Field, err = p.name("a column of the procedure"); err != nil {
			return nil, err
		}
		y.Name = y.Field
		if p.word("AS") {
			if y.Name, err = p.name("a name"); err != nil {
				return nil, err
			}
		}
		out = append(out, y)
		if !p.sign(",") {
			return out, nil
		}
	}
}

// exprs reads expressions with commas between, and the sign that ends them.
func (p *parser) exprs(end string) (out []ast.Expr, err error) {
	if p.sign(end) {
		return nil, nil
	}
	for {
		x, err := p.expr()
		if err != nil {
			return nil, err
		}
		out = append(out, x)
		if p.sign(",") {
			continue
		}
		return out, p.need(end)
	}
}

// write reads what stands behind CREATE and DELETE, and nothing of the others.
func (p *parser) write(w *ast.Write) (ast.Clause, error) {
	var err error
	switch {
	case w.Word == "CREATE" && p.isSign("("), w.Word == "CREATE" && p.peek(1).text == "=":
		w.Patterns, err = p.patterns()
	case w.Word == "DELETE":
		for {
			x, err := p.expr()
			if err != nil {
				return nil, err
			}
			w.Xs = append(w.Xs, x)
			if !p.sign(",") {
				return w, nil
			}
		}
	default:
		return nil, Refuse(w)
	}
	return w, err
}

// Refuse returns the error of a clause that writes.
func Refuse(w *ast.Write) error {
	return ast.Syntax(w.Pos(), "InvalidClauseComposition",
		"%s changes a graph: the shell reads, %s ingest writes", w.Word, message.Program)
}
