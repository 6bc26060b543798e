package engine

import (
	"slices"

	"gdb/shell/cypher/ast"
)

// Two variables of a MATCH are never the same relationship. What follows tells for which of them
// this must be looked at.

// mayEqual reports whether two relationships of a pattern may be the same.
func (p *pattern) mayEqual(a, b *rel, undirected bool) bool {
	if a == b || a.clause != b.clause || !overlap(a.types, b.types) {
		return false
	}
	if !p.distinct(a.from, b.from) && !p.distinct(a.to, b.to) {
		return true
	}
	return (a.undirected || b.undirected || undirected) && !p.distinct(a.from, b.to) &&
		!p.distinct(a.to, b.from)
}

// overlap reports whether an edge may have a type of both; no types are all types.
func overlap(a, b []string) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(t string) bool {
		return slices.Contains(b, t)
	})
}

// within reports whether all edges of types a are of types b.
func within(a, b []string) bool {
	return len(b) == 0 || len(a) > 0 && !slices.ContainsFunc(a, func(t string) bool {
		return !slices.Contains(b, t)
	})
}

// distinct reports whether two nodes of a pattern are never the same.
func (p *pattern) distinct(a, b int) bool {
	if a == b {
		return false
	}
	if p.nodes[a].set.Disjoint(p.nodes[b].set) {
		return true
	}
	for _, r := range p.rels {
		if (r.from == a && r.to == b || r.from == b && r.to == a) && r.loopless() {
			return true
		}
	}
	return slices.ContainsFunc(p.cross, func(c *condition) bool {
		return c.unequal && slices.Contains(c.nodes, a) && slices.Contains(c.nodes, b)
	})
}

// loopless reports whether no edge of the relationship joins a node with itself.
func (r *rel) loopless() bool {
	return r.outline != nil && !r.outline.Loops
}

// identity is what tells relationships apart.
type identity struct {
	from, to uint32
	typ      uint16
	number   uint32
}

// identityOf returns the identity of an entry of the list of owner: its place, or its code if lists
// are not in memory.
func (r *rel) identityOf(entry, owner, other uint32, undirected bool) identity {
	id := identity{from: owner, to: other}
	var back bool
	if l := r.lists; l == nil {
		id.typ, id.number, back = r.outline.Decode(entry)
	} else {
		id.typ = l.TypeOf(entry)
		id.number, back = l.NumberOf(entry)
	}
	if r.side == ast.In || back {
		id.from, id.to = id.to, id.from
	}
	if undirected && id.from > id.to {
		id.from, id.to = id.to, id.from
	}
	return id
}
