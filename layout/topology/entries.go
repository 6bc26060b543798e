package topology

import (
	"context"
	"slices"
	"sort"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"
)

// entries are the entries of lists in memory.
type entries struct {
	starts []uint64 // where each list begins; the last is the end

	nbrs    []layout.NodeID
	types   []uint16 // parallel to nbrs, or nil, as the others
	weights []float32
	times   []int64
	levels  []uint16 // of entries, where that matters, since levels take entries away
	rows    []uint64 // numbers among the entries of a relation of the level, for Origins
}

// allocate makes room for n entries of lists.
func (e *entries) allocate(m *kv.Meta, lists int, n int64, weights, levels bool,
	hold func(bytes int64) []byte) {
	e.starts = mem.View[uint64](hold(int64(lists+1) * 8))
	e.nbrs = mem.View[layout.NodeID](hold(n * listfile.IDBytes))
	e.types = attribute[uint16](len(m.EdgeTypes) > 0 && !m.Typed(), n, listfile.TypeBytes, hold)
	e.weights = attribute[float32](weights, n, listfile.WeightBytes, hold)
	e.times = attribute[int64](m.Timestamped, n, listfile.TimeBytes, hold)
	if levels {
		e.levels = mem.View[uint16](hold(n * 2))
	}
}

// attribute makes room for an attribute of n entries, if they have it; only else it is nil.
func attribute[T uint16 | float32 | int64](has bool, n, width int64,
	hold func(bytes int64) []byte) []T {
	if !has {
		return nil
	}
	if n == 0 {
		return []T{}
	}
	return mem.View[T](hold(n * width))
}

// span returns which entries a list has.
func (e *entries) span(list uint32) (from, to uint64) { return e.starts[list], e.starts[list+1] }

// take copies entries from … to-1 of lists of a level to place at.
func (e *entries) take(at uint64, lists *listfile.Lists, from, to uint64, of []uint32, level int) {
	for k := from; k < to; k++ {
		e.nbrs[at+k-from] = layout.NodeID(of[lists.Nbrs[k]])
	}
	if e.types != nil {
		copy(e.types[at:], lists.Types[from:to])
	}
	if e.weights != nil {
		copy(e.weights[at:], lists.Weights[from:to])
	}
	if e.times != nil {
		copy(e.times[at:], lists.Times[from:to])
	}
	if e.levels != nil {
		for k := range to - from {
			e.levels[at+k] = uint16(level)
		}
	}
}

// move copies entry from to entry to.
func (e *entries) move(to, from uint64) {
	e.nbrs[to] = e.nbrs[from]
	if e.types != nil {
		e.types[to] = e.types[from]
	}
	if e.weights != nil {
		e.weights[to] = e.weights[from]
	}
	if e.times != nil {
		e.times[to] = e.times[from]
	}
	if e.levels != nil {
		e.levels[to] = e.levels[from]
	}
	if e.rows != nil {
		e.rows[to] = e.rows[from]
	}
}

// begin makes counts of entries the places of the first.
func (e *entries) begin() {
	next := uint64(0)
	for i, n := range e.starts {
		e.starts[i] = next
		next += n
	}
}

// finish makes of starts that were moved to the end of their lists those of the lists.
func (e *entries) finish() {
	if len(e.starts) > 0 {
		copy(e.starts[1:], e.starts[:len(e.starts)-1])
		e.starts[0] = 0
	}
}

// sort sorts lists that several levels have parts of.
func (e *entries) sort(ctx context.Context) error {
	for i := range max(len(e.starts), 1) - 1 {
		from, to := e.starts[i], e.starts[i+1]
		if !slices.IsSorted(e.nbrs[from:to]) {
			sort.Stable(&span{e, int(from), int(to - from)})
		}
	}
	return ctx.Err()
}

// span is some entries, to be sorted by neighbor.
type span struct {
	*entries
	from, n int
}

func (s *span) Len() int           { return s.n }
func (s *span) Less(i, j int) bool { return s.nbrs[s.from+i] < s.nbrs[s.from+j] }
func (s *span) Swap(i, j int) {
	i, j = s.from+i, s.from+j
	s.nbrs[i], s.nbrs[j] = s.nbrs[j], s.nbrs[i]
	if s.types != nil {
		s.types[i], s.types[j] = s.types[j], s.types[i]
	}
	if s.weights != nil {
		s.weights[i], s.weights[j] = s.weights[j], s.weights[i]
	}
	if s.times != nil {
		s.times[i], s.times[j] = s.times[j], s.times[i]
	}
	if s.levels != nil {
		s.levels[i], s.levels[j] = s.levels[j], s.levels[i]
	}
	if s.rows != nil {
		s.rows[i], s.rows[j] = s.rows[j], s.rows[i]
	}
}

// drop removes what a later level took away.
func (a *added) drop() {
	if len(a.gone.starts) == 0 {
		return
	}
	l := &listfile.Lists{Nbrs: a.nbrs, Types: a.types, Times: a.times}
	next, from := uint64(0), uint64(0)
	for list := range uint32(a.lists) {
		to := a.starts[list+1]
		a.starts[list] = next
		for ; from < to; from++ {
			if !a.isGone(list, l, from, int(a.levels[from])) {
				a.move(next, from)
				next++
			}
		}
	}
	a.starts[a.lists] = next
	a.nbrs = a.nbrs[:next]
}

// isGone reports whether a level after the given one took away entry k of l, an entry of a list.
func (a *added) isGone(list uint32, l *listfile.Lists, k uint64, level int) bool {
	g := &a.gone
	if len(g.starts) == 0 {
		return false
	}
	from, to := g.span(list)
	at, _ := slices.BinarySearch(g.nbrs[from:to], l.Nbrs[k])
	for i := from + uint64(at); i < to && g.nbrs[i] == l.Nbrs[k]; i++ {
		if int(g.levels[i]) > level && (g.types == nil || g.types[i] == l.Types[k]) &&
			(g.times == nil || g.times[i] == l.Times[k]) {
			return true
		}
	}
	return false
}

// lostOf returns the positions of a list of the base that are gone.
func (a *added) lostOf(list uint32) []uint32 {
	if a.lostFirst == nil || list == none {
		return nil
	}
	return a.lost[a.lostFirst[list]:a.lostFirst[list+1]]
}

// kept returns the position in a list of the base of entry x of those that are not gone.
func kept(lost []uint32, x uint32) uint32 {
	before := sort.Search(len(lost), func(k int) bool { return lost[k]-uint32(k) > x })
	return x + uint32(before)
}
