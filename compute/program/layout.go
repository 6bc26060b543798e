package program

import "slices"

// alignment of what is laid out, in floats: a cache line and a vector register.
const alignment = 16

// group is values that share memory: a value, its views, and what is computed in its place.
type group struct {
	rows     Rows
	cols     int
	half     bool // values of bfloat16
	role     role
	index    int
	begin    int  // the operation that writes it first
	kept     bool // never free
	segments []segment
}

// segment is the rows of a group from those of a value to those of the next one: they are free once
// nothing reads them any more.
type segment struct {
	rows Rows // from the first of these, counted from the end, on
	last int  // the last operation that reads it
}

// memoryMap says which group each value is in.
type memoryMap struct {
	groups []group
	of     []int // by value; -1 for none
}

// region is a piece of memory that values are laid out in.
type region uint8

const (
	regionStep     region = iota // scratch of the step
	regionFeatures               // the features of the batch, as far as they are dead
)

// spot is where a group begins: at floats behind the begin of a region.
type spot struct {
	region region
	at     int
}

// layout is where the groups of a program are, for a batch.
type layout struct {
	spots  []spot
	floats int // of the step's region
}

// span is free memory of a region.
type span struct{ at, floats int }

// freeList is the free memory of a region, in order.
type freeList struct {
	spans []span
	end   int  // floats in all
	grows bool // whether there may be more
}

// arrange lays out all groups. features is how many floats the batch's features are. It is first
// fit, in the order in which groups are written: what is free in the features first.
func (m *memoryMap) arrange(s *Sizes, features int) *layout {
	l := &layout{spots: make([]spot, len(m.groups))}
	lists := [2]freeList{regionStep: {grows: true}, regionFeatures: {end: features}}
	last := 0
	for i := range m.groups {
		for _, seg := range m.groups[i].segments {
			last = max(last, seg.last)
		}
		last = max(last, m.groups[i].begin)
	}
	for at := -1; at <= last; at++ {
		for i := range m.groups {
			if g := &m.groups[i]; g.begin == at {
				l.spots[i] = g.find(s, &lists)
			}
		}
		for i := range m.groups {
			if g := &m.groups[i]; g.begin <= at {
				g.release(s, l.spots[i], at, &lists)
			}
		}
	}
	l.floats = lists[regionStep].end
	return l
}

// find takes memory for a group.
func (g *group) find(s *Sizes, lists *[2]freeList) spot {
	if g.role == roleFeatures {
		return spot{region: regionFeatures}
	}
	if g.role != roleStep {
		return spot{}
	}
	n := aligned(g.floats(s.Of(g.rows) * g.cols))
	if at, ok := lists[regionFeatures].take(n); ok {
		return spot{regionFeatures, at}
	}
	at, _ := lists[regionStep].take(n)
	return spot{regionStep, at}
}

// floats returns how many floats a number of values takes.
func (g *group) floats(values int) int {
	if g.half {
		return (values + 1) / 2
	}
	return values
}

// release frees the segments of a group that were read for the last time.
func (g *group) release(s *Sizes, where spot, at int, lists *[2]freeList) {
	if g.kept || g.role != roleStep && g.role != roleFeatures {
		return
	}
	whole := s.Of(g.rows) * g.cols
	for i, seg := range g.segments {
		// What was never read is free once it was written.
		if max(seg.last, g.begin) != at {
			continue
		}
		first, end := whole-s.Of(seg.rows)*g.cols, whole
		if i+1 < len(g.segments) {
			end = whole - s.Of(g.segments[i+1].rows)*g.cols
		}
		first, end = g.floats(first), g.floats(end)
		from, to := where.at+aligned(first), where.at+aligned(end)
		if g.role == roleFeatures { // nothing is kept behind them for the alignment
			to = min(to, where.at+end)
			if i+1 < len(g.segments) {
				to = where.at + end/alignment*alignment
			}
		} else if i+1 < len(g.segments) {
			to = where.at + end/alignment*alignment
		}
		if to > from {
			lists[where.region].give(span{from, to - from})
		}
	}
}

func aligned(n int) int { return (n + alignment - 1) / alignment * alignment }

// take returns the first place of n floats.
func (f *freeList) take(n int) (at int, ok bool) {
	for i, s := range f.spans {
		if s.floats >= n {
			f.spans[i] = span{s.at + n, s.floats - n}
			if s.floats == n {
				f.spans = slices.Delete(f.spans, i, i+1)
			}
			return s.at, true
		}
	}
	if !f.grows {
		return 0, false
	}
	at = f.end
	if k := len(f.spans); k > 0 && f.spans[k-1].at+f.spans[k-1].floats == f.end {
		at = f.spans[k-1].at
		f.spans = f.spans[:k-1]
	}
	f.end = at + n
	return at, true
}

// give makes memory free.
func (f *freeList) give(s span) {
	i, _ := slices.BinarySearchFunc(f.spans, s, func(a, b span) int { return a.at - b.at })
	f.spans = slices.Insert(f.spans, i, s)
	if i+1 < len(f.spans) && s.at+s.floats == f.spans[i+1].at {
		f.spans[i].floats += f.spans[i+1].floats
		f.spans = slices.Delete(f.spans, i+1, i+2)
	}
	if i > 0 && f.spans[i-1].at+f.spans[i-1].floats == f.spans[i].at {
		f.spans[i-1].floats += f.spans[i].floats
		f.spans = slices.Delete(f.spans, i, i+1)
	}
}
