package lang

import "iter"

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
