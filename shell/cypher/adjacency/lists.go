// Package adjacency holds neighbor lists of whole relations in memory, sorted, for joins over many
// nodes: a list is found in O(1), and an edge in O(log degree).
//
// The graph algorithms (layout/algorithm) hold lists in another form, because they need offsets of
// 64 bits, weights, and no types, and fill lists from several goroutines in any order of owners.
package adjacency

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sort"

	"gdb/internal/pace"
	"gdb/layout"
)

// Lists are the lists of the nodes First … End-1 of one direction and some types of edges, or those
// of some nodes. They take 4 bytes a node, and 4 an edge; 2 more where edges are of several types,
// and 4 more where edges may be parallel or lead either way.
type Lists struct {
	Outline
	First, End uint32
	// Nodes are those whose lists these are, ascending, where they are not First … End-1.
	Nodes []uint32
	// Off says where lists begin and end: the i-th is Nbr[Off[i]:Off[i+1]], by ascending neighbor
	// and then type.
	Off []uint32
	Nbr []uint32
	// Typ are the types of entries; empty if all have Type.
	Typ  []uint16
	Type uint16
	// Num are numbers among the edges with equal ends and type, doubled, plus 1 for an edge that
	// leads to the owner of the list where the others lead from it; empty if all are 0.
	Num []uint32
	// Moved says that entries have been sorted, and are not in the order in which they came.
	Moved bool

	// ranks number the nodes that have lists, instead of Nodes; ranked is how many words they have.
	ranks    layout.Ranks
	ranked   uint64
	finished bool
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
	b := &Builder{l: Lists{First: first, End: end, Off: make([]uint32, end-first+1)}, at: first,
		grow: grow, many: typed}
	return b, nil
}

// Expect makes room for n entries at once, where that is known before.
func (b *Builder) Expect(n uint64) error {
	if n > math.MaxUint32-2 {
		return ErrTooMany
	}
	return b.l.room(int(n), b.many, false, b.grow)
}

// Add appends an entry.
func (b *Builder) Add(owner, nbr uint32, typ uint16) error {
	l := &b.l
	for ; b.at < owner; b.at++ {
		l.Off[b.at-l.First+1] = uint32(len(l.Nbr))
	}
	if len(l.Nbr) == cap(l.Nbr) {
		if err := b.more(); err != nil {
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

// Full reports whether another entry takes more memory than there is room for.
func (b *Builder) Full() bool { return len(b.l.Nbr) == cap(b.l.Nbr) }

// Stop ends the lists before that of an owner that came last, or comes next, and leaves out its
// entries.
func (b *Builder) Stop(owner uint32) {
	l := &b.l
	for ; b.at < owner; b.at++ {
		l.Off[b.at-l.First+1] = uint32(len(l.Nbr))
	}
	l.Nbr = l.Nbr[:l.Off[owner-l.First]]
	if b.many {
		l.Typ = l.Typ[:len(l.Nbr)]
	}
	l.Cut(owner)
}

// Cut leaves out the lists of the nodes from end on.
func (l *Lists) Cut(end uint32) {
	l.End = max(min(l.End, end), l.First)
	l.Off = l.Off[:l.End-l.First+1]
}

// more grows the entries by a quarter.
func (b *Builder) more() error {
	had := cap(b.l.Nbr)
	if had > math.MaxUint32-2 {
		return ErrTooMany
	}
	return b.l.room(had+max(had/4, 1<<12), b.many, false, b.grow)
}

// Lists returns the lists, and ends the builder.
func (b *Builder) Lists(ctx context.Context) (*Lists, error) {
	l := &b.l
	for ; b.at < l.End; b.at++ {
		l.Off[b.at-l.First+1] = uint32(len(l.Nbr))
	}
	return l, l.finish(ctx, b.grow)
}

// finish puts lists in order, finds loops, bounds and parallel edges, and numbers these.
func (l *Lists) finish(ctx context.Context, grow func(int64) error) error {
	l.Outline = Outline{Entries: uint64(len(l.Nbr)), Least: math.MaxUint32}
	parallel := false
	var steps pace.Steps
	for i := range len(l.Off) - 1 {
		lo, hi, v := l.Off[i], l.Off[i+1], l.owner(i)
		l.Squares += float64(hi-lo) * float64(hi-lo)
		if err := l.sort(ctx, lo, hi); err != nil {
			return err
		}
		if err := steps.Took(ctx, 1+int(hi-lo)); err != nil {
			return err
		}
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
	if parallel && len(l.Num) == 0 {
		if err := l.number(ctx, grow); err != nil {
			return err
		}
	}
	l.Told = len(l.Num) > 0 || len(l.Typ) > 0
	l.finished = true
	return nil
}

// sort puts a list in order, which it is but where relations were put together.
func (l *Lists) sort(ctx context.Context, lo, hi uint32) error {
	nbr := l.Nbr[lo:hi]
	if len(l.Typ) == 0 {
		if slices.IsSorted(nbr) {
			return nil
		}
		l.Moved = true
		return pace.SortFunc(ctx, nbr, cmp.Compare[uint32])
	}
	s := &byNeighbor{nbr: nbr, typ: l.Typ[lo:hi]}
	if !sort.IsSorted(s) {
		s.ctx, l.Moved = ctx, true
		sort.Stable(s)
	}
	return s.err
}

// byNeighbor sorts entries. Once ctx is done all are equal, which ends the sort.
type byNeighbor struct {
	nbr   []uint32
	typ   []uint16
	ctx   context.Context
	steps pace.Steps
	err   error
}

func (s *byNeighbor) Len() int { return len(s.nbr) }
func (s *byNeighbor) Less(i, j int) bool {
	if s.ctx != nil && s.err == nil {
		s.err = s.steps.Took(s.ctx, 1)
	}
	return s.err == nil && cmp.Or(cmp.Compare(s.nbr[i], s.nbr[j]),
		cmp.Compare(s.typ[i], s.typ[j])) < 0
}
func (s *byNeighbor) Swap(i, j int) {
	s.nbr[i], s.nbr[j] = s.nbr[j], s.nbr[i]
	s.typ[i], s.typ[j] = s.typ[j], s.typ[i]
}

// number numbers parallel edges.
func (l *Lists) number(ctx context.Context, grow func(int64) error) error {
	if len(l.Nbr) > cap(l.Num) {
		n := min(len(l.Nbr)+len(l.Nbr)/4, cap(l.Nbr)) // the next lists may be longer
		if err := grow(4 * int64(n-cap(l.Num))); err != nil {
			return err
		}
		l.Num = make([]uint32, n)
	}
	l.Num = l.Num[:len(l.Nbr)]
	var steps pace.Steps
	for i := range len(l.Off) - 1 {
		for k := l.Off[i]; k < l.Off[i+1]; k++ {
			l.Num[k] = 0
			if k > l.Off[i] && l.Nbr[k-1] == l.Nbr[k] && l.TypeOf(k) == l.TypeOf(k-1) {
				l.Num[k] = l.Num[k-1] + 2
			}
		}
		if err := steps.Took(ctx, 1+int(l.Off[i+1]-l.Off[i])); err != nil {
			return err
		}
	}
	return nil
}

// owner returns the node of the i-th list.
func (l *Lists) owner(i int) uint32 {
	if l.Nodes != nil {
		return l.Nodes[i]
	}
	return l.First + uint32(i)
}

// Of returns where the list of a node begins and ends; both are 0 for a node that has none.
func (l *Lists) Of(v uint32) (lo, hi uint32) {
	if v < l.First || v >= l.End {
		return l.among(v)
	}
	return l.Off[v-l.First], l.Off[v-l.First+1]
}

// among returns where the list of one of some nodes begins and ends.
func (l *Lists) among(v uint32) (lo, hi uint32) {
	if i, ok := l.ranks.Rank(layout.NodeID(v)); ok {
		return l.Off[i], l.Off[i+1]
	}
	i, ok := slices.BinarySearch(l.Nodes, v)
	if !ok {
		return 0, 0
	}
	return l.Off[i], l.Off[i+1]
}

// Degree returns the length of a node's list.
func (l *Lists) Degree(v uint32) int64 {
	lo, hi := l.Of(v)
	return int64(hi - lo)
}

// Degrees returns the length of the lists of nodes from … end-1 together.
func (l *Lists) Degrees(from, end uint32) int64 {
	from, end = max(from, l.First), min(end, l.End)
	if from >= end {
		return 0
	}
	return int64(l.Off[end-l.First] - l.Off[from-l.First])
}

// TypeOf returns the type of an entry.
func (l *Lists) TypeOf(i uint32) uint16 {
	if len(l.Typ) == 0 {
		return l.Type
	}
	return l.Typ[i]
}

// NumberOf returns the number of an entry among parallel edges, and whether it leads to the owner
// where the others lead from it.
func (l *Lists) NumberOf(i uint32) (number uint32, back bool) {
	if len(l.Num) == 0 {
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
	return 4*int64(cap(l.Off)+cap(l.Nbr)+cap(l.Num)+cap(l.Nodes)) + 2*int64(cap(l.Typ)) +
		12*int64(l.ranked)
}

// Turn returns the lists of the other direction of edges that each calls its argument with, twice
// and by ascending owner, as they are in lists. Their neighbors are first … end-1. typed says that
// they have several types. It takes O(nodes + edges), and no more memory than the lists.
func Turn(ctx context.Context, first, end uint32, typed bool,
	each func(edge func(owner, nbr uint32, typ uint16)) error,
	grow func(int64) error) (*Lists, error) {
	t := &Lists{First: first, End: end}
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
	t.begin()
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
	t.begun()
	return t, t.finish(ctx, grow)
}

// make makes room for edges.
func (l *Lists) make(edges uint64, typed bool, grow func(int64) error) error {
	if edges > math.MaxUint32-2 {
		return ErrTooMany
	}
	if err := l.room(int(edges), typed, false, grow); err != nil {
		return err
	}
	l.Nbr = l.Nbr[:edges]
	if typed {
		l.Typ = l.Typ[:edges]
	}
	return nil
}

// room makes the capacity at least n entries.
func (l *Lists) room(n int, typed, numbered bool, grow func(int64) error) error {
	each, had := int64(4), int64(0)
	if numbered {
		each, had = each+4, 4*int64(cap(l.Num))
	}
	if typed {
		each, had = each+2, had+2*int64(cap(l.Typ))
	}
	had += 4 * int64(cap(l.Nbr))
	if n <= cap(l.Nbr) && (!typed || n <= cap(l.Typ)) && (!numbered || n <= cap(l.Num)) {
		return nil
	}
	if err := grow(each * int64(n)); err != nil {
		return err
	}
	l.Nbr = append(make([]uint32, 0, n), l.Nbr...)
	if typed {
		l.Typ = append(make([]uint16, 0, n), l.Typ...)
	}
	if numbered {
		l.Num = append(make([]uint32, 0, n), l.Num...)
	}
	return grow(-had)
}

// Both returns lists of both directions: the entries of out, and those of in, which lead back. An
// edge of a node with itself stands once. It takes O(nodes + edges).
func Both(ctx context.Context, out, in *Lists, grow func(int64) error) (*Lists, error) {
	b := &Lists{First: min(out.First, in.First), End: max(out.End, in.End), Type: out.Type}
	if err := grow(4 * (int64(b.End-b.First) + 1)); err != nil {
		return nil, err
	}
	b.Off = make([]uint32, b.End-b.First+1)
	return b, b.join(ctx, out, in, grow)
}

// join fills in the entries of both directions, once there is room for where lists end.
func (b *Lists) join(ctx context.Context, out, in *Lists, grow func(int64) error) error {
	n := len(out.Nbr) + len(in.Nbr)
	if n > math.MaxUint32-2 {
		return ErrTooMany
	}
	typed := len(out.Typ)+len(in.Typ) > 0 || out.Type != in.Type
	if err := b.room(n, typed, true, grow); err != nil {
		return err
	}
	b.Nbr, b.Num, b.Typ = b.Nbr[:0], b.Num[:0], b.Typ[:0]
	var steps pace.Steps
	for i := range len(b.Off) - 1 {
		b.merge(b.owner(i), out, in, typed)
		b.Off[i+1] = uint32(len(b.Nbr))
		if err := steps.Took(ctx, 1+int(b.Off[i+1]-b.Off[i])); err != nil {
			return err
		}
	}
	return b.finish(ctx, grow)
}

// merge appends the entries of a node.
func (b *Lists) merge(v uint32, out, in *Lists, typed bool) {
	o, oEnd := out.Of(v)
	i, iEnd := in.Of(v)
	for o < oEnd || i < iEnd {
		if i < iEnd && in.Nbr[i] == v {
			i++
			continue
		}
		if i == iEnd || o < oEnd && (out.Nbr[o] < in.Nbr[i] ||
			out.Nbr[o] == in.Nbr[i] && out.TypeOf(o) <= in.TypeOf(i)) {
			b.take(out, o, 0, typed)
			o++
		} else {
			b.take(in, i, 1, typed)
			i++
		}
	}
}

func (b *Lists) take(from *Lists, i, back uint32, typed bool) {
	n, _ := from.NumberOf(i)
	b.Nbr = append(b.Nbr, from.Nbr[i])
	b.Num = append(b.Num, n<<1|back)
	if typed {
		b.Typ = append(b.Typ, from.TypeOf(i))
	}
}
