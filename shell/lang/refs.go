package lang

import (
	"fmt"
	"iter"

	"gdb/shell/words"
)

// NodeSet is a parsed set of nodes: ids, a random draw, or a split.
type NodeSet struct {
	IDs    NodeList
	Random int
	Split  string
}

// NodeRef is an external id, or a node id if Internal is set.
type NodeRef struct {
	External string
	Internal bool
	ID       uint64
}

// String returns the reference as it was written.
func (r NodeRef) String() string {
	if r.Internal {
		return fmt.Sprintf("#%d", r.ID)
	}
	return words.Quoted(r.External)
}

// Text returns the reference without quotes.
func (r NodeRef) Text() string {
	if r.Internal {
		return r.String()
	}
	return r.External
}

// NodeList is a list of nodes as a statement names them: one node, or the part of the statement
// where the list stands. Each pass over the list reads that text again, so that a list of millions
// takes no further memory.
type NodeList struct {
	one   *NodeRef
	src   string // the statement
	from  int    // the offset of the first node, in bytes
	Count int
}

// OneNode returns a list of one node.
func OneNode(ref NodeRef) NodeList { return NodeList{one: &ref, Count: 1} }

// All yields the nodes in order, with their places.
func (l NodeList) All() iter.Seq2[int, NodeRef] {
	return func(yield func(int, NodeRef) bool) {
		if l.one != nil {
			yield(0, *l.one)
			return
		}
		p := newParser(l.src, l.from)
		for i := range l.Count {
			ref, err := p.node("")
			if err != nil || !yield(i, ref) { // the list was parsed before, so there are no errors
				return
			}
			p.punct(",")
		}
	}
}

// EdgeRef is an edge by its ends and its relation. An end that is asked for is nil; at most one is.
type EdgeRef struct {
	Head, Tail *NodeRef
	Relation   string // "" if none was named
}

// Asks reports whether an end is asked for.
func (e *EdgeRef) Asks() bool { return e.Head == nil || e.Tail == nil }

// CacheSize is a size in bytes, or in percent of the memory that all features would take.
type CacheSize struct {
	Bytes   int64
	Percent float64
}
