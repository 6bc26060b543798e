package engine

import (
	"context"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/value"
)

// noEntry is the entry of a node that a search begins at, and of a relationship that is null.
const noEntry = ^uint32(0)

// Reach searches in breadth over lists in memory. It is false without memory for these. It takes 9
// bytes a node.
func (e *Engine) Reach(ctx context.Context, q plain.Search, yield func(node int64, hops int,
	path func() []value.Rel) error) (bool, error) {
	src, dir := e.Source, q.Dir
	if src.Undirected() {
		dir = ast.Both
	}
	all := everything(src.Nodes())
	r := &rel{types: src.Types(q.Types, all, all), side: dir}
	var err error
	if r.lists, err = src.Lists(ctx, dir, r.types); r.lists == nil || err != nil {
		return false, err
	}
	nodes := int64(src.Nodes())
	if err := src.Grow(9 * nodes); err != nil {
		return false, err
	}
	defer src.Grow(-9 * nodes)
	s := &search{r: r, src: src, by: make([]uint32, nodes), up: make([]uint32, nodes),
		seen: make([]bool, nodes)}
	return true, s.run(ctx, q, yield)
}

// search is a search in breadth.
type search struct {
	r      *rel
	src    Source
	by, up []uint32 // the entry that led to a node, and the node before it
	seen   []bool
}

func (s *search) run(ctx context.Context, q plain.Search,
	yield func(int64, int, func() []value.Rel) error) error {
	from, target := uint32(q.From), q.Target
	s.seen[from], s.by[from] = true, noEntry
	level := []uint32{from}
	for hops := 0; len(level) > 0; hops++ {
		for _, v := range level {
			if target >= 0 && int64(v) != target {
				continue
			}
			err := yield(int64(v), hops, func() []value.Rel { return s.path(v, hops) })
			if err != nil || int64(v) == target {
				return err
			}
		}
		if hops == q.Most {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		level = s.next(level, target)
	}
	return nil
}

// next returns the nodes that are one hop farther, or only the target if it is one.
func (s *search) next(level []uint32, target int64) (out []uint32) {
	l := s.r.lists
	for _, v := range level {
		lo, hi := l.Of(v)
		for i := lo; i < hi; i++ {
			u := l.Nbr[i]
			if s.seen[u] {
				continue
			}
			s.seen[u], s.by[u], s.up[u] = true, i, v
			if int64(u) == target {
				return []uint32{u}
			}
			out = append(out, u)
		}
	}
	return out
}

// path returns the relationships that lead to a node.
func (s *search) path(v uint32, hops int) []value.Rel {
	out := make([]value.Rel, hops)
	for i := hops - 1; i >= 0; i-- {
		id := s.r.identityOf(s.by[v], s.up[v], s.src.Undirected())
		out[i] = s.src.Rel(id.from, id.to, id.typ, id.number)
		v = s.up[v]
	}
	return out
}
