package program

import (
	"fmt"
	"slices"
)

// rowsKind says what the rows of a value are.
type rowsKind uint8

const (
	fixedRows   rowsKind = iota // a number
	nodeRows                    // the nodes of the deltas from a hop on
	entryRows                   // the entries of a hop's lists
	loopRows                    // the same, and one for each node that has a list: its self loop
	segmentRows                 // the segments of a hop's lists
	itemRows                    // the seeds of a batch of edges
)

// Rows is a number of rows that is a symbol until the sizes of a batch are known.
type Rows struct {
	kind rowsKind
	n    int
}

// Fixed returns n rows.
func Fixed(n int) Rows { return Rows{fixedRows, n} }

// Nodes returns the nodes of the deltas Δhop … Δk of a batch: hop 0 are all nodes, and a layer that
// reads Nodes(l) computes Nodes(l+1).
func Nodes(hop int) Rows { return Rows{nodeRows, hop} }

// Segments returns the segments of a hop's lists: the entries of one type in one list. They stand
// in the order of lists, and those of a list in the order of types.
func Segments(hop int) Rows { return Rows{segmentRows, hop} }

// Items returns the seeds of a batch of edges, each with both ends among the nodes of the last
// delta.
func Items() Rows { return Rows{kind: itemRows} }

// Entries returns the entries of a list.
func Entries(l List) Rows {
	switch {
	case l.ends():
		return Items()
	case l.of == toNodes:
		return Segments(l.Hop)
	case l.Loops:
		return Rows{loopRows, l.Hop}
	}
	return Rows{entryRows, l.Hop}
}

// String names the rows as a printed program does.
func (r Rows) String() string {
	switch r.kind {
	case nodeRows:
		return fmt.Sprintf("N%d", r.n)
	case entryRows:
		return fmt.Sprintf("E%d", r.n)
	case loopRows:
		return fmt.Sprintf("E%d'", r.n)
	case segmentRows:
		return fmt.Sprintf("S%d", r.n)
	case itemRows:
		return "I"
	}
	return fmt.Sprint(r.n)
}

// List names the neighbor lists of a hop: a layer reads Nodes(Hop) by them, and has a list for each
// of Nodes(Hop+1).
type List struct {
	Hop int
	// Loops adds to each list an entry for its own node.
	Loops bool
	// Itself says that the rows which lists name are not of nodes: an entry names its own.
	Itself bool
	of     listsOf
}

// listsOf says what lists are of.
type listsOf uint8

const (
	ofNeighbors listsOf = iota // a list for each node, of neighbors
	toSegments                 // a list for each segment, of its entries
	toNodes                    // a list for each node, of its segments
	toFirst                    // a list for each edge of Items, of its first end
	toSecond                   // and of its second
)

// ToSegments returns the lists that a list falls into by the types of its entries: one for each of
// Segments. Programs that read them have the entries of each list in the order of types.
func (l List) ToSegments() List { return List{Hop: l.Hop, of: toSegments} }

// ToNodes returns a list for each node: of the Segments of its entries.
func (l List) ToNodes() List { return List{Hop: l.Hop, of: toNodes} }

// OfEntries returns the same lists, of rows of the entries instead of nodes.
func (l List) OfEntries() List {
	l.Itself = true
	return l
}

// ToEnd returns a list for each edge of Items: of its first end, or of its second, among the nodes
// that l reads.
func (l List) ToEnd(second bool) List {
	if second {
		return List{Hop: l.Hop, of: toSecond}
	}
	return List{Hop: l.Hop, of: toFirst}
}

// ends reports whether lists are of ends of edges.
func (l List) ends() bool { return l.of == toFirst || l.of == toSecond }

// reads returns the rows that lists number, and has what there is a list for each of.
func (l List) reads() Rows {
	switch {
	case l.of == toNodes:
		return Segments(l.Hop)
	case l.Itself:
		return Entries(l)
	}
	return Nodes(l.Hop)
}

func (l List) has() Rows {
	switch {
	case l.of == toSegments:
		return Segments(l.Hop)
	case l.ends():
		return Items()
	}
	return Nodes(l.Hop + 1)
}

// WithLoops adds to each list an entry for its own node.
func (l List) WithLoops() List { return List{Hop: l.Hop, Loops: true} }

// String names the lists as a printed program does.
func (l List) String() string {
	switch {
	case l.Itself:
		l.Itself = false
		return l.String() + " of entries"
	case l.Loops:
		return fmt.Sprintf("hop%d+loops", l.Hop)
	case l.of == toSegments:
		return fmt.Sprintf("hop%d by type", l.Hop)
	case l.of == toNodes:
		return fmt.Sprintf("hop%d of segments", l.Hop)
	case l.ends():
		return fmt.Sprintf("end %d", l.of-toFirst+1)
	}
	return fmt.Sprintf("hop%d", l.Hop)
}

// Sizes are the numbers of rows of a batch.
type Sizes struct {
	Nodes   []int // of Nodes(0), Nodes(1), …
	Entries []int // of the lists of hop 0, 1, …, without loops
	// Segments counts what the lists of hop 0, 1, … fall into by the types of their entries; it is
	// empty where these have none.
	Segments []int
	Items    int // edges that are seeds; 0 where nodes are
}

// Of returns a number of rows.
func (s *Sizes) Of(r Rows) int {
	switch r.kind {
	case nodeRows:
		return s.Nodes[r.n]
	case entryRows:
		return s.Entries[r.n]
	case loopRows:
		return s.Entries[r.n] + s.Nodes[r.n+1]
	case segmentRows:
		return s.Segments[r.n]
	case itemRows:
		return s.Items
	}
	return r.n
}

// listUse is lists that a program reads, and what its backward pass needs of them: transposed ones,
// and the numbers of entries in them.
type listUse struct {
	List
	transposed, entries bool
}

// listNumber returns the place of lists among those that the program reads.
func (p *Program) listNumber(l List) int {
	return slices.IndexFunc(p.lists, func(u listUse) bool { return u.List == l })
}
