package listfile

import (
	"gdb/internal/mem"
	"gdb/layout"
)

// Joiner makes ranges of nodes with one list each of ranges of lists of a typed store, as scans
// pass them: the lists of a node follow each other, and an entry's type is the relation of its
// list. Without numbers it passes on what it gets.
type Joiner struct {
	numbers *layout.NodeLists
	fn      func(first layout.NodeID, cont bool, l *Lists) error
	sparse  bool
	begun   bool
	last    uint64 // the node of the last range that fn has
	joined  Lists
}

// NewJoiner returns a joiner that passes on every node, also those without lists.
func NewJoiner(numbers *layout.NodeLists,
	fn func(first layout.NodeID, cont bool, l *Lists) error) *Joiner {
	return &Joiner{numbers: numbers, fn: fn}
}

// NewRangeJoiner returns a joiner that leaves out nodes of which no list comes.
func NewRangeJoiner(numbers *layout.NodeLists,
	fn func(first layout.NodeID, cont bool, l *Lists) error) *Joiner {
	return &Joiner{numbers: numbers, fn: fn, sparse: true}
}

// Add takes a range of lists, the first of which goes on with the one before if cont is true.
func (j *Joiner) Add(first layout.NodeID, cont bool, l *Lists) error {
	if j.numbers == nil || len(l.Off) < 2 {
		return j.fn(first, cont, l)
	}
	v, _ := j.numbers.Node(first)
	goesOn := j.begun && uint64(v) == j.last
	if err := j.empty(uint64(v), goesOn); err != nil {
		return err
	}
	j.joined.Join(j.numbers, first, l)
	j.begun, j.last = true, uint64(v)+uint64(len(j.joined.Off))-2
	return j.fn(v, goesOn, &j.joined)
}

// empty passes on the nodes without lists from the last one to v.
func (j *Joiner) empty(v uint64, goesOn bool) error {
	next := uint64(0)
	if j.begun {
		next = j.last + 1
	}
	if j.sparse || goesOn || next >= v {
		return nil
	}
	var none Lists
	return scanEmpty(&none, next, v-next, j.fn)
}

// Finish passes on the nodes without lists behind the last one.
func (j *Joiner) Finish() error {
	if j.numbers == nil {
		return nil
	}
	return j.empty(j.numbers.Nodes(), false)
}

// Join makes one list a node of consecutive lists of a typed store, the first of which is given,
// and types of their relations. Nodes between that have no lists have empty ones. It shares memory
// with l.
func (j *Lists) Join(numbers *layout.NodeLists, first layout.NodeID, l *Lists) {
	types := mem.Resize(j.Types, len(l.Nbrs))
	off := append(j.Off[:0], l.Off[0])
	begun, _ := numbers.Node(first)
	for i := range len(l.Off) - 1 {
		v, relation := numbers.Node(first + layout.NodeID(i))
		for uint64(begun)+uint64(len(off))-1 <= uint64(v) {
			off = append(off, l.Off[i])
		}
		off[len(off)-1] = l.Off[i+1]
		for e := l.Off[i]; e < l.Off[i+1]; e++ {
			types[e] = relation
		}
	}
	*j = Lists{Off: off, Nbrs: l.Nbrs, Types: types, Weights: l.Weights, Times: l.Times}
}
