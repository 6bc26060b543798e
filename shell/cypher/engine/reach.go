package engine

import (
	"context"
	"slices"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/value"
)

// noEntry is the entry of a node that a search begins at, and of a relationship that is null.
const noEntry = ^uint32(0)

// Reach searches in breadth over lists. It is false if the source cannot read these. It takes 13
// bytes a node.
func (e *Engine) Reach(ctx context.Context, q plain.Search, yield func(node int64, hops int,
	path func() []value.Rel) error) (bool, error) {
	f, err := newReacher(ctx, e.Source, q.Dir, q.Types)
	if f == nil || err != nil {
		return false, err
	}
	return true, f.run(ctx, q, yield)
}

// reacher has the lists that searches follow. Several goroutines may run it. With lengths its
// searches know no paths, and take 5 bytes a node.
type reacher struct {
	*plan
	r       *rel
	lengths bool
}

// newReacher returns a reacher; nil if the source cannot read the lists.
func newReacher(ctx context.Context, src Source, dir ast.Direction,
	types []string) (*reacher, error) {
	if src.Undirected() {
		dir = ast.Both
	}
	all := everything(src.Nodes())
	r := &rel{types: src.Types(types, all, all), side: dir}
	f := &reacher{plan: &plan{p: &pattern{rels: []*rel{r}}, src: src, most: batchRows}, r: r}
	if ok, err := f.reach(ctx, r); !ok || err != nil {
		return nil, err
	}
	return f, nil
}

func (f *reacher) run(ctx context.Context, q plain.Search,
	yield func(int64, int, func() []value.Rel) error) error {
	nodes := int64(f.src.Nodes())
	bytes := 5 * nodes
	if !f.lengths {
		bytes += 8 * nodes
	}
	if err := f.src.Grow(bytes); err != nil {
		return err
	}
	defer f.src.Grow(-bytes)
	s := &search{r: f.r, src: f.src, seen: make([]bool, nodes), met: make([]uint32, 0, nodes),
		w: &worker{plan: f.plan, ctx: ctx, lists: f.workerLists()}}
	if !f.lengths {
		s.by, s.up = make([]uint32, nodes), make([]uint32, nodes)
	}
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
	by, up []uint32 // the entry that led to a node, and the node before it; nil without paths
	seen   []bool
	met    []uint32 // the nodes that were seen, level by level
	w      *worker
}

func (s *search) run(ctx context.Context, q plain.Search,
	yield func(node int64, hops int, path func() []value.Rel) error) error {
	from, target := uint32(q.From), q.Target
	s.seen[from], s.met = true, append(s.met, from)
	begun := 0 // where the level begins
	for hops := 0; begun < len(s.met); hops++ {
		level := s.met[begun:]
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
		begun = len(s.met)
		if err := s.next(level, target); err != nil {
			return err
		}
		if s.found(target) {
			begun = len(s.met) - 1
		}
	}
	return nil
}

// found reports whether the target is the node that was met last.
func (s *search) found(target int64) bool { return int64(s.met[len(s.met)-1]) == target }

// next meets the nodes that are one hop farther, up to the target. Lists are read in the order of
// the file, so that a large level reads it once.
func (s *search) next(level []uint32, target int64) error {
	if s.w.reads {
		slices.Sort(level)
	}
	for at := 0; at < len(level) && !s.found(target); at += s.w.most {
		part := level[at:min(at+s.w.most, len(level))]
		rows := &batch{n: len(part), nodes: [][]uint32{part}}
		err := s.w.with(s.w.p.rels, nil, rows, func(from, to int) error {
			return s.hop(part[from:to], target)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// hop meets the neighbors of some nodes that were not seen, the target as the last if it is one.
func (s *search) hop(part []uint32, target int64) error {
	if s.found(target) {
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
			s.seen[u], s.met = true, append(s.met, u)
			if s.up != nil {
				by, err := s.r.entry(l, i)
				if err != nil {
					return err
				}
				s.by[u], s.up[u] = by, v
			}
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
