package layout

import (
	"cmp"
	"fmt"
	"slices"

	"gdb/kv"
)

// NodeLists numbers the lists of one direction of a typed store. A node has a list for each
// relation that ends at its type (of out-lists: that begins there), and these follow each other,
// by the type at the other end and then by number of the relation:
//
//	list = base of the type + (node - first of the type) · relations there + place of the relation
//
// The nodes of a type without such relations have no lists. Where it is nil, each node has one
// list, whose number is the node's.
type NodeLists struct {
	types     []listedType // in order of node
	relations []listedRelation
	nodes     uint64
	count     uint64
}

// listedType is a type of nodes; end and base of the next one follow.
type listedType struct {
	first, end uint64 // nodes
	base       uint64 // the first list
	relations  []uint16
}

// listedRelation is where the lists of a relation are: in its type, at a place of a node's lists.
type listedRelation struct{ typ, place int }

// ListsOf returns the numbers of the lists of a direction; nil if each node has one.
func ListsOf(m *kv.Meta, dir Direction) *NodeLists {
	if !m.Typed() {
		return nil
	}
	l := &NodeLists{nodes: m.Nodes, relations: make([]listedRelation, len(m.Relations))}
	for i, t := range m.NodeTypes {
		of := listedType{first: t.First, end: t.First + t.Nodes, base: l.count}
		for r := range m.Relations {
			if own, _ := ends(m, r, dir); own == i {
				of.relations = append(of.relations, uint16(r))
			}
		}
		slices.SortStableFunc(of.relations, func(a, b uint16) int {
			_, x := ends(m, int(a), dir)
			_, y := ends(m, int(b), dir)
			return cmp.Compare(x, y)
		})
		for place, r := range of.relations {
			l.relations[r] = listedRelation{i, place}
		}
		l.count += t.Nodes * uint64(len(of.relations))
		l.types = append(l.types, of)
	}
	return l
}

// ends returns the types of the nodes whose lists of a direction have the edges of relation r, and
// of the nodes that are in these.
func ends(m *kv.Meta, r int, dir Direction) (own, other int) {
	if dir == Out {
		return m.Relations[r].Src, m.Relations[r].Dst
	}
	return m.Relations[r].Dst, m.Relations[r].Src
}

// CountLists returns the number of lists of a direction.
func CountLists(m *kv.Meta, dir Direction) uint64 {
	if l := ListsOf(m, dir); l != nil {
		return l.count
	}
	return m.Nodes
}

// Nodes and Count return the number of nodes and of their lists.
func (l *NodeLists) Nodes() uint64 { return l.nodes }

// Count returns the number of lists.
func (l *NodeLists) Count() uint64 { return l.count }

// Most returns the most lists that a node has.
func (l *NodeLists) Most() (most int) {
	for i := range l.types {
		most = max(most, len(l.types[i].relations))
	}
	return most
}

// Of returns the first list of a node, and how many it has. It takes O(log types).
func (l *NodeLists) Of(v NodeID) (first NodeID, n int) {
	t := &l.types[l.typeOf(uint64(v))]
	n = len(t.relations)
	return NodeID(t.base + (uint64(v)-t.first)*uint64(n)), n
}

// typeOf returns the type of a node: the first that ends behind it. Nodes must be in the graph.
func (l *NodeLists) typeOf(v uint64) int {
	i, _ := slices.BinarySearchFunc(l.types, v, func(t listedType, v uint64) int {
		if t.end <= v {
			return -1
		}
		return 1
	})
	return i
}

// List returns the list of a node by a relation. The error says that the relation joins others.
func (l *NodeLists) List(v NodeID, relation uint16) (NodeID, error) {
	if int(relation) >= len(l.relations) {
		return 0, fmt.Errorf("relation %d of %d", relation, len(l.relations))
	}
	at := l.relations[relation]
	t := &l.types[at.typ]
	if uint64(v) < t.first || uint64(v) >= t.end {
		return 0, fmt.Errorf("node %d has no edges by relation %d, which has nodes %d to %d there",
			v, relation, t.first, t.end)
	}
	return NodeID(t.base + (uint64(v)-t.first)*uint64(len(t.relations)) + uint64(at.place)), nil
}

// Node returns the node and the relation of a list. It takes O(log types).
func (l *NodeLists) Node(list NodeID) (v NodeID, relation uint16) {
	t := &l.types[l.owner(uint64(list))]
	at, n := uint64(list)-t.base, uint64(len(t.relations))
	return NodeID(t.first + at/n), t.relations[at%n]
}

// owner returns the type of the node of a list.
func (l *NodeLists) owner(list uint64) int {
	i, _ := slices.BinarySearchFunc(l.types, list, func(t listedType, list uint64) int {
		if t.base+(t.end-t.first)*uint64(len(t.relations)) <= list {
			return -1
		}
		return 1
	})
	return i
}

// Begin returns the first list that belongs to a node or to one behind it; nodes may be the number
// of all nodes.
func (l *NodeLists) Begin(v uint64) uint64 {
	if v >= l.nodes {
		return l.count
	}
	t := &l.types[l.typeOf(v)]
	return t.base + (v-t.first)*uint64(len(t.relations))
}

// Expand appends the lists of nodes to lists, and where those of each node end there to ends.
// relations gets the relation of each list, unless it is nil. The error names a node that is not
// in the graph. It takes O(lists), and O(log types) where a node is not of the type of the one
// before.
func (l *NodeLists) Expand(nodes []NodeID, lists []NodeID, ends []uint32) ([]NodeID, []uint32,
	error) {
	t := &listedType{}
	for _, v := range nodes {
		at := uint64(v)
		if at-t.first >= t.end-t.first {
			if at >= l.nodes {
				return lists, ends, OutOfRange(v, l.nodes)
			}
			t = &l.types[l.typeOf(at)]
		}
		n := uint64(len(t.relations))
		first := NodeID(t.base + (at-t.first)*n)
		for k := range n {
			lists = append(lists, first+NodeID(k))
		}
		ends = append(ends, uint32(len(lists)))
	}
	return lists, ends, nil
}

// Relations calls fn with the relation of each of some lists, in order; see Expand.
func (l *NodeLists) Relations(lists []NodeID, fn func(i int, relation uint16)) {
	var t *listedType
	first, end := uint64(0), uint64(0)
	for i, list := range lists {
		at := uint64(list)
		if at-first >= end-first {
			t = &l.types[l.owner(at)]
			first, end = t.base, t.base+(t.end-t.first)*uint64(len(t.relations))
		}
		fn(i, t.relations[(at-first)%uint64(len(t.relations))])
	}
}
