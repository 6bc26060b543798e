package engine

import (
	"math"
	"slices"
)

// Range is the nodes From … End-1.
type Range struct{ From, End uint32 }

// Set is a set of nodes: those of some ranges, which ascend and do not touch, that also have a bit,
// if there are bits.
type Set struct {
	Ranges []Range
	Bits   []uint64
}

// Has reports whether a node is in the set.
func (s *Set) Has(v uint32) bool {
	if s.Bits != nil && s.Bits[v>>6]>>(v&63)&1 == 0 {
		return false
	}
	for _, r := range s.Ranges {
		if v < r.End {
			return v >= r.From
		}
	}
	return false
}

// Covers reports whether all of from … to are in the set, so that nothing need be looked up.
func (s *Set) Covers(from, to uint32) bool {
	return s.Bits == nil && slices.ContainsFunc(s.Ranges, func(r Range) bool {
		return from >= r.From && to < r.End
	})
}

// Len returns how many nodes are in the ranges.
func (s *Set) Len() (n int) {
	for _, r := range s.Ranges {
		n += int(r.End - r.From)
	}
	return n
}

// bounds returns the first node of the ranges, and the one behind the last.
func (s *Set) bounds() Range {
	if len(s.Ranges) == 0 {
		return Range{}
	}
	return Range{s.Ranges[0].From, s.Ranges[len(s.Ranges)-1].End}
}

// and returns the nodes that are in both sets.
func (s Set) and(o Set) (out Set) {
	for _, a := range s.Ranges {
		for _, b := range o.Ranges {
			if r := (Range{max(a.From, b.From), min(a.End, b.End)}); r.From < r.End {
				out.Ranges = append(out.Ranges, r)
			}
		}
	}
	switch {
	case s.Bits == nil:
		out.Bits = o.Bits
	case o.Bits == nil:
		out.Bits = s.Bits
	default:
		out.Bits = slices.Clone(s.Bits)
		for i := range out.Bits {
			out.Bits[i] &= o.Bits[i]
		}
	}
	return out
}

// Union returns the nodes that are in the ranges of one of two sets.
func Union(a, b Set) (out Set) {
	all := append(slices.Clone(a.Ranges), b.Ranges...)
	slices.SortFunc(all, func(a, b Range) int { return int(int64(a.From) - int64(b.From)) })
	for _, r := range all {
		if n := len(out.Ranges); n > 0 && r.From <= out.Ranges[n-1].End {
			out.Ranges[n-1].End = max(out.Ranges[n-1].End, r.End)
		} else {
			out.Ranges = append(out.Ranges, r)
		}
	}
	return out
}

// Disjoint reports whether no node is in both sets, by their ranges.
func (s Set) Disjoint(o Set) bool {
	s.Bits, o.Bits = nil, nil
	return len(s.and(o).Ranges) == 0
}

// split cuts the ranges into parts of at most n nodes.
func (s *Set) split(n uint32) (out []Range) {
	for _, r := range s.Ranges {
		for at := r.From; at < r.End; {
			end := r.End
			if r.End-at > n {
				end = at + n
			}
			out = append(out, Range{at, end})
			at = end
		}
	}
	return out
}

// everything is the set of n nodes.
func everything(n uint64) Set {
	if n == 0 {
		return Set{}
	}
	return Set{Ranges: []Range{{0, uint32(min(n, math.MaxUint32))}}}
}
