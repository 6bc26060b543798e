package shell

import "iter"

// nodeList is a list of nodes as a statement names them: one node, or the part of its text where
// the list stands. The text is read again whenever the list is, so that a list of millions takes no
// memory beside it.
type nodeList struct {
	one   *nodeRef
	src   string // the statement
	from  int    // of the first node, in bytes
	count int
}

// oneNode is a list of one node.
func oneNode(ref nodeRef) nodeList { return nodeList{one: &ref, count: 1} }

// all yields the nodes in their order.
func (l nodeList) all() iter.Seq2[int, nodeRef] {
	return func(yield func(int, nodeRef) bool) {
		if l.one != nil {
			yield(0, *l.one)
			return
		}
		p := newParser(l.src, l.from)
		for i := range l.count {
			ref, err := p.node("")
			if err != nil || !yield(i, ref) { // it was parsed before: there are no errors
				return
			}
			p.punct(",")
		}
	}
}
