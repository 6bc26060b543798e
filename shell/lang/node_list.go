package lang

import "iter"

// NodeList is a list of nodes as a statement names them: one node, or the part of its text where
// the list stands. The text is read again whenever the list is, so that a list of millions takes no
// memory beside it.
type NodeList struct {
	one   *NodeRef
	src   string // the statement
	from  int    // of the first node, in bytes
	Count int
}

// OneNode is a list of one node.
func OneNode(ref NodeRef) NodeList { return NodeList{one: &ref, Count: 1} }

// All yields the nodes in their order.
func (l NodeList) All() iter.Seq2[int, NodeRef] {
	return func(yield func(int, NodeRef) bool) {
		if l.one != nil {
			yield(0, *l.one)
			return
		}
		p := newParser(l.src, l.from)
		for i := range l.Count {
			ref, err := p.node("")
			if err != nil || !yield(i, ref) { // it was parsed before: there are no errors
				return
			}
			p.punct(",")
		}
	}
}
