package engine

import (
	"context"
	"slices"
	"sync/atomic"

	"gdb/internal/pace"
	"gdb/shell/cypher/adjacency"
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/vector"
)

// factor counts the values of a node of the pattern that nothing but counting wants: how often it
// stands in the lists of all legs, and in none of minus, each time as often as its own factors say.
type factor struct {
	node        int
	legs, minus []*rel
	// ring is a cycle that is counted instead, whose relationships of its first node are legs.
	ring *ring
	// twin is a factor over the same list, whose relationship is another.
	twin *factor
	// unlike are nodes that the node is not, and used relationships that are not that of legs[0].
	unlike   []int
	used     []*rel
	parts    []*factor // of the node itself
	optional bool      // counts 1 if there is nothing to count
	trivial  bool      // each entry of a list counts 1

	// memo holds the counts of a factor with one leg, by node, less 1; nil for one that is not
	// kept.
	memo  []int64
	first uint32
}

// settle finds out what is the same for all lists of a factor, once these are there. Where keep is
// set, counts that take more than a look at a degree are kept, as long as there is memory.
func (f *factor) settle(p *pattern, src Source, keep bool) {
	n := p.nodes[f.node]
	l := f.legs[0].outline
	f.trivial = len(f.parts) == 0 && n.check == nil &&
		(l.Entries == 0 || n.set.Covers(l.Least, l.Most))
	for _, part := range f.parts {
		part.settle(p, src, keep)
	}
	if f.twin != nil {
		f.twin.settle(p, src, false)
	}
	owners := p.nodes[f.legs[0].owner].set.bounds()
	size := int64(owners.End - owners.From)
	if keep && !f.trivial && len(f.legs) == 1 && len(f.minus) == 0 && src.Grow(8*size) == nil {
		f.memo, f.first = make([]int64, size), owners.From
	}
}

// isDegree reports whether the factor is the length of a list.
func (f *factor) isDegree() bool {
	return f.trivial && !f.optional && f.twin == nil && len(f.legs) == 1 &&
		len(f.minus)+len(f.unlike)+len(f.used) == 0
}

// counted is the count of a factor for a node.
type counted struct {
	of uint32
	n  int64
}

// counter computes factors for one goroutine.
type counter struct {
	p      *pattern
	env    *vector.Env
	lists  workerLists
	nodes  uint64 // of the graph
	marks  map[*factor]*adjacency.Mark
	paths  map[*ring]*adjacency.Paths
	last   map[*factor]counted
	ctx    context.Context
	steps  pace.Steps
	grow   func(bytes int64) error
	zs     []uint32 // scratch
	common []uint32
}

// weight returns how often a value of the node of f counts.
func (c *counter) weight(f *factor, v uint32) (int64, error) {
	if ok, err := c.p.nodes[f.node].passes(c.env, v); err != nil || !ok {
		return 0, err
	}
	n := int64(1)
	for _, part := range f.parts {
		m, err := c.one(part, v)
		if err != nil || m == 0 {
			return 0, err
		}
		n *= m
	}
	return n, nil
}

// passes reports whether a node may have a value.
func (n *node) passes(env *vector.Env, v uint32) (bool, error) {
	if !n.set.Has(v) {
		return false, nil
	}
	if n.check == nil {
		return true, nil
	}
	return n.check.has(env, v)
}

// one returns the count of a factor with one leg, from the list of v.
func (c *counter) one(f *factor, v uint32) (n int64, err error) {
	if f.memo != nil {
		if n := atomic.LoadInt64(&f.memo[v-f.first]); n != 0 {
			return n - 1, nil
		}
	}
	if !f.trivial && f.memo == nil { // rows of a node follow one another
		if last, ok := c.last[f]; ok && last.of == v {
			return last.n, nil
		}
	}
	l := c.lists[f.legs[0].id]
	lo, hi := l.Of(v)
	switch {
	case f.trivial:
		n = int64(hi - lo)
		if f.twin != nil {
			n, err = c.twins(f, l.Nbr[lo:hi], n)
		}
	case f.twin != nil:
		n, err = c.twins(f, l.Nbr[lo:hi], -1)
	default:
		n, err = c.sum(f, l.Nbr[lo:hi])
	}
	if err != nil {
		return 0, err
	}
	if f.optional {
		n = max(n, 1)
	}
	if f.memo != nil {
		atomic.StoreInt64(&f.memo[v-f.first], n+1)
	} else if !f.trivial {
		c.last[f] = counted{v, n}
	}
	return n, nil
}

// sum returns the weights of some neighbors.
func (c *counter) sum(f *factor, nbrs []uint32) (n int64, err error) {
	for _, u := range nbrs {
		w, err := c.weight(f, u)
		if err != nil {
			return 0, err
		}
		n += w
	}
	return n, nil
}

// twins counts pairs of different entries of a list. first is the count of f if it is known.
func (c *counter) twins(f *factor, nbrs []uint32, first int64) (int64, error) {
	if first >= 0 && f.twin.trivial {
		return first * (first - 1), nil
	}
	var a, b, same int64
	for _, u := range nbrs {
		x, err := c.weight(f, u)
		if err != nil {
			return 0, err
		}
		y, err := c.weight(f.twin, u)
		if err != nil {
			return 0, err
		}
		a, b, same = a+x, b+y, same+x*y
	}
	return a*b - same, nil
}

// count returns the count of a factor for a row.
func (c *counter) count(f *factor, b *batch, row int) (int64, error) {
	v := b.nodes[f.legs[0].owner][row]
	if f.ring != nil {
		return c.ring(f.ring, v)
	}
	if len(f.legs) == 1 && len(f.minus) == 0 {
		n, err := c.one(f, v)
		if err != nil || n == 0 || len(f.unlike)+len(f.used) == 0 {
			return n, err
		}
		m, err := c.excluded(f, b, row)
		return n - m, err
	}
	n, err := c.joined(f, b, row)
	if err != nil || n == 0 || len(f.unlike)+len(f.used) == 0 {
		return n, err
	}
	m, err := c.excluded(f, b, row)
	return n - m, err
}

// excluded returns what counts for nodes that are not to be counted: those that unlike names, and
// the ends of relationships that are used.
func (c *counter) excluded(f *factor, b *batch, row int) (n int64, err error) {
	c.zs = c.zs[:0]
	for _, i := range f.unlike {
		if z := b.nodes[i][row]; !slices.Contains(c.zs, z) {
			m, err := c.times(f, b, row, z, -1)
			if err != nil {
				return 0, err
			}
			n += m
			c.zs = append(c.zs, z)
		}
	}
	for _, q := range f.used {
		z, ok := f.end(q, b, row)
		if !ok || slices.Contains(c.zs, z) {
			continue
		}
		m, err := c.times(f, b, row, z, 1)
		if err != nil {
			return 0, err
		}
		n += m
	}
	return n, nil
}

// end returns the neighbor in the list of legs[0] that a relationship stands for; false if it is
// not in that list.
func (f *factor) end(q *rel, b *batch, row int) (uint32, bool) {
	r := f.legs[0]
	owner := b.nodes[r.owner][row]
	from, to := b.nodes[q.from][row], b.nodes[q.to][row]
	either := q.undirected || r.side == ast.Both
	if from == owner && (either || r.side == ast.Out) {
		return to, true
	}
	return from, to == owner && (either || r.side == ast.In)
}

// times returns how often a node counts: for each of its entries, or for most of them.
func (c *counter) times(f *factor, b *batch, row int, z uint32, most int64) (int64, error) {
	n := int64(1)
	for _, r := range f.legs {
		lo, hi := c.lists[r.id].Find(b.nodes[r.owner][row], z)
		n *= int64(hi - lo)
	}
	if n == 0 {
		return 0, nil
	}
	for _, r := range f.minus {
		if lo, hi := c.lists[r.id].Find(b.nodes[r.owner][row], z); lo < hi {
			return 0, nil
		}
	}
	if most > 0 {
		n = min(n, most)
	}
	w, err := c.weight(f, z)
	return n * w, err
}

// joined counts what is in the lists of all legs and in none of minus.
func (c *counter) joined(f *factor, b *batch, row int) (n int64, err error) {
	m := c.markOf(f)
	spans := func(rels []*rel, i int) adjacency.Span {
		return c.lists.span(rels[i], b.nodes[rels[i].owner][row])
	}
	a := spans(f.legs, 0)
	simple := f.trivial && !c.multi(f)
	if simple && len(f.legs) == 2 && len(f.minus) == 0 {
		return m.Common(a, spans(f.legs, 1)), nil
	}
	if simple && len(f.legs) == 1 && len(f.minus) == 1 {
		return int64(len(a.Nbr)) - m.Common(a, spans(f.minus, 0)), nil
	}
	us := a.Nbr
	if len(f.legs) > 1 {
		c.common = m.Intersect(a, spans(f.legs, 1), c.common[:0])
		us = c.common
	}
	last := vector.NoNode
	for _, u := range us {
		if u == last {
			continue
		}
		last = u
		k, err := c.times(f, b, row, u, -1)
		if err != nil {
			return 0, err
		}
		n += k
	}
	return n, nil
}

// multi reports whether a list of a factor may have a neighbor twice.
func (c *counter) multi(f *factor) bool {
	for _, r := range f.legs {
		if c.lists[r.id].Multi {
			return true
		}
	}
	for _, r := range f.minus {
		if c.lists[r.id].Multi {
			return true
		}
	}
	return false
}

func (c *counter) markOf(f *factor) *adjacency.Mark {
	m := c.marks[f]
	if m == nil {
		m = adjacency.NewMark(c.nodes)
		c.marks[f] = m
	}
	return m
}
