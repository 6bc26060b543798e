package engine

import (
	"slices"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/vector"
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

// identityOf returns the identity of an entry of the list of owner: its place, or its code if lists
// are not in memory.
func (r *rel) identityOf(entry, owner, other uint32, undirected bool) vector.Edge {
	id := vector.Edge{From: owner, To: other}
	var back bool
	if l := r.lists; l == nil {
		id.Type, id.Number, back = r.outline.Decode(entry)
	} else {
		id.Type = l.TypeOf(entry)
		id.Number, back = l.NumberOf(entry)
	}
	if r.side == ast.In || back {
		id.From, id.To = id.To, id.From
	}
	if undirected && id.From > id.To {
		id.From, id.To = id.To, id.From
	}
	return id
}
