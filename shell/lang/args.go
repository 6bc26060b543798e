package lang

import (
	"slices"
	"strconv"
	"strings"

	"gdb/internal/mem"
	"gdb/shell/words"
)

func (p *parser) value(c Clause) (v Value, err error) {
	p.slot = c
	defer func() {
		if err == nil {
			p.slot = Clause{}
		}
	}()
	switch c.Arg {
	case ArgInt:
		v.N, err = p.bounded(c)
	case ArgFanout:
		v.List, err = p.fanout()
	case ArgName:
		v.Text, err = p.name(c)
	case ArgWords:
		v.Words, err = p.words(c)
	case ArgSizes:
		v.Sizes, err = p.sizes(c.Word)
	case ArgRun:
		v.Text, err = p.text(c.Word + " wants the name of a run")
	case ArgFile:
		v.Text, err = p.text(c.Word + " wants a file of the store, such as topology/in.csc")
	case ArgPath:
		v.Text, err = p.text(c.Word + " wants a file name in quotes, such as 'rows.csv'")
	case ArgNodes:
		v.Nodes, err = p.nodes()
	case ArgMatch:
		v.Match, err = p.match()
	case ArgNode:
		var ref NodeRef
		ref, err = p.node(c.Word + " wants a node id")
		v.Nodes.IDs = OneNode(ref)
	case ArgEdge:
		v.Edge, err = p.edge(c.Word)
	case ArgRange:
		v.Lo, v.Hi, err = p.colRange(c.Word)
	case ArgNone:
	}
	return v, err
}

// bounded parses a number and checks the bounds of its clause.
func (p *parser) bounded(c Clause) (int64, error) {
	n, err := p.integer(c.Word)
	switch {
	case err != nil:
		return 0, err
	case c.most > 0 && (n < c.least || n > c.most):
		return 0, p.failBack("%s wants %d to %d", c.Word, c.least, c.most)
	case n < c.least:
		return 0, p.failBack("%s wants a number from %d on", c.Word, c.least)
	}
	return n, nil
}

func (p *parser) integer(word string) (int64, error) {
	n, err := strconv.ParseInt(p.tok().text, 10, 63)
	if err != nil || p.tok().kind != tokWord || n < 0 {
		return 0, p.fail("%s wants a number, found %s", word, found(p.tok()))
	}
	p.next()
	return n, nil
}

func (p *parser) fanout() ([]int, error) {
	var out []int
	for {
		if len(out) == hopsMost {
			return nil, p.fail("FANOUT has numbers for at most %d hops", hopsMost)
		}
		if p.accept("all") {
			out = append(out, -1)
		} else {
			n, err := p.integer("FANOUT")
			if err != nil {
				return nil, p.fail("FANOUT wants one number a hop, or all, as in 10,5; found %s",
					found(p.tok()))
			}
			if n < 1 || n > 1<<20 {
				return nil, p.failBack("a fanout is 1 to %d, or all", 1<<20)
			}
			out = append(out, int(n))
		}
		if !p.punct(",") {
			return out, nil
		}
	}
}

func (p *parser) name(c Clause) (string, error) {
	if c.Choices == nil {
		return p.text(c.Word + " wants a name")
	}
	for _, w := range c.Choices {
		if p.accept(w) {
			return w, nil
		}
	}
	return "", p.fail("%s wants %s%s", c.Word, strings.Join(c.Choices, ", "),
		words.Near(p.tok().text, c.Choices))
}

// words parses a list of words that must be among the choices of a clause.
func (p *parser) words(c Clause) (out []string, err error) {
	for {
		if len(out) == listMost {
			return nil, p.fail("%s takes at most %d", c.Word, listMost)
		}
		w, err := p.name(c)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, w) {
			return nil, p.failBack("%s stands twice", w)
		}
		if out = append(out, w); !p.punct(",") {
			return out, nil
		}
	}
}

// listMost bounds the length of lists of words and sizes.
const listMost = 256

// sizes parses a list of sizes such as 64MiB or 10%.
func (p *parser) sizes(word string) (out []CacheSize, err error) {
	for {
		if len(out) == listMost {
			return nil, p.fail("%s takes at most %d", word, listMost)
		}
		t := p.tok()
		n, err := mem.ParseSize(t.text)
		percent, wrong := strconv.ParseFloat(t.text, 64)
		if t.kind != tokWord || err != nil {
			return nil, p.fail("%s wants sizes such as 64MiB or 10%%, found %s", word, found(t))
		}
		p.next()
		one := CacheSize{Bytes: n}
		if p.punct("%") {
			if wrong != nil || !(percent > 0 && percent <= 1000) {
				e := p.failBack("%s wants percents from above 0 to 1000", word)
				if n == 0 {
					e.Pos = t.pos // it is no size, with or without its sign
				}
				return nil, e
			}
			one = CacheSize{Percent: percent}
		} else if n == 0 {
			return nil, p.failBack("a cache of no bytes holds nothing: that is the policy none")
		}
		if out = append(out, one); !p.punct(",") {
			return out, nil
		}
	}
}

func (p *parser) text(what string) (string, error) {
	t := p.tok()
	if t.kind != tokWord && t.kind != tokString {
		return "", p.fail("%s, found %s", what, found(t))
	}
	p.next()
	return t.text, nil
}

func (p *parser) colRange(word string) (lo, hi int, err error) {
	wrong := func() error { return p.fail("%s wants a range such as 0:16", word) }
	a, err := p.integer(word)
	if err != nil || !p.punct(":") {
		return 0, 0, wrong()
	}
	b, err := p.integer(word)
	if err != nil {
		return 0, 0, wrong()
	}
	if a >= b {
		return 0, 0, p.failBack("%s wants a range that is not empty, such as 0:16", word)
	}
	return int(a), int(b), nil
}

// nodes parses ids, RANDOM n or SPLIT name.
func (p *parser) nodes() (s NodeSet, err error) {
	switch {
	case p.accept("RANDOM"):
		n, err := p.integer("RANDOM")
		s.Random = int(n)
		if err == nil && (n < 1 || n > 1<<24) {
			err = p.failBack("RANDOM wants 1 to %d nodes", 1<<24)
		}
		return s, err
	case p.accept("SPLIT"):
		s.Split, err = p.text("SPLIT wants a name")
		return s, err
	}
	s.IDs = NodeList{src: p.src, from: p.tok().pos}
	for {
		if _, err := p.node("expected a node id, RANDOM n or SPLIT name"); err != nil {
			return s, err
		}
		s.IDs.Count++
		if !p.punct(",") {
			return s, nil
		}
	}
}

func (p *parser) node(what string) (NodeRef, error) {
	if p.punct("#") {
		n, err := strconv.ParseUint(p.tok().text, 10, 32)
		if err != nil {
			return NodeRef{}, p.fail("# wants an internal node id, found %s", found(p.tok()))
		}
		p.next()
		return NodeRef{Internal: true, ID: n}, nil
	}
	s, err := p.text(what)
	return NodeRef{External: s}, err
}

// edge parses "head, relation, tail" or "head, tail", where ? may stand for an end.
func (p *parser) edge(word string) (e EdgeRef, err error) {
	if e.Head, err = p.end(word); err != nil {
		return e, err
	}
	if !p.punct(",") {
		return e, p.fail("%s wants head, relation, tail, as in a, knows, b, or head, tail; "+
			"found %s", word, found(p.tok()))
	}
	middle := p.tok()
	second, err := p.end(word)
	if err != nil {
		return e, err
	}
	if e.Tail = second; e.Head == nil && second == nil || !p.punct(",") {
		return e, p.oneAsked(&e, word)
	}
	if middle.kind != tokWord && middle.kind != tokString {
		return e, p.failBack("%s wants the name of a relation between the ends", word)
	}
	e.Relation = middle.text
	if e.Tail, err = p.end(word); err != nil {
		return e, err
	}
	return e, p.oneAsked(&e, word)
}

// oneAsked returns an error if both ends of an edge are asked for.
func (p *parser) oneAsked(e *EdgeRef, word string) error {
	if e.Head == nil && e.Tail == nil {
		return p.failBack("%s wants an end that is known: one may be ?, not both", word)
	}
	return nil
}

// end parses a node, or ?, for which it returns nil.
func (p *parser) end(word string) (*NodeRef, error) {
	if p.punct("?") {
		return nil, nil
	}
	ref, err := p.node(word + " wants a node id or ?")
	return &ref, err
}
