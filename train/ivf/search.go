package ivf

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"gdb/compute/kernel"
	"gdb/compute/kernel/pq"
)

// Query is what is searched for.
type Query struct {
	// Row is the vector.
	Row []float32
	// Probes is how many lists are looked at, and Most how many candidates are returned.
	Probes, Most int
	// Allow reports whether a node may be a candidate; nil allows all.
	Allow func(node uint32) bool
}

// Candidate is a node whose vector may be among the closest, and the checksum of its vector in an
// index with checksums.
type Candidate struct{ Node, Sum uint32 }

const (
	// listsOfProbe is with how many lists a query is compared, for each that is looked at, and
	// listsShareLeast the least share of all lists.
	listsOfProbe    = 16
	listsShareLeast = 8
)

// search is what a search computes with. It is used by one at a time.
type search struct {
	row    []float32
	scores []float32
	groups closest
	lists  closest
	found  closest
	table  pq.Table
	masks  []uint32
	sums   []uint16
	blocks []uint32
	frames []int32
}

// Candidates returns the nodes whose vectors seem to be the closest, the closest first.
func (x *Index) Candidates(ctx context.Context, q Query) (out []Candidate, err error) {
	s, err := x.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { x.free <- s }()
	found, err := x.run(ctx, s, q)
	if err != nil {
		return nil, err
	}
	out = make([]Candidate, len(found))
	for i, f := range found {
		out[i] = Candidate{f.id, f.sum}
	}
	return out, nil
}

// begin waits for a turn to search, and returns what to search with. The caller gives it back to
// x.free.
func (x *Index) begin(ctx context.Context) (s *search, err error) {
	select {
	case s = <-x.free:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s == nil {
		s = &search{scores: make([]float32, max(x.Groups, x.Lists)),
			masks: make([]uint32, x.perBlock()), sums: make([]uint16, x.perBlock()*pq.Group)}
	}
	return s, nil
}

// sumProbes is among how many lists a vector is looked for: it is in the closest one, but for
// rounding.
const sumProbes = 64

// Sum returns the checksum of the vector of a node, which is row; false if no list near the vector
// has the node.
func (x *Index) Sum(ctx context.Context, node uint32, row []float32) (sum uint32, found bool,
	err error) {
	s, err := x.begin(ctx)
	if err != nil {
		return 0, false, err
	}
	defer func() { x.free <- s }()
	s.row = append(s.row[:0], row...)
	prepare(s.row, x.Dim, x.By)
	for _, list := range x.closestLists(s, sumProbes, false) {
		err := x.each(ctx, s, list, func(block []byte, first, n int) {
			for i := first; i < first+n; i++ {
				g := x.group(block, i)
				for e, v := range g.nodes {
					if v == node && !math.IsInf(float64(g.bias[e]), -1) && g.sums != nil {
						sum, found = g.sums[e], true
					}
				}
			}
		})
		if found || err != nil {
			return sum, found, err
		}
	}
	return 0, false, nil
}

// run searches. What it returns is valid until s is used again.
func (x *Index) run(ctx context.Context, s *search, q Query) ([]scored, error) {
	s.row = append(s.row[:0], q.Row...)
	prepare(s.row, x.Dim, x.By)
	s.found.reset(max(1, q.Most))
	s.table.Make(x.book, s.row, 1)
	lists := x.closestLists(s, max(1, q.Probes), x.By == Dot)
	for len(lists) > 0 {
		n, err := x.some(ctx, s, lists, q.Allow)
		if err != nil {
			return nil, err
		}
		lists = lists[n:]
	}
	return s.found.sort(), nil
}

// closestLists returns the lists whose centers are closest, the closest first.
// By products, or by distances.
func (x *Index) closestLists(s *search, probes int, byProducts bool) []scored {
	t := x.tree
	probes = min(probes, x.Lists)
	want := max(listsOfProbe*probes, x.Lists/listsShareLeast)
	products(x.pool, s.scores, t.groups, s.row)
	s.groups.reset(x.Groups)
	for g, v := range s.scores[:x.Groups] {
		if !byProducts {
			v -= t.groupHalf[g]
		}
		s.groups.add(scored{score: v, id: uint32(g)})
	}
	s.lists.reset(probes)
	for _, group := range s.groups.sort() {
		first, end := int(t.first[group.id]), int(t.first[group.id+1])
		scores := s.scores[:end-first]
		products(x.pool, scores, t.lists[first*t.dim:end*t.dim], s.row)
		for i, v := range scores {
			if !byProducts {
				v -= t.listHalf[first+i]
			}
			if v > s.lists.least {
				s.lists.add(scored{score: v, id: uint32(first + i)})
			}
		}
		if want -= end - first; want <= 0 {
			break
		}
	}
	return s.lists.sort()
}

// products writes the products of rows with one.
func products(pool *kernel.Pool, to, rows, row []float32) {
	n := len(rows) / len(row)
	kernel.GEMM(pool, to[:n], rows, row, kernel.Shape{M: n, K: len(row), N: 1})
}

// some looks up the codes of some lists, the first ones, as many as there are frames for, and
// returns their number. Of a list that has more blocks, it goes through these in parts.
func (x *Index) some(ctx context.Context, s *search, lists []scored,
	allow func(node uint32) bool) (n int, err error) {
	most, per := x.blocks.most(), uint32(x.perBlock())
	s.blocks = s.blocks[:0]
	for n < len(lists) {
		first, end := x.starts[lists[n].id], x.starts[lists[n].id+1]
		if first == end {
			n++
			continue
		}
		from, to := first/per, (end-1)/per
		if len(s.blocks)+int(to-from)+1 > most {
			break
		}
		for b := from; b <= to; b++ {
			s.blocks = append(s.blocks, b)
		}
		n++
	}
	if n == 0 { // its list is longer than that
		return 1, x.each(ctx, s, lists[0], func(block []byte, first, n int) {
			x.look(s, lists[0].score+s.table.Sum, part{block, first, n}, allow)
		})
	}
	slices.Sort(s.blocks)
	s.blocks = slices.Compact(s.blocks)
	return n, x.pinned(ctx, s, func() {
		for _, list := range lists[:n] {
			x.parts(s, x.starts[list.id], x.starts[list.id+1], func(block []byte, first, n int) {
				x.look(s, list.score+s.table.Sum, part{block, first, n}, allow)
			})
		}
	})
}

// each calls fn with the groups of a list: n of a block, from the first on.
func (x *Index) each(ctx context.Context, s *search, list scored,
	fn func(block []byte, first, n int)) error {
	first, end := x.starts[list.id], x.starts[list.id+1]
	per := uint32(x.perBlock())
	for first < end {
		from := first / per
		next := min(end, (from+uint32(x.blocks.most()))*per)
		s.blocks = s.blocks[:0]
		for b := from; b <= (next-1)/per; b++ {
			s.blocks = append(s.blocks, b)
		}
		err := x.pinned(ctx, s, func() { x.parts(s, first, next, fn) })
		if err != nil {
			return err
		}
		first = next
	}
	return nil
}

// pinned calls fn while the blocks of s are in memory.
func (x *Index) pinned(ctx context.Context, s *search, fn func()) (err error) {
	s.frames, err = x.blocks.pin(ctx, s.blocks, s.frames[:0])
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		fn()
	}
	x.blocks.Unpin(s.frames)
	return err
}

// parts calls fn with groups of codes, by blocks, which are pinned.
func (x *Index) parts(s *search, first, end uint32, fn func(block []byte, first, n int)) {
	per := uint32(x.perBlock())
	for first < end {
		block := first / per
		n := min(end, (block+1)*per) - first
		at, _ := slices.BinarySearch(s.blocks, block)
		fn(x.blocks.Data(s.frames[at]), int(first%per), int(n))
		first += n
	}
}

// part is n groups of a block.
type part struct {
	block    []byte
	first, n int
}

// look looks up the codes of some groups.
func (x *Index) look(s *search, base float32, p part, allow func(node uint32) bool) {
	pq.Scan(s.masks, s.sums, pq.Groups{Shape: x.Shape, Count: p.n, Stride: x.stride(),
		Bytes: p.block[blockHead+p.first*x.stride():]}, s.table.Bytes, s.table.Scale,
		s.found.least-base)
	for i, mask := range s.masks[:p.n] {
		if mask == 0 {
			continue
		}
		g := x.group(p.block, p.first+i)
		for ; mask != 0; mask &= mask - 1 {
			e := bits.TrailingZeros32(mask)
			score := base + g.bias[e] + s.table.Scale*float32(s.sums[i*pq.Group+e])
			if score > s.found.least && (allow == nil || allow(g.nodes[e])) {
				f := scored{score: score, id: g.nodes[e]}
				if g.sums != nil {
					f.sum = g.sums[e]
				}
				s.found.add(f)
			}
		}
	}
}
