// Package adjacency holds neighbor lists of whole relations in memory, sorted, for joins over many
// nodes: a list is found in O(1), and an edge in O(log degree).
package adjacency

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sort"
)

// Lists are the lists of the nodes First … End-1 of one direction and some types of edges. They
// take 4 bytes a node, and 4 an edge; 2 more where edges are of several types, and 4 more where
// edges may be parallel or lead either way.
type Lists struct {
	First, End uint32
	// Off says where lists begin and end: that of node v is Nbr[Off[v-First]:Off[v-First+1]], by
	// ascending neighbor and then type.
	Off []uint32
	Nbr []uint32
	// Typ are the types of entries; nil if all have Type.
	Typ  []uint16
	Type uint16
	// Num are numbers among the edges with equal ends and type, doubled, plus 1 for an edge that
	// leads to the owner of the list where the others lead from it; nil if all are 0.
	Num []uint32
	// Loops says that edges join nodes with themselves, and Multi that a neighbor stands in a list
	// twice.
	Loops, Multi bool
	// Least and Most bound the neighbors.
	Least, Most uint32
}

// ErrTooMany says that lists have more entries than Lists can hold.
var ErrTooMany = errors.New("more than 2^32 edges")

// Builder makes Lists from entries that come by ascending owner.
type Builder struct {
	l    Lists
	at   uint32 // the owner of the last entry
	grow func(bytes int64) error
	many bool // several types
}

// NewBuilder returns a builder for the lists of nodes first … end-1. typed says that entries have
// several types. grow counts memory.
func NewBuilder(first, end uint32, typed bool, grow func(int64) error) (*Builder, error) {
	if err := grow(4 * (int64(end-first) + 1)); err != nil {
		return nil, err
	}
	b := &Builder{l: Lists{First: first, End: end, Off: make([]uint32, end-first+1),
		Least: math.MaxUint32}, at: first, grow: grow, many: typed}
	return b, nil
}

// Add appends an entry.
func (b *Builder) Add(owner, nbr uint32, typ uint16) error {
	l := &b.l
	for ; b.at < owner; b.at++ {
		l.Off[b.at-l.First+1] = uint32(len(l.Nbr))
	}
	if len(l.Nbr) == cap(l.Nbr) {
		if err := b.room(); err != nil {
			return err
		}
	}
	l.Nbr = append(l.Nbr, nbr)
	if b.many {
		l.Typ = append(l.Typ, typ)
	}
	l.Type = typ
	return nil
}

// room grows the entries by a quarter.
func (b *Builder) room() error {
	l := &b.l
	if len(l.Nbr) > math.MaxUint32-2 {
		return ErrTooMany
	}
	had := cap(l.Nbr)
	more := max(had/4, 1<<12)
	each := int64(4)
	if b.many {
		each += 2
	}
	if err := b.grow(each * int64(had+more)); err != nil {
		return err
	}
	l.Nbr = slices.Grow(l.Nbr, more)
	if b.many {
		l.Typ = append(make([]uint16, 0, cap(l.Nbr)), l.Typ...)
	}
	return b.grow(-each * int64(had))
}

// Lists returns the lists, and ends the builder.
func (b *Builder) Lists() (*Lists, error) {
	l := &b.l
	for ; b.at < l.End; b.at++ {
		l.Off[b.at-l.First+1] = uint32(len(l.Nbr))
	}
	l.sort()
	return l, l.finish(b.grow)
}

// sort puts lists in order, which they are but where relations were put together.
func (l *Lists) sort() {
	for v := l.First; v < l.End; v++ {
		lo, hi := l.Of(v)
		nbr := l.Nbr[lo:hi]
		if len(l.Typ) == 0 {
			if !slices.IsSorted(nbr) {
				slices.Sort(nbr)
			}
			continue
		}
		s := byNeighbor{nbr, l.Typ[lo:hi]}
		if !sort.IsSorted(s) {
			sort.Stable(s)
		}
	}
}

type byNeighbor struct {
	nbr []uint32
	typ []uint16
}

func (s byNeighbor) Len() int { return len(s.nbr) }
func (s byNeighbor) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(s.nbr[i], s.nbr[j]), cmp.Compare(s.typ[i], s.typ[j])) < 0
}
func (s byNeighbor) Swap(i, j int) {
	s.nbr[i], s.nbr[j] = s.nbr[j], s.nbr[i]
	s.typ[i], s.typ[j] = s.typ[j], s.typ[i]
}

// finish finds loops, bounds and parallel edges, and numbers these.
func (l *Lists) finish(grow func(int64) error) error {
	parallel := false
	for v := l.First; v < l.End; v++ {
		lo, hi := l.Of(v)
		for i := lo; i < hi; i++ {
			u := l.Nbr[i]
			l.Loops = l.Loops || u == v
			l.Least, l.Most = min(l.Least, u), max(l.Most, u)
			if i > lo && l.Nbr[i-1] == u {
				l.Multi = true
				parallel = parallel || l.TypeOf(i) == l.TypeOf(i-1)
			}
		}
	}
	if !parallel || l.Num != nil {
		return nil
	}
	if err := grow(4 * int64(len(l.Nbr))); err != nil {
		return err
	}
	l.Num = make([]uint32, len(l.Nbr))
	for v := l.First; v < l.End; v++ {
		lo, hi := l.Of(v)
		for i := lo + 1; i < hi; i++ {
			if l.Nbr[i-1] == l.Nbr[i] && l.TypeOf(i) == l.TypeOf(i-1) {
				l.Num[i] = l.Num[i-1] + 2
			}
		}
	}
	return nil
}

// Of returns where the list of a node begins and ends; both are 0 for a node that has none.
func (l *Lists) Of(v uint32) (lo, hi uint32) {
	if v < l.First || v >= l.End {
		return 0, 0
	}
	return l.Off[v-l.First], l.Off[v-l.First+1]
}

// Degree returns the length of a node's list.
func (l *Lists) Degree(v uint32) int64 {
	lo, hi := l.Of(v)
	return int64(hi - lo)
}

// TypeOf returns the type of an entry.
func (l *Lists) TypeOf(i uint32) uint16 {
	if l.Typ == nil {
		return l.Type
	}
	return l.Typ[i]
}

// NumberOf returns the number of an entry among parallel edges, and whether it leads to the owner
// where the others lead from it.
func (l *Lists) NumberOf(i uint32) (number uint32, back bool) {
	if l.Num == nil {
		return 0, false
	}
	return l.Num[i] >> 1, l.Num[i]&1 == 1
}

// Find returns where the entries of a neighbor are in the list of a node. It takes O(log degree).
func (l *Lists) Find(v, nbr uint32) (lo, hi uint32) {
	lo, hi = l.Of(v)
	return Range(l.Nbr, lo, hi, nbr)
}

// Range returns where the entries of a neighbor are in nbr[lo:hi].
func Range(nbr []uint32, lo, hi, want uint32) (uint32, uint32) {
	for end := hi; lo < end; {
		mid := (lo + end) / 2
		if nbr[mid] < want {
			lo = mid + 1
		} else {
			end = mid
		}
	}
	to := lo
	for to < hi && nbr[to] == want {
		to++
	}
	return lo, to
}

// Bytes returns the memory that the lists take.
func (l *Lists) Bytes() int64 {
	return 4*int64(cap(l.Off)+cap(l.Nbr)+cap(l.Num)) + 2*int64(cap(l.Typ))
}

// Turn returns the lists of the other direction of edges that each calls its argument with, twice
// and by ascending owner, as they are in lists. Their neighbors are first … end-1. typed says that
// they have several types. It takes O(nodes + edges), and no more memory than the lists.
func Turn(first, end uint32, typed bool, each func(edge func(owner, nbr uint32, typ uint16)) error,
	grow func(int64) error) (*Lists, error) {
	t := &Lists{First: first, End: end, Least: math.MaxUint32}
	if err := grow(4 * (int64(end-first) + 1)); err != nil {
		return nil, err
	}
	t.Off = make([]uint32, end-first+1)
	edges := uint64(0)
	err := each(func(_, nbr uint32, _ uint16) {
		t.Off[nbr-first]++
		edges++
	})
	if err != nil {
		return nil, err
	}
	if err := t.make(edges, typed, grow); err != nil {
		return nil, err
	}
	sum := uint32(0)
	for i, n := range t.Off {
		t.Off[i] = sum
		sum += n
	}
	err = each(func(owner, nbr uint32, typ uint16) {
		at := t.Off[nbr-first]
		t.Off[nbr-first]++
		t.Nbr[at], t.Type = owner, typ
		if typed {
			t.Typ[at] = typ
		}
	})
	if err != nil {
		return nil, err
	}
	copy(t.Off[1:], t.Off[:len(t.Off)-1])
	t.Off[0] = 0
	t.sort()
	return t, t.finish(grow)
}

// make makes room for edges.
func (l *Lists) make(edges uint64, typed bool, grow func(int64) error) error {
	if edges > math.MaxUint32-2 {
		return ErrTooMany
	}
	bytes := 4 * int64(edges)
	if typed {
		bytes += 2 * int64(edges)
	}
	if err := grow(bytes); err != nil {
		return err
	}
	l.Nbr = make([]uint32, edges)
	if typed {
		l.Typ = make([]uint16, edges)
	}
	return nil
}

// Both returns lists of both directions: the entries of out, and those of in, which lead back. An
// edge of a node with itself stands once. It takes O(nodes + edges).
func Both(out, in *Lists, grow func(int64) error) (*Lists, error) {
	b := &Lists{First: min(out.First, in.First), End: max(out.End, in.End), Type: out.Type,
		Least: min(out.Least, in.Least), Most: max(out.Most, in.Most)}
	n := len(out.Nbr) + len(in.Nbr)
	if n > math.MaxUint32-2 {
		return nil, ErrTooMany
	}
	typed := out.Typ != nil || in.Typ != nil || out.Type != in.Type
	bytes := 4*(int64(b.End-b.First)+1) + 8*int64(n)
	if typed {
		bytes += 2 * int64(n)
	}
	if err := grow(bytes); err != nil {
		return nil, err
	}
	b.Off = make([]uint32, b.End-b.First+1)
	b.Nbr, b.Num = make([]uint32, 0, n), make([]uint32, 0, n)
	if typed {
		b.Typ = make([]uint16, 0, n)
	}
	for v := b.First; v < b.End; v++ {
		b.merge(v, out, in)
		b.Off[v-b.First+1] = uint32(len(b.Nbr))
	}
	return b, b.finish(grow)
}

// merge appends the entries of a node.
func (b *Lists) merge(v uint32, out, in *Lists) {
	o, oEnd := out.Of(v)
	i, iEnd := in.Of(v)
	for o < oEnd || i < iEnd {
		if i < iEnd && in.Nbr[i] == v {
			i++
			continue
		}
		if i == iEnd || o < oEnd && (out.Nbr[o] < in.Nbr[i] ||
			out.Nbr[o] == in.Nbr[i] && out.TypeOf(o) <= in.TypeOf(i)) {
			b.take(out, o, 0)
			o++
		} else {
			b.take(in, i, 1)
			i++
		}
	}
}

func (b *Lists) take(from *Lists, i, back uint32) {
	n, _ := from.NumberOf(i)
	b.Nbr = append(b.Nbr, from.Nbr[i])
	b.Num = append(b.Num, n<<1|back)
	if b.Typ != nil {
		b.Typ = append(b.Typ, from.TypeOf(i))
	}
}
