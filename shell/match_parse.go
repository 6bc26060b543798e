package shell

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What a MATCH may be made of.
const (
	matchHopsMost = 4       // of *1..4
	valuesMost    = 1 << 16 // of all conditions and of RETURN
	matchSteps    = 8       // hops of a pattern
)

// matchNode is (a), (a {id: 42}) or (a IN SPLIT train).
type matchNode struct {
	name  string
	ref   *nodeRef
	split string
}

func (n *matchNode) anchored() bool { return n.ref != nil || n.split != "" }

// matchHop is -[r:type*1..2]->. dir is "OUT", "IN" or "BOTH", seen from the node on its left.
type matchHop struct {
	name, edgeType, dir string
	least, most         int
}

// matchExpr is a literal, a variable with a property, or an aggregate of one.
type matchExpr struct {
	text       string // as it was written
	literal    *cell
	name, prop string
	aggregate  string // count, min, max or avg; a name of "*" counts rows
}

// matchCondition is one comparison; IN has several expressions on the right.
type matchCondition struct {
	left  matchExpr
	op    string
	right []matchExpr
}

// matchItem is a column of the result.
type matchItem struct {
	matchExpr
	as string
}

// matchPlace is where a value is wanted at the end of a text, for completion.
type matchPlace struct {
	query    *matchQuery
	inHop    bool // a type of edges, not a value
	inReturn bool
	inOrder  bool
	left     *matchExpr // what the value is compared with
}

// offer adds what may stand at the current token, for completion.
func (p *parser) offer(words ...string) { p.want = append(p.want, words...) }

// matchQuery is a parsed MATCH. where is an OR of ANDs.
type matchQuery struct {
	nodes    []matchNode
	hops     []matchHop
	where    [][]matchCondition
	items    []matchItem
	distinct bool
	order    int // the item to sort by, -1: none
	desc     bool
	limit    int64 // -1: none
}

// refused are words of Cypher and GQL that have no meaning here, by what they begin.
var refused = map[string]string{"OPTIONAL": "OPTIONAL MATCH", "WITH": "WITH", "CREATE": "CREATE",
	"MERGE": "MERGE", "DELETE": "DELETE", "DETACH": "DETACH DELETE", "REMOVE": "REMOVE",
	"UNWIND": "UNWIND", "UNION": "UNION", "CALL": "CALL", "FOREACH": "FOREACH", "SKIP": "SKIP",
	"NOT": "NOT", "XOR": "XOR", "IS": "IS NULL", "STARTS": "STARTS WITH", "ENDS": "ENDS WITH",
	"CONTAINS": "CONTAINS", "EXISTS": "EXISTS", "CASE": "CASE", "SHORTESTPATH": "shortestPath",
	"COLLECT": "collect", "SUM": "sum", "LOAD": "LOAD CSV", "MATCH": "a second MATCH"}

// refuse is the error at a token that begins something that is not part of the language, or nil.
func (p *parser) refuse() error {
	if t := p.tok(); t.kind == tokWord {
		if what := refused[strings.ToUpper(t.text)]; what != "" {
			return p.fail("%s is not part of gdb; see .help match", what)
		}
	}
	return nil
}

// match parses all of a statement behind MATCH.
func (p *parser) match() (*matchQuery, error) {
	q := &matchQuery{order: -1, limit: -1}
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

func (p *parser) pattern(q *matchQuery) error {
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
		q.nodes = append(q.nodes, n)
		if t := p.tok(); t.text == "," {
			return p.fail("a second pattern is not part of gdb; see .help match")
		}
		if !p.hopBegins() {
			p.offer("-[", "<-[")
			break
		}
		if len(q.hops) == matchSteps {
			return p.fail("a pattern has at most %d hops", matchSteps)
		}
		h, err := p.matchHop(q)
		if err != nil {
			return err
		}
		q.hops = append(q.hops, h)
	}
	ends := p.is("WHERE") || p.is("RETURN") // else something else is wrong
	if ends && !q.nodes[0].anchored() && !q.nodes[len(q.nodes)-1].anchored() {
		return &SyntaxError{Src: p.src, Pos: start,
			Msg: "an end of the pattern must be anchored, as in (a {id: 42}) or (a IN SPLIT train)"}
	}
	return nil
}

func (q *matchQuery) hasNode(name string) bool {
	return slices.ContainsFunc(q.nodes, func(n matchNode) bool { return n.name == name })
}

func (q *matchQuery) hasEdge(name string) bool {
	return slices.ContainsFunc(q.hops, func(h matchHop) bool { return h.name == name })
}

// nameTwice is the error of a name that stands for an edge and something else.
func (p *parser) nameTwice() error {
	return p.fail("the name %s stands for an edge and something else", named(p.tok().text))
}

func (p *parser) symbol(s string, what string) error {
	if !p.punct(s) {
		p.offer(s)
		return p.fail("%s wants %q, found %s%s", what, s, found(p.tok()), p.unquoted())
	}
	return nil
}

func (p *parser) matchNode(q *matchQuery) (n matchNode, err error) {
	if err := p.symbol("(", "a node"); err != nil {
		return n, err
	}
	if t := p.tok(); t.kind == tokWord && !strings.EqualFold(t.text, "IN") {
		if q.hasEdge(t.text) {
			return n, p.nameTwice()
		}
		n.name = t.text
		p.next()
	}
	p.offer("{id:")
	if p.tok().text == ":" {
		return n, p.fail("types of nodes are not part of gdb: only edges have types")
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
		n.ref = &ref
		if err := p.symbol("}", "{id: …"); err != nil {
			return n, err
		}
	case p.accept("IN"):
		if !p.accept("SPLIT") {
			return n, p.fail("IN wants SPLIT name, found %s", found(p.tok()))
		}
		if n.split, err = p.text("SPLIT wants a name"); err != nil {
			return n, err
		}
	}
	return n, p.symbol(")", "a node")
}

func (p *parser) hopBegins() bool {
	t := p.tok()
	return t.text == "<" || t.kind == tokWord && strings.HasPrefix(t.text, "-")
}

// dash takes a "-" that belongs to a hop.
func (p *parser) dash() error {
	if t := p.tok(); t.kind != tokWord || t.text != "-" {
		p.offer("-")
		return p.fail("a hop is written -[]->, <-[]- or -[]-, found %s", found(t))
	}
	p.next()
	return nil
}

func (p *parser) matchHop(q *matchQuery) (h matchHop, err error) {
	h = matchHop{dir: "BOTH", least: 1, most: 1}
	if p.punct("<") {
		h.dir = "IN"
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
		h.name = t.text
		p.next()
	}
	if p.offer("*1..2"); p.tok().kind == tokEnd {
		p.place = &matchPlace{inHop: true}
	}
	if p.punct(":") {
		p.slot = clause{word: "VIA", arg: argName}
		if h.edgeType, err = p.text("an edge type is wanted after :"); err != nil {
			return h, err
		}
		p.slot = clause{word: "MATCH", arg: argMatch}
		if p.tok().text == "|" {
			return h, p.fail("alternatives of edge types are not part of gdb; see .help match")
		}
	}
	if p.tok().text == "*" {
		if h.name != "" {
			return h, p.fail("an edge of several hops has no name")
		}
		p.next()
		if h.least, h.most, err = p.hopRange(); err != nil {
			return h, err
		}
	}
	if p.tok().text == "{" {
		return h, p.fail("properties of edges are asked for with WHERE")
	}
	if err := p.symbol("]", "a hop"); err != nil {
		return h, err
	}
	if h.dir != "IN" && p.tok().kind == tokEnd {
		p.offer("->")
	}
	if err := p.dash(); err != nil {
		return h, err
	}
	if p.tok().text == ">" {
		if h.dir == "IN" {
			return h, p.fail("a hop has one direction")
		}
		p.next()
		h.dir = "OUT"
	}
	return h, nil
}

// hopRange parses 1..3, which is one token.
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

func (p *parser) where(q *matchQuery) error {
	and := []matchCondition{}
	for {
		c, err := p.condition(q)
		if err != nil {
			return err
		}
		and = append(and, c)
		switch {
		case p.accept("AND"):
		case p.accept("OR"):
			q.where, and = append(q.where, and), nil
		default:
			q.where = append(q.where, and)
			return nil
		}
	}
}

func (p *parser) condition(q *matchQuery) (c matchCondition, err error) {
	if p.tok().text == "(" {
		return c, p.fail("parentheses in WHERE are not part of gdb: AND binds before OR")
	}
	if c.left, err = p.expr(q, false); err != nil {
		return c, err
	}
	p.left = &c.left
	defer func() { p.left = nil }()
	if p.accept("IN") {
		c.op = "IN"
		if err := p.symbol("[", "IN"); err != nil {
			return c, err
		}
		for {
			e, err := p.expr(q, false)
			if err != nil {
				return c, err
			}
			c.right = append(c.right, e)
			if !p.punct(",") {
				return c, p.symbol("]", "IN")
			}
		}
	}
	if c.op, err = p.comparison(); err != nil {
		return c, err
	}
	e, err := p.expr(q, false)
	c.right = []matchExpr{e}
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
			return "", p.fail("=~ is not part of gdb; see .help match")
		}
		return first, nil
	}
	if err := p.refuse(); err != nil {
		return "", err
	}
	p.offer("=", "<>", "<", "<=", ">", ">=")
	return "", p.fail("a comparison wants =, <>, <, <=, >, >= or IN, found %s", found(p.tok()))
}

// aggregates are the functions of RETURN.
var aggregates = []string{"count", "min", "max", "avg"}

func (p *parser) returns(q *matchQuery) error {
	q.distinct = p.accept("DISTINCT")
	for {
		if len(q.items) == listMost {
			return p.fail("RETURN takes at most %d values", listMost)
		}
		e, err := p.expr(q, true)
		if err != nil {
			return err
		}
		item := matchItem{e, e.text}
		if p.accept("AS") {
			if item.as, err = p.text("AS wants a name"); err != nil {
				return err
			}
		}
		q.items = append(q.items, item)
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
		q.limit = n
		return err
	}
	return nil
}

func (p *parser) orderBy(q *matchQuery) error {
	if !p.accept("BY") {
		return p.fail("ORDER wants BY, found %s", found(p.tok()))
	}
	t := p.tok()
	if t.kind == tokEnd {
		p.place = &matchPlace{query: q, inReturn: true, inOrder: true}
	}
	q.order = slices.IndexFunc(q.items, func(i matchItem) bool { return i.as == t.text })
	if t.kind == tokWord && q.order >= 0 {
		p.next()
	} else {
		e, err := p.expr(q, true)
		if err != nil {
			return err
		}
		q.order = slices.IndexFunc(q.items, func(i matchItem) bool { return i.text == e.text })
		if q.order < 0 {
			return &SyntaxError{Src: p.src, Pos: t.pos, Msg: "ORDER BY wants an item of RETURN"}
		}
	}
	if p.accept("DESC") {
		q.desc = true
	} else {
		p.accept("ASC")
	}
	if p.tok().text == "," {
		return p.fail("a second item of ORDER BY is not part of gdb")
	}
	return nil
}

// expr parses a literal, a variable, a property or, in RETURN, an aggregate.
func (p *parser) expr(q *matchQuery, inReturn bool) (e matchExpr, err error) {
	if p.values++; p.values > valuesMost {
		return e, p.fail("a MATCH takes at most %d values", valuesMost)
	}
	t := p.tok()
	e.text = t.text
	if t.kind == tokEnd && p.place == nil {
		p.place = &matchPlace{query: q, inReturn: inReturn, left: p.left}
	}
	if t.kind == tokString {
		p.next()
		e.literal = &cell{kind: cellString, s: t.text}
		return e, nil
	}
	if t.kind != tokWord {
		return e, p.fail("expected a value such as a.id, 42 or 'text', found %s", found(t))
	}
	if v, ok := number(t.text); ok {
		p.next()
		e.literal = &v
		return e, nil
	}
	name, _, _ := strings.Cut(t.text, ".")
	call := p.toks[1].text == "(" && p.toks[1].kind == tokPunct
	if call && (slices.Contains(aggregates, strings.ToLower(t.text)) ||
		!q.hasNode(name) && !q.hasEdge(name)) {
		return p.aggregate(q, inReturn)
	}
	return p.property(q)
}

func (p *parser) aggregate(q *matchQuery, inReturn bool) (e matchExpr, err error) {
	name := strings.ToLower(p.tok().text)
	if !slices.Contains(aggregates, name) {
		if err := p.refuse(); err != nil {
			return e, err
		}
		return e, p.fail("no function %s%s; there are %s", named(p.tok().text),
			near(name, aggregates), strings.Join(aggregates, ", "))
	}
	if !inReturn {
		return e, p.fail("aggregates stand in RETURN only")
	}
	p.next()
	p.next()
	if t := p.tok(); strings.EqualFold(t.text, "DISTINCT") {
		return e, p.fail("%s(DISTINCT …) is not part of gdb; RETURN DISTINCT is", name)
	}
	if name == "count" && p.punct("*") {
		e = matchExpr{name: "*", text: "*"}
	} else if e, err = p.expr(q, false); err != nil {
		return e, err
	}
	e.aggregate, e.text = name, name+"("+e.text+")"
	return e, p.symbol(")", name)
}

// featureProp is the property that is a column of the features: f0, f1, ….
var featureProp = regexp.MustCompile(`^f(0|[1-9][0-9]{0,8})$`)

func (p *parser) property(q *matchQuery) (e matchExpr, err error) {
	t := p.tok()
	e = matchExpr{text: t.text}
	e.name, e.prop, _ = strings.Cut(t.text, ".")
	var names []string
	for _, n := range q.nodes {
		names = append(names, n.name)
	}
	isNode, isEdge := q.hasNode(e.name), q.hasEdge(e.name)
	for _, h := range q.hops {
		names = append(names, h.name)
	}
	switch {
	case e.name == "" || !isNode && !isEdge:
		if err := p.refuse(); err != nil {
			return e, err
		}
		names = slices.DeleteFunc(names, func(s string) bool { return s == "" })
		return e, p.fail("no variable %s%s; the pattern has %s", named(e.name), near(e.name, names),
			truncated(strings.Join(names, ", "), namedMost))
	case isNode && e.prop == "":
		e.prop = "id"
	case isNode && e.prop != "id" && e.prop != "label" && !featureProp.MatchString(e.prop):
		return e, p.fail("a node has id, label and features f0, f1, …, not %s", named(e.prop))
	case isEdge && e.prop == "":
		e.prop = "type"
	case isEdge && !slices.Contains([]string{"type", "weight", "time"}, e.prop):
		return e, p.fail("an edge has type, weight and time, not %s", named(e.prop))
	}
	p.next()
	return e, nil
}

// number reads an integer or a decimal number.
func number(s string) (cell, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return cell{kind: cellInt, n: n}, true
	}
	if len(s) > 0 && (s[0] >= '0' && s[0] <= '9' || s[0] == '-') {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return cell{kind: cellFloat, f: f}, true
		}
	}
	return cell{}, false
}
