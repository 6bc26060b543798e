package program

import (
	"cmp"
	"slices"

	"gdb/internal/dense"
	"gdb/internal/mem"
)

// segments are the lists of a batch with the entries of each in the order of their types, and what
// they fall into: see Segments. Entries are moved only if they are in another order. The memory is
// used again by the next batch.
type segments struct {
	order   []uint32 // by entry: which of the batch's it is
	off     []uint32 // where each segment's entries begin, and the end
	types   []uint32 // of the segments
	of      []uint32 // the first segment of each node that has a list, and the end
	numbers []uint32 // 0, 1, 2, …

	dense                     dense.Lists
	nbrs, kinds, rows, weight []uint32
	columns                   []float32
}

// sort returns the batch, which has count segments, with the entries of each list in the order of
// their types, as a program reads them. It takes O(entries) where lists are short, and else
// O(n log n) for a list of n.
func (s *segments) sort(in *Input, p *Program, count int) *Input {
	d := in.Dense
	lists := d.Inner()
	s.of = mem.Resized(s.of, lists+1)
	s.off, s.types = mem.Resized(s.off, count+1), mem.Resized(s.types, count)
	sorted := sortedByType(d)
	if !sorted {
		s.order = mem.Resized(s.order, len(d.ReprMap))
	}
	n := uint32(0)
	for i := range lists {
		s.of[i] = n
		first, end := d.NbrOffsets[i], d.NbrOffsets[i+1]
		if !sorted {
			sortByType(s.order[first:end], d.Types, first)
		}
		for e := first; e < end; e++ {
			t := d.Types[e]
			if !sorted {
				t = d.Types[s.order[e]]
			}
			if e == first || t != s.types[n-1] {
				s.off[n], s.types[n] = e, t
				n++
			}
		}
	}
	s.of[lists], s.off[n] = n, uint32(len(d.ReprMap))
	if sorted {
		return in
	}
	return s.permuted(in, p)
}

// count makes room for the first numbers.
func (s *segments) count(n int) {
	if len(s.numbers) < n {
		s.numbers = mem.Resized(s.numbers, n)
		for i := range s.numbers {
			s.numbers[i] = uint32(i)
		}
	}
}

// sortedByType reports whether the entries of each list are in the order of their types already, as
// those of typed stores are.
func sortedByType(d *dense.Lists) bool {
	for i := range d.Inner() {
		if !slices.IsSorted(d.Types[d.NbrOffsets[i]:d.NbrOffsets[i+1]]) {
			return false
		}
	}
	return true
}

// sortByType numbers the entries from first on in the order of their types, and of their numbers.
func sortByType(order, types []uint32, first uint32) {
	const few = 32
	for k := range order {
		e := first + uint32(k)
		if order[k] = e; len(order) > few {
			continue
		}
		at := k
		for ; at > 0 && types[order[at-1]] > types[e]; at-- {
			order[at] = order[at-1]
		}
		order[at] = e
	}
	if len(order) > few {
		slices.SortFunc(order, func(a, b uint32) int {
			return cmp.Or(cmp.Compare(types[a], types[b]), cmp.Compare(a, b))
		})
	}
}

// permuted puts what a program reads of entries in their order.
func (s *segments) permuted(in *Input, p *Program) *Input {
	to := *in
	s.dense = *in.Dense
	to.Dense = &s.dense
	s.dense.ReprMap = s.moved(&s.nbrs, in.Dense.ReprMap)
	if p.Reads(EdgeType) || p.Reads(TypeShare) {
		s.dense.Types = s.moved(&s.kinds, in.Dense.Types)
	}
	if p.Reads(EdgeWeight) {
		weights := mem.View[uint32](mem.BytesOf(in.Dense.Weights))
		s.dense.Weights = mem.View[float32](mem.BytesOf(s.moved(&s.weight, weights)))
	}
	if n := p.columns; n > 0 {
		s.columns = mem.Resized(s.columns, n*len(s.order))
		for k, e := range s.order {
			copy(s.columns[k*n:][:n], in.Dense.Columns[int(e)*n:])
		}
		s.dense.Columns = s.columns
	}
	if p.inPlace && in.Cut.Dim == 0 {
		to.Rows = s.moved(&s.rows, in.Rows)
	}
	return &to
}

func (s *segments) moved(to *[]uint32, from []uint32) []uint32 {
	*to = mem.Resized(*to, len(from))
	for k, e := range s.order {
		(*to)[k] = from[e]
	}
	return *to
}

// listed returns where lists of a hop begin among entries, with the end, and what all entries name.
func (s *segments) listed(l List, d *dense.Lists) (off, names []uint32) {
	first := d.NodeIDOffsets[l.Hop+1] - d.NodeIDOffsets[1]
	names = d.ReprMap
	if l.Itself {
		names = s.numbers[:len(names)]
	}
	switch l.of {
	case toSegments:
		return s.off[s.of[first]:], names
	case toNodes:
		return s.of[first:], s.numbers[:len(s.types)]
	}
	return d.NbrOffsets[first:], names
}

// words returns the memory, in words of 4 bytes.
func (s *segments) words() (n int) {
	for _, x := range [][]uint32{s.order, s.off, s.types, s.of, s.numbers, s.nbrs, s.kinds, s.rows,
		s.weight} {
		n += cap(x)
	}
	return n + cap(s.columns)
}

// numbered returns how many rows the program numbers that lists name one after the other.
func (p *Program) numbered(s *Sizes) (n int) {
	if p.sorts {
		n = s.Segments[0]
	}
	itself := slices.ContainsFunc(p.lists, func(l listUse) bool { return l.Itself })
	if itself && len(s.Entries) > 0 {
		n = max(n, s.Entries[0]+s.Nodes[1])
	}
	return n
}

// sortWords returns how many words of 4 bytes sorted entries take for a batch of such sizes.
func (p *Program) sortWords(s *Sizes) int {
	if !p.sorts {
		return p.numbered(s)
	}
	each := 2 + p.columns
	for _, moved := range []bool{p.Reads(EdgeType) || p.Reads(TypeShare), p.Reads(EdgeWeight),
		p.inPlace} {
		if moved {
			each++
		}
	}
	return each*s.Entries[0] + 2*s.Segments[0] + p.numbered(s) + 1 + s.Nodes[1] + 1
}

// countSegments counts the segments of the lists of each hop: none where no list has an entry.
func (s *Sizes) countSegments(d *dense.Lists) {
	s.Segments = s.Segments[:0]
	if len(d.ReprMap) == 0 {
		s.Segments = append(s.Segments, make([]int, d.Layers())...)
	}
	if len(d.Types) == 0 {
		return
	}
	var seen []uint32 // one more than the last list that had each type
	hop, n := d.Layers()-1, 0
	s.Segments = append(s.Segments, make([]int, d.Layers())...)
	for i := d.Inner() - 1; i >= 0; i-- {
		for ; i+int(d.NodeIDOffsets[1]) < int(d.NodeIDOffsets[hop+1]); hop-- {
			s.Segments[hop] = n
		}
		last := -1
		for _, t := range d.Types[d.NbrOffsets[i]:d.NbrOffsets[i+1]] {
			if int(t) == last {
				continue
			}
			last = int(t)
			if last >= len(seen) {
				seen = append(seen, make([]uint32, last+1-len(seen))...)
			}
			if seen[t] != uint32(i)+1 {
				seen[t] = uint32(i) + 1
				n++
			}
		}
	}
	for ; hop >= 0; hop-- {
		s.Segments[hop] = n
	}
}
