package engine

import (
	"context"

	"gdb/shell/cypher/vector"
)

// Where lists are read, what a factor counts below others is counted for all nodes first, in the
// order of the file, and kept: 8 bytes a node. Otherwise it would take lists in any order.

// sweeps reports whether the factors that hang at a node can be counted for all its values: there
// is memory for the counts, and the statement looks at most nodes anyway.
func (e *eliminator) sweeps(v int) bool {
	return e.whole && e.kept+e.counts(v) <= e.src.Free()/2
}

// counts returns the memory of what the factors that hang at a node count for each of its values.
func (e *eliminator) counts(v int) int64 {
	of := e.p.nodes[v].set.bounds()
	return 8 * int64(len(e.of[v])) * int64(of.End-of.From)
}

// looksAtAll reports whether a statement looks at most of its first nodes, wherever it begins.
func (p *pattern) looksAtAll(env *vector.Env) (bool, error) {
	if p.in != nil {
		return false, nil
	}
	for _, n := range p.nodes {
		if n.anchored || n.by != nil {
			return false, nil
		}
		if n.check == nil {
			continue
		}
		if share, err := n.check.share(env); share < selective || err != nil {
			return false, err
		}
	}
	return true, nil
}

// below returns the factors that are counted for all nodes before f.
func (f *factor) below() (out []*factor) {
	for _, part := range f.parts {
		out = append(append(out, part.below()...), part)
	}
	if f.twin != nil {
		out = append(out, f.twin.below()...)
	}
	return out
}

// sweep counts what factors count below others, once. A factor comes after those below it.
func (pl *plan) sweep(ctx context.Context, env *vector.Env) error {
	if !pl.reads || pl.swept {
		return nil
	}
	pl.swept = true
	for _, s := range pl.steps {
		for _, f := range s.factors {
			for _, part := range f.below() {
				if err := pl.countAll(ctx, env, part); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// countAll counts a factor for all values of the node at which it hangs.
func (pl *plan) countAll(ctx context.Context, env *vector.Env, f *factor) error {
	owners := pl.p.nodes[f.legs[0].owner].set
	bounds := owners.bounds()
	size := int64(bounds.End - bounds.From)
	if err := pl.src.Grow(8 * size); err != nil {
		return err
	}
	f.memo, f.first = make([]int64, size), bounds.From
	parts := owners.split(uint32(pl.most))
	begin := func(ctx context.Context) (func(i int) error, func()) {
		w := pl.newWorker(ctx, env, nil)
		return func(i int) error { return w.countPart(f, parts[i]) }, w.release
	}
	return pl.share(ctx, len(parts), pl.src.Threads(), begin)
}

// countPart counts a factor for the nodes of a range.
func (w *worker) countPart(f *factor, of Range) error {
	rows := &batch{n: int(of.End - of.From), nodes: make([][]uint32, len(w.p.nodes))}
	nodes := make([]uint32, rows.n)
	for i := range nodes {
		nodes[i] = of.From + uint32(i)
	}
	rows.nodes[f.legs[0].owner] = nodes
	return w.with(f.legs, nil, rows, func(from, to int) error {
		for _, v := range nodes[from:to] {
			if _, err := w.count.one(f, v); err != nil {
				return err
			}
		}
		return w.ctx.Err()
	})
}
