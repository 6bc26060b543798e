package engine

import (
	"slices"

	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// batchRows is how many rows operators hand on at once, unless they read lists.
const batchRows = 2048

// batch is rows of matches: the nodes and entries that are still wanted of each, and how often each
// counts.
type batch struct {
	p     *pattern
	src   Source
	n     int
	nodes [][]uint32 // by number of the node; nil where it is not there
	ents  [][]uint32 // entries of lists, by number of the relationship
	times []int64
	// cols and keys are the columns of a projection and the keys of its ORDER BY, if there is one.
	cols, keys []*vector.Vector
	// in holds rows of the clauses before, and row the number of each match's own in it. Both are
	// nil if the pattern begins a statement.
	in  []*eval.Scope
	row []uint32
}

// Len returns the number of rows.
func (b *batch) Len() int { return b.n }

// Vector returns a node, a relationship, or a variable of the clauses before.
func (b *batch) Vector(name string) *vector.Vector {
	i, ok := b.p.byName[name]
	if r, is := b.p.relByName[name]; is {
		return b.edges(r)
	}
	if !ok && b.row != nil {
		return b.given(name)
	}
	if !ok || b.nodes[i] == nil {
		return nil
	}
	kind := vector.Node
	if b.p.shortest != nil && i == pathLength {
		kind = vector.Path
	}
	return &vector.Vector{Kind: kind, Nodes: b.nodes[i][:b.n], G: b.src}
}

// edges returns a relationship; nil if it is only in scopes, as where it is null in a row.
func (b *batch) edges(i int) *vector.Vector {
	if b.ents[i] == nil || slices.Contains(b.ents[i][:b.n], noEntry) {
		return nil
	}
	out := &vector.Vector{Kind: vector.Rel, Edges: make([]vector.Edge, b.n), G: b.src,
		Rel: b.src.Rel}
	for row := range out.Edges {
		out.Edges[row] = b.identity(i, row)
	}
	return out
}

// Scope returns the variables of a row that are still kept.
func (b *batch) Scope(row int) *eval.Scope {
	var s *eval.Scope
	if b.row != nil {
		s = b.in[b.row[row]]
	}
	for i, n := range b.p.nodes {
		switch {
		case b.nodes[i] == nil || n.bound:
		case b.p.shortest != nil && i == pathLength:
			s = s.With(n.name, b.Vector(n.name).At(row))
		case b.nodes[i][row] == vector.NoNode:
			s = s.With(n.name, nil)
		default:
			s = s.With(n.name, value.Node{ID: int64(b.nodes[i][row]), G: b.src})
		}
	}
	for i, r := range b.p.rels {
		switch {
		case b.ents[i] == nil:
		case b.ents[i][row] == noEntry:
			s = s.With(r.name, nil)
		default:
			s = s.With(r.name, b.rel(i, row))
		}
	}
	return s
}

// rel returns a relationship of a row.
func (b *batch) rel(i, row int) value.Rel {
	return b.src.Rel(b.identity(i, row))
}

// identity returns what tells a relationship of a row from others.
func (b *batch) identity(i, row int) vector.Edge {
	r := b.p.rels[i]
	return r.identityOf(b.ents[i][row], b.nodes[r.owner][row], b.nodes[r.other()][row],
		b.src.Undirected())
}
