package engine

import (
	"context"
	"math"
	"slices"
	"sync/atomic"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/group"
)

// dense counts the rows of each node of a range, in 8 bytes a node: groups by a node of which only
// counts are wanted, where there are too many for groups of their own.
type dense struct {
	node   int // of the pattern
	of     Range
	counts []int64
}

// denseNode returns the node by which rows can be counted so; -1 if there is none.
func (pl *plan) denseNode(g *grouping) int {
	p := pl.p
	if p.in != nil || p.shortest != nil || len(g.by) != 1 || !g.exact || p.nodes[g.by[0]].anchored {
		return -1
	}
	if slices.ContainsFunc(g.calls, func(c *ast.Call) bool {
		return c.Name != "count" || len(c.Args) > 0
	}) {
		return -1
	}
	return g.by[0]
}

// many reports whether as many groups as the node has values would not fit.
func (c *collector) many() bool {
	last := c.steps[len(c.steps)-1]
	groups := min(last.rows, float64(c.p.nodes[c.node].set.Len()))
	return c.reads && groups*groupBytes > float64(c.src.Free())
}

// endDense counts rows, for a range of nodes after another, as many as there is memory for, and
// hands on the groups in the order of the nodes.
func (c *collector) endDense(ctx context.Context,
	yield func(first *eval.Scope, results []any) error) error {
	n := c.p.nodes[c.node]
	whole := n.set
	defer func() { n.set = whole }()
	bounds := whole.bounds()
	most := max(c.src.Free()/2/8, batchRows)
	size := min(most, int64(bounds.End-bounds.From))
	if err := c.env.Row.Grow(8 * size); err != nil {
		return err
	}
	d := &dense{node: c.node, counts: make([]int64, size)}
	for at := int64(bounds.From); at < int64(bounds.End); at += size {
		clear(d.counts)
		d.of = Range{uint32(at), uint32(min(at+size, int64(bounds.End)))}
		n.set = whole.and(Set{Ranges: []Range{d.of}})
		err := c.turns.each(ctx, c.plan, func() error {
			return c.plan.run(ctx, c.env, c.src.Threads(), func() sink { return c.sinks(c.env, d) })
		})
		if err != nil {
			return err
		}
		if err := c.handDense(ctx, d, yield); err != nil {
			return err
		}
	}
	return c.env.Row.Grow(-8 * size)
}

func (c *collector) handDense(ctx context.Context, d *dense,
	yield func(first *eval.Scope, results []any) error) error {
	row := &batch{p: c.p, src: c.src, n: 1, nodes: make([][]uint32, len(c.p.nodes)),
		ents: make([][]uint32, len(c.p.rels))}
	results := make([]any, len(c.g.calls))
	last := c.top.last(d.counts)
	for i, n := range d.counts {
		if n == 0 || c.top.after(n, last) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for k := range results {
			results[k] = n
		}
		row.nodes[d.node] = []uint32{d.of.From + uint32(i)}
		if err := yield(row.Scope(0), slices.Clone(results)); err != nil {
			return err
		}
	}
	return nil
}

// last returns the last of some counts that is among the first; the most there is if all are.
func (t *top) last(counts []int64) int64 {
	if t == nil || t.n == 0 {
		return math.MaxInt64
	}
	var first []int64
	last := int64(math.MaxInt64)
	for _, n := range counts {
		if n == 0 || t.after(n, last) {
			continue
		}
		if first = append(first, t.rank(n)); len(first) == t.n+firstSpare {
			slices.Sort(first)
			first = first[:t.n]
			last = first[t.n-1]
		}
	}
	if len(first) < t.n {
		return math.MaxInt64
	}
	slices.Sort(first)
	return first[t.n-1]
}

// rank returns what is less for a count that comes earlier.
func (t *top) rank(n int64) int64 {
	if t.desc {
		return -n
	}
	return n
}

// after reports whether a count comes after the last that is among the first.
func (t *top) after(n, last int64) bool { return last != math.MaxInt64 && t.rank(n) > last }

// take counts rows. Several threads call it.
func (d *dense) take(_ int, b *batch) error {
	for i, v := range b.nodes[d.node][:b.n] {
		if atomic.AddInt64(&d.counts[v-d.of.From], b.times[i]) < 0 {
			return group.ErrMany
		}
	}
	return nil
}

func (d *dense) end(int) error { return nil }
