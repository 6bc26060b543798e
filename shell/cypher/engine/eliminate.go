package engine

import (
	"context"
	"slices"

	"gdb/shell/cypher/vector"
)

// eliminator turns nodes of a pattern into factors.
type eliminator struct {
	*plan
	joins bool              // whether factors may have several legs
	of    map[int][]*factor // factors by the node that they hang at
	depth map[int]int
	fixed map[int]bool // nodes that factors want
	found *factor      // what next found, for its node
	twin  *factor      // the factor that found is a twin of
	kept  int64        // memory of counts that are kept
}

// selective is the share of values below which a node is where a search begins, instead of being
// counted.
const selective = .1

// next returns the node that becomes a factor next: of those with the fewest factors below one
// another that with the most values; -1 if there is none.
func (e *eliminator) next(env *vector.Env) (int, error) {
	best, size := -1, 0.0
	left := 0
	for _, n := range e.p.nodes {
		if !n.gone {
			left++
		}
	}
	if left < 2 {
		return -1, nil
	}
	var found, twin *factor
	for v, n := range e.p.nodes {
		e.found, e.twin = &factor{node: v, parts: e.of[v]}, nil
		// What hangs at a node of a list that is read would have to be read for each.
		if n.gone || n.needed || n.anchored || n.bound || e.fixed[v] ||
			e.reads && len(e.of[v]) > 0 && !e.sweeps(v) || !e.fits(v) {
			continue
		}
		s, err := n.size(env)
		if err != nil {
			return 0, err
		}
		if n.check != nil && !n.outer && s < selective*float64(n.set.Len()) {
			continue
		}
		if best < 0 || e.depth[v] < e.depth[best] || e.depth[v] == e.depth[best] && s > size {
			best, size, found, twin = v, s, e.found, e.twin
		}
	}
	e.found, e.twin = found, twin
	return best, nil
}

// fits reports whether a node can be a factor, and fills it in.
func (e *eliminator) fits(v int) bool {
	f := e.found
	for _, r := range e.p.rels {
		if r.from != v && r.to != v {
			continue
		}
		if r.needed || !e.follows(r, r.from+r.to-v) {
			return false
		}
		if !e.p.nodes[r.from+r.to-v].gone {
			f.legs = append(f.legs, r)
		}
	}
	if len(f.legs) > 1 && !e.joins {
		return false
	}
	if len(f.legs) == 0 || !e.conditions(v) || !e.hangs(v) {
		return false
	}
	for _, r := range f.legs {
		for _, q := range e.p.rels {
			if e.p.mayEqual(r, q, e.src.Undirected()) && !e.conflict(f, r, q) {
				return false
			}
		}
	}
	if e.twin != nil {
		return len(f.legs) == 1 && len(f.unlike)+len(f.minus)+len(f.used) == 0
	}
	if len(f.legs) > 1 {
		return len(f.used) == 0 && (len(f.unlike) == 0 || !slices.ContainsFunc(f.legs,
			func(r *rel) bool { return r.outline.Multi }))
	}
	return len(f.used) == 0 || len(f.minus) == 0
}

// conditions reports whether a factor can hold the conditions of a node.
func (e *eliminator) conditions(v int) bool {
	f := e.found
	for _, c := range e.p.cross {
		if !slices.Contains(c.nodes, v) {
			continue
		}
		other := -1
		if len(c.nodes) == 2 {
			other = c.nodes[0] + c.nodes[1] - v
		}
		switch {
		case other < 0 || e.p.nodes[other].gone:
			return false
		case c.unequal:
			f.unlike = append(f.unlike, other)
		case c.edge != nil && c.not:
			f.minus = append(f.minus, c.edge)
		default:
			return false
		}
	}
	return true
}

// hangs reports whether what is left without a node hangs together as before.
func (e *eliminator) hangs(v int) bool {
	f := e.found
	seen := map[int]bool{v: true}
	var visit func(u int)
	visit = func(u int) {
		if seen[u] || e.p.nodes[u].gone {
			return
		}
		seen[u] = true
		for _, r := range e.p.rels {
			if r.from == u || r.to == u {
				visit(r.from + r.to - u)
			}
		}
		for o, n := range e.p.nodes { // a row has all that are bound
			if n.bound && e.p.nodes[u].bound {
				visit(o)
			}
		}
	}
	end := func(r *rel) int { return r.from + r.to - v }
	visit(end(f.legs[0]))
	return !slices.ContainsFunc(f.legs, func(r *rel) bool { return !seen[end(r)] })
}

// conflict reports whether a factor can keep its relationship r from being q.
func (e *eliminator) conflict(f *factor, r, q *rel) bool {
	if len(f.legs) > 1 || slices.Contains(f.legs, q) {
		return false
	}
	if !e.p.isGone(q) {
		f.used = append(f.used, q)
		// Where an edge that may lead either way is in lists of one direction is not known.
		either := e.src.Undirected() || r.undirected || !q.undirected
		return either && within(q.types, r.types)
	}
	if e.twin != nil || len(f.unlike)+len(f.minus)+len(f.used) > 0 {
		return false
	}
	at := r.from + r.to - f.node
	for _, g := range e.of[at] {
		if len(g.legs) == 1 && g.legs[0] == q && g.twin == nil &&
			len(g.unlike)+len(g.minus)+len(g.used) == 0 && within(q.types, r.types) &&
			within(r.types, q.types) && e.sameSide(r, q, at) {
			e.twin = g
			return true
		}
	}
	return false
}

// sameSide reports whether two relationships are in the same list of a node.
func (e *eliminator) sameSide(r, q *rel, at int) bool {
	if e.src.Undirected() || r.undirected || q.undirected {
		return e.src.Undirected() || r.undirected && q.undirected
	}
	return (r.from == at) == (q.from == at)
}

// take makes the factor that next has found; false if there is no memory for its lists.
func (e *eliminator) take(ctx context.Context, v int) (bool, error) {
	f := e.found
	for _, r := range append(slices.Clone(f.legs), f.minus...) {
		if ok, err := e.load(ctx, r, r.from+r.to-v); !ok || err != nil {
			return ok, err
		}
	}
	e.p.nodes[v].gone = true
	f.optional = f.legs[0].outer && !e.p.nodes[f.legs[0].owner].outer
	e.kept += e.counts(v)
	at := f.legs[0].owner
	e.depth[at] = max(e.depth[at], e.depth[v]+1)
	if len(f.legs) > 1 || len(f.unlike)+len(f.minus)+len(f.used) > 0 {
		for _, n := range f.wants() {
			e.fixed[n] = true
		}
	}
	if e.twin != nil {
		e.twin.twin = f
		return true, nil
	}
	e.of[at] = append(e.of[at], f)
	return true, nil
}
