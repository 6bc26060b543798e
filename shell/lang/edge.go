package lang

// EdgeRef is an edge by its ends and its relation. An end that is asked for is nil; at most one is.
type EdgeRef struct {
	Head, Tail *NodeRef
	Relation   string // "" if none was named
}

// Asks reports whether an end is asked for.
func (e *EdgeRef) Asks() bool { return e.Head == nil || e.Tail == nil }

// String returns the edge as it was written.
func (e *EdgeRef) String() string {
	text := endText(e.Head) + ", "
	if e.Relation != "" {
		text += Literal(e.Relation) + ", "
	}
	return text + endText(e.Tail)
}

func endText(end *NodeRef) string {
	switch {
	case end == nil:
		return "?"
	case end.Internal:
		return end.String()
	}
	return Literal(end.External)
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
	if !p.punct(",") {
		e.Tail = second
		return e, p.oneAsked(&e, word)
	}
	if middle.Kind != TokWord && middle.Kind != tokString {
		return e, p.failBack("%s wants the name of a relation between the ends", word)
	}
	e.Relation = middle.Text
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
