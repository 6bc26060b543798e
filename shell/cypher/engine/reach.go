package engine

import (
	"context"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/value"
)

// noEntry is the entry of a node that a search begins at, and of a relationship that is null.
const noEntry = ^uint32(0)

// Reach searches in breadth over lists. It is false if the source cannot read these. It takes 9
// bytes a node.
func (e *Engine) Reach(ctx context.Context, q plain.Search, yield func(node int64, hops int,
	path func() []value.Rel) error) (bool, error) {
	f, err := newReacher(ctx, e.Source, q.Dir, q.Types)
	if f == nil || err != nil {
		return false, err
	}
	return true, f.run(ctx, q, yield)
}

// reacher has the lists that searches follow. Several goroutines may run it.
type reacher struct {
	*plan
	r *rel
}

// newReacher returns a reacher; nil if the source cannot read the lists.
func newReacher(ctx context.Context, src Source, dir ast.Direction,
	types []string) (*reacher, error) {
	if src.Undirected() {
		dir = ast.Both
	}
	all := everything(src.Nodes())
	r := &rel{types: src.Types(types, all, all), side: dir}
	f := &reacher{&plan{p: &pattern{rels: []*rel{r}}, src: src}, r}
	if ok, err := f.reach(ctx, r); !ok || err != nil {
		return nil, err
	}
	return f, nil
}

func (f *reacher) run(ctx context.Context, q plain.Search,
	yield func(int64, int, func() []value.Rel) error) error {
	nodes := int64(f.src.Nodes())
	if err := f.src.Grow(9 * nodes); err != nil {
		return err
	}
	defer f.src.Grow(-9 * nodes)
	s := &search{r: f.r, src: f.src, by: make([]uint32, nodes), up: make([]uint32, nodes),
		seen: make([]bool, nodes), w: &worker{plan: f.plan, ctx: ctx, lists: f.workerLists()}}
	defer s.w.release()
	return s.run(ctx, q, yield)
}

// reach gets the lists of a relationship that a search follows; false if there are none to read.
func (pl *plan) reach(ctx context.Context, r *rel) (bool, error) {
	r.outline = pl.src.Outline(r.side, r.types)
	pl.reads = r.outline != nil && !pl.src.InMemory([]Want{r.want()}, float64(pl.src.Nodes()))
	if pl.reads {
		return true, pl.sizes()
	}
	var err error
	if r.lists, err = pl.src.Lists(ctx, r.side, r.types); r.lists == nil && err == nil {
		pl.reads = r.outline != nil
		return pl.reads, pl.sizes()
	}
	return r.lists != nil, err
}

// search is a search in breadth.
type search struct {
	r      *rel
	src    Source
	by, up []uint32 // the entry that led to a node, and the node before it
	seen   []bool
	w      *worker
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
		var err error
		if level, err = s.next(level, target); err != nil {
			return err
		}
	}
	return nil
}

// next returns the nodes that are one hop farther, or only the target if it is one.
func (s *search) next(level []uint32, target int64) (out []uint32, err error) {
	for at := 0; at < len(level); at += batchRows {
		part := level[at:min(at+batchRows, len(level))]
		rows := &batch{n: len(part), nodes: [][]uint32{part}}
		err := s.w.with(s.w.p.rels, nil, rows, func(from, to int) error {
			return s.hop(part[from:to], target, &out)
		})
		if err != nil {
			return nil, err
		}
		if len(out) > 0 && int64(out[len(out)-1]) == target {
			return out[len(out)-1:], nil
		}
	}
	return out, nil
}

// hop appends the neighbors of some nodes that were not seen, the target as the last if it is one.
func (s *search) hop(part []uint32, target int64, out *[]uint32) error {
	if len(*out) > 0 && int64((*out)[len(*out)-1]) == target {
		return nil
	}
	l := s.w.lists[s.r.id]
	for _, v := range part {
		lo, hi := l.Of(v)
		for i := lo; i < hi; i++ {
			u := l.Nbr[i]
			if s.seen[u] {
				continue
			}
			by, err := s.r.entry(l, i)
			if err != nil {
				return err
			}
			s.seen[u], s.by[u], s.up[u] = true, by, v
			*out = append(*out, u)
			if int64(u) == target {
				return nil
			}
		}
	}
	return nil
}

// path returns the relationships that lead to a node.
func (s *search) path(v uint32, hops int) []value.Rel {
	out := make([]value.Rel, hops)
	for i := hops - 1; i >= 0; i-- {
		out[i] = s.src.Rel(s.r.identityOf(s.by[v], s.up[v], v, s.src.Undirected()))
		v = s.up[v]
	}
	return out
}
