package lang

import (
	"slices"
	"strconv"
	"strings"

	"gdb/shell/words"
)

// offer adds words that may stand at the current token, for completion.
func (p *parser) offer(words ...string) { p.want = append(p.want, words...) }

// refused maps words that begin something of Cypher or GQL that has no meaning here to the name of
// that thing.
var refused = map[string]string{"OPTIONAL": "OPTIONAL MATCH", "WITH": "WITH", "CREATE": "CREATE",
	"MERGE": "MERGE", "DELETE": "DELETE", "DETACH": "DETACH DELETE", "REMOVE": "REMOVE",
	"UNWIND": "UNWIND", "UNION": "UNION", "CALL": "CALL", "FOREACH": "FOREACH", "SKIP": "SKIP",
	"NOT": "NOT", "XOR": "XOR", "IS": "IS NULL", "STARTS": "STARTS WITH", "ENDS": "ENDS WITH",
	"CONTAINS": "CONTAINS", "EXISTS": "EXISTS", "CASE": "CASE", "SHORTESTPATH": "shortestPath",
	"COLLECT": "collect", "SUM": "sum", "LOAD": "LOAD CSV", "SET": "SET", "MATCH": "a second MATCH"}

// refuse returns an error if the current token begins something that is not part of the language,
// and nil otherwise.
func (p *parser) refuse() error {
	if t := p.tok(); t.kind == tokWord {
		if what := refused[strings.ToUpper(t.text)]; what != "" {
			return p.foreign("%s is not part of gdb; see .help match", what)
		}
	}
	return nil
}

// match parses everything after MATCH.
func (p *parser) match() (*MatchQuery, error) {
	q := &MatchQuery{Order: -1, Limit: -1}
	if err := p.pattern(q); err != nil {
		return nil, err
	}
	if p.accept("WHERE") {
		if err := p.where(q); err != nil {
			return nil, err
		}
	}
	if !p.accept("RETURN") {
		if err := p.refuse(); err != nil {
			return nil, err
		}
		return nil, p.fail("MATCH needs RETURN, found %s", found(p.tok()))
	}
	if err := p.returns(q); err != nil {
		return nil, err
	}
	return q, p.refuse()
}

func (p *parser) pattern(q *MatchQuery) error {
	if p.tok().kind == tokWord {
		if err := p.refuse(); err != nil {
			return err
		}
		return p.fail("MATCH wants a node such as (a {id: 42}); a path has no name in gdb")
	}
	start := p.tok().pos
	for {
		n, err := p.matchNode(q)
		if err != nil {
			return err
		}
		q.Nodes = append(q.Nodes, n)
		if t := p.tok(); t.text == "," {
			return p.foreign("a second pattern is not part of gdb; see .help match")
		}
		if !p.hopBegins() {
			p.offer("-[", "<-[")
			break
		}
		if len(q.Hops) == MatchSteps {
			return p.fail("a pattern has at most %d hops", MatchSteps)
		}
		h, err := p.matchHop(q)
		if err != nil {
			return err
		}
		q.Hops = append(q.Hops, h)
	}
	ends := p.is("WHERE") || p.is("RETURN") // else something else is wrong
	if ends && !q.Nodes[0].Anchored() && !q.Nodes[len(q.Nodes)-1].Anchored() {
		return &SyntaxError{Src: p.src, Pos: start,
			Msg: "an end of the pattern must be anchored, as in (a {id: 42}) or (a IN SPLIT train)"}
	}
	return nil
}

func (q *MatchQuery) hasNode(name string) bool {
	return slices.ContainsFunc(q.Nodes, func(n MatchNode) bool { return n.Name == name })
}

func (q *MatchQuery) hasEdge(name string) bool {
	return slices.ContainsFunc(q.Hops, func(h MatchHop) bool { return h.Name == name })
}

// nameTwice returns the error of a name that stands for an edge and for something else.
func (p *parser) nameTwice() error {
	return p.fail("the name %s stands for an edge and something else", words.Quoted(p.tok().text))
}

func (p *parser) symbol(s string, what string) error {
	if !p.punct(s) {
		p.offer(s)
		return p.fail("%s wants %q, found %s%s", what, s, found(p.tok()), p.unquoted())
	}
	return nil
}

func (p *parser) matchNode(q *MatchQuery) (n MatchNode, err error) {
	if err := p.symbol("(", "a node"); err != nil {
		return n, err
	}
	if t := p.tok(); t.kind == tokWord && !strings.EqualFold(t.text, "IN") {
		if q.hasEdge(t.text) {
			return n, p.nameTwice()
		}
		n.Name = t.text
		p.next()
	}
	p.offer("{id:")
	if p.tok().text == ":" {
		return n, p.foreign("types of nodes are not part of gdb: only edges have types")
	}
	switch {
	case p.punct("{"):
		if !p.accept("id") {
			return n, p.fail("a node is found by its id, as in {id: 42}; for others use WHERE")
		}
		if err := p.symbol(":", "id"); err != nil {
			return n, err
		}
		ref, err := p.node("id wants a node id")
		if err != nil {
			return n, err
		}
		n.Ref = &ref
		if err := p.symbol("}", "{id: …"); err != nil {
			return n, err
		}
	case p.accept("IN"):
		if !p.accept("SPLIT") {
			return n, p.fail("IN wants SPLIT name, found %s", found(p.tok()))
		}
		if n.Split, err = p.text("SPLIT wants a name"); err != nil {
			return n, err
		}
	}
	return n, p.symbol(")", "a node")
}

func (p *parser) hopBegins() bool {
	t := p.tok()
	return t.text == "<" || t.kind == tokWord && strings.HasPrefix(t.text, "-")
}

// dash takes the "-" of a hop.
func (p *parser) dash() error {
	if t := p.tok(); t.kind != tokWord || t.text != "-" {
		p.offer("-")
		return p.fail("a hop is written -[]->, <-[]- or -[]-, found %s", found(t))
	}
	p.next()
	return nil
}

func (p *parser) matchHop(q *MatchQuery) (h MatchHop, err error) {
	h = MatchHop{Dir: "BOTH", Least: 1, Most: 1}
	if p.punct("<") {
		h.Dir = "IN"
	}
	if err := p.dash(); err != nil {
		return h, err
	}
	if err := p.symbol("[", "a hop"); err != nil {
		return h, err
	}
	if t := p.tok(); t.kind == tokWord {
		if q.hasNode(t.text) || q.hasEdge(t.text) {
			return h, p.nameTwice()
		}
		h.Name = t.text
		p.next()
	}
	if p.offer("*1..2"); p.tok().kind == tokEnd {
		p.place = &MatchPlace{InHop: true}
	}
	if p.punct(":") {
		p.slot = Clause{Word: "VIA", Arg: ArgName}
		if h.EdgeType, err = p.text("an edge type is wanted after :"); err != nil {
			return h, err
		}
		p.slot = Clause{Word: "MATCH", Arg: ArgMatch}
		if p.tok().text == "|" {
			return h, p.foreign("alternatives of edge types are not part of gdb; see .help match")
		}
	}
	if p.tok().text == "*" {
		if h.Name != "" {
			return h, p.fail("an edge of several hops has no name")
		}
		p.next()
		if h.Least, h.Most, err = p.hopRange(); err != nil {
			return h, err
		}
	}
	if p.tok().text == "{" {
		return h, p.fail("properties of edges are asked for with WHERE")
	}
	if err := p.symbol("]", "a hop"); err != nil {
		return h, err
	}
	if h.Dir != "IN" && p.tok().kind == tokEnd {
		p.offer("->")
	}
	if err := p.dash(); err != nil {
		return h, err
	}
	if p.tok().text == ">" {
		if h.Dir == "IN" {
			return h, p.fail("a hop has one direction")
		}
		p.next()
		h.Dir = "OUT"
	}
	return h, nil
}

// hopRange parses a range such as 1..3, which is one token.
func (p *parser) hopRange() (least, most int, err error) {
	lo, hi, ok := strings.Cut(p.tok().text, "..")
	least, errLo := strconv.Atoi(lo)
	most, errHi := strconv.Atoi(hi)
	if !ok || errLo != nil || errHi != nil || least < 1 || most < least || most > matchHopsMost {
		return 0, 0, p.fail("* wants a range of hops from 1..1 to 1..%d", matchHopsMost)
	}
	p.next()
	return least, most, nil
}

func (p *parser) where(q *MatchQuery) error {
	and := []MatchCondition{}
	for {
		c, err := p.condition(q)
		if err != nil {
			return err
		}
		and = append(and, c)
		switch {
		case p.accept("AND"):
		case p.accept("OR"):
			q.Where, and = append(q.Where, and), nil
		default:
			q.Where = append(q.Where, and)
			return nil
		}
	}
}

func (p *parser) condition(q *MatchQuery) (c MatchCondition, err error) {
	if p.tok().text == "(" {
		return c, p.foreign("parentheses in WHERE are not part of gdb: AND binds before OR")
	}
	if c.Left, err = p.expr(q, false); err != nil {
		return c, err
	}
	p.left = &c.Left
	defer func() { p.left = nil }()
	if p.accept("IN") {
		c.Op = "IN"
		if err := p.symbol("[", "IN"); err != nil {
			return c, err
		}
		for {
			e, err := p.expr(q, false)
			if err != nil {
				return c, err
			}
			c.Right = append(c.Right, e)
			if !p.punct(",") {
				return c, p.symbol("]", "IN")
			}
		}
	}
	if c.Op, err = p.comparison(); err != nil {
		return c, err
	}
	e, err := p.expr(q, false)
	c.Right = []MatchExpr{e}
	return c, err
}

func (p *parser) comparison() (string, error) {
	for _, first := range []string{"=", "<", ">"} {
		if !p.punct(first) {
			continue
		}
		switch {
		case first != "=" && p.punct("="):
			return first + "=", nil
		case first == "<" && p.punct(">"):
			return "<>", nil
		case first == "=" && p.tok().text == "~":
			return "", p.foreign("=~ is not part of gdb; see .help match")
		}
		return first, nil
	}
	if err := p.refuse(); err != nil {
		return "", err
	}
	p.offer("=", "<>", "<", "<=", ">", ">=")
	return "", p.fail("a comparison wants =, <>, <, <=, >, >= or IN, found %s", found(p.tok()))
}

// Aggregates lists the functions of RETURN.
var Aggregates = []string{"count", "min", "max", "avg"}

func (p *parser) returns(q *MatchQuery) error {
	q.Distinct = p.accept("DISTINCT")
	for {
		if len(q.Items) == listMost {
			return p.fail("RETURN takes at most %d values", listMost)
		}
		e, err := p.expr(q, true)
		if err != nil {
			return err
		}
		item := MatchItem{e, e.Text}
		if p.accept("AS") {
			if item.As, err = p.text("AS wants a name"); err != nil {
				return err
			}
		}
		q.Items = append(q.Items, item)
		if !p.punct(",") {
			break
		}
	}
	if p.accept("ORDER") {
		if err := p.orderBy(q); err != nil {
			return err
		}
	}
	if p.accept("LIMIT") {
		n, err := p.integer("LIMIT")
		q.Limit = n
		return err
	}
	return nil
}

func (p *parser) orderBy(q *MatchQuery) error {
	if !p.accept("BY") {
		return p.fail("ORDER wants BY, found %s", found(p.tok()))
	}
	t := p.tok()
	if t.kind == tokEnd {
		p.place = &MatchPlace{Query: q, InReturn: true, InOrder: true}
	}
	q.Order = slices.IndexFunc(q.Items, func(i MatchItem) bool { return i.As == t.text })
	if t.kind == tokWord && q.Order >= 0 {
		p.next()
	} else {
		e, err := p.expr(q, true)
		if err != nil {
			return err
		}
		q.Order = slices.IndexFunc(q.Items, func(i MatchItem) bool { return i.Text == e.Text })
		if q.Order < 0 {
			return &SyntaxError{Src: p.src, Pos: t.pos, Msg: "ORDER BY wants an item of RETURN"}
		}
	}
	if p.accept("DESC") {
		q.Desc = true
	} else {
		p.accept("ASC")
	}
	if p.tok().text == "," {
		return p.foreign("a second item of ORDER BY is not part of gdb")
	}
	return nil
}

// expr parses a literal, a variable, a property or, in RETURN, an aggregate.
func (p *parser) expr(q *MatchQuery, inReturn bool) (e MatchExpr, err error) {
	if p.values++; p.values > valuesMost {
		return e, p.fail("a MATCH takes at most %d values", valuesMost)
	}
	t := p.tok()
	e.Text = t.text
	if t.kind == tokEnd && p.place == nil {
		p.place = &MatchPlace{Query: q, InReturn: inReturn, Left: p.left}
	}
	if t.kind == tokString {
		p.next()
		e.Literal = &words.Cell{Kind: words.String, Text: t.text}
		return e, nil
	}
	if t.kind != tokWord {
		return e, p.fail("expected a value such as a.id, 42 or 'text', found %s", found(t))
	}
	if v, ok := words.ParseNumber(t.text); ok {
		p.next()
		e.Literal = &v
		return e, nil
	}
	name, _, _ := strings.Cut(t.text, ".")
	call := p.toks[1].text == "(" && p.toks[1].kind == tokPunct
	if call && (slices.Contains(Aggregates, strings.ToLower(t.text)) ||
		!q.hasNode(name) && !q.hasEdge(name)) {
		return p.aggregate(q, inReturn)
	}
	return p.property(q)
}

func (p *parser) aggregate(q *MatchQuery, inReturn bool) (e MatchExpr, err error) {
	name := strings.ToLower(p.tok().text)
	if !slices.Contains(Aggregates, name) {
		if err := p.refuse(); err != nil {
			return e, err
		}
		return e, p.fail("no function %s%s; there are %s", words.Quoted(p.tok().text),
			words.Near(name, Aggregates), strings.Join(Aggregates, ", "))
	}
	if !inReturn {
		return e, p.fail("aggregates stand in RETURN only")
	}
	p.next()
	p.next()
	if t := p.tok(); strings.EqualFold(t.text, "DISTINCT") {
		return e, p.foreign("%s(DISTINCT …) is not part of gdb; RETURN DISTINCT is", name)
	}
	if name == "count" && p.punct("*") {
		e = MatchExpr{Name: "*", Text: "*"}
	} else if e, err = p.expr(q, false); err != nil {
		return e, err
	}
	e.Aggregate, e.Text = name, name+"("+e.Text+")"
	return e, p.symbol(")", name)
}

func (p *parser) property(q *MatchQuery) (e MatchExpr, err error) {
	t := p.tok()
	e = MatchExpr{Text: t.text}
	e.Name, e.Prop, _ = strings.Cut(t.text, ".")
	quoted := e.Prop == "" && strings.HasSuffix(t.text, ".") && p.toks[1].kind == tokString
	if quoted { // such as a.'petal length'
		e.Prop = p.toks[1].text
		e.Text += e.Prop
	}
	var names []string
	for _, n := range q.Nodes {
		names = append(names, n.Name)
	}
	isNode, isEdge := q.hasNode(e.Name), q.hasEdge(e.Name)
	for _, h := range q.Hops {
		names = append(names, h.Name)
	}
	switch {
	case e.Name == "" || !isNode && !isEdge:
		if err := p.refuse(); err != nil {
			return e, err
		}
		names = slices.DeleteFunc(names, func(s string) bool { return s == "" })
		return e, p.fail("no variable %s%s; the pattern has %s", words.Quoted(e.Name),
			words.Near(e.Name, names),
			words.Truncated(strings.Join(names, ", "), words.QuotedMost))
	case isNode && e.Prop == "":
		e.Prop = "id"
	case isEdge && e.Prop == "":
		e.Prop = "type"
	case isEdge && !slices.Contains([]string{"type", "weight", "time"}, e.Prop):
		return e, p.fail("an edge has type, weight and time, not %s", words.Quoted(e.Prop))
	}
	if e.OfEdge = isEdge; quoted {
		p.next()
	}
	p.next()
	return e, nil
}
