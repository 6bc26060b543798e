package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/vector"
)

// step binds one more node of the pattern. The first of a pattern with an input binds what rows of
// the clauses before have.
type step struct {
	node int // -1 for none
	// legs are relationships to nodes that are bound before, the longest bound first. There are
	// none for a node at which a part of the pattern begins. Without a node they join bound ones.
	legs      []*rel
	entries   []bool   // which legs' entries are kept
	conflicts [][2]int // relationships that must not be the same
	cross     []*condition
	factors   []*factor
	// keep are nodes and relationships of earlier steps that are wanted after this one.
	keepNodes, keepRels []int
	// rows is the estimate of the rows that the step hands on.
	rows float64
	// found and out count the rows before and after what factors drop.
	found, out atomic.Int64
}

// plan is how matches of a pattern are found.
type plan struct {
	p     *pattern
	src   Source
	steps []*step
	// reads says that lists are read for the rows of each batch, room is the memory for those of a
	// relationship, and most is how many a batch has at most.
	reads bool
	room  int64
	most  int
	turns *turns // nil if no nodes take turns
	// whole says that most nodes are looked at, and swept that factors below others are counted.
	whole, swept bool
	// pieces says which groups a run makes; nil if they cannot be made in pieces.
	pieces *pieces
	begun  atomic.Int64 // parts of the last run that have begun
}

// resolve finds out which nodes variables may be. It returns false if the source cannot tell.
func (p *pattern) resolve(ctx context.Context, env *vector.Env, src Source) (bool, error) {
	for _, n := range p.nodes {
		set, ok := src.Labeled(n.labels)
		if !ok {
			return false, nil
		}
		n.set = set
	}
	for range p.rels { // what one narrows may narrow others
		for _, r := range p.rels {
			p.narrow(r, src)
		}
	}
	for i, n := range p.nodes {
		if err := p.find(ctx, n, env, src); err != nil {
			return false, err
		}
		if err := p.lookUp(ctx, i, src); err != nil {
			return false, err
		}
		if len(n.filters) == 0 {
			continue
		}
		var err error
		if n.check, err = newCheck(n, src); err != nil {
			return false, err
		}
	}
	return true, nil
}

// narrow leaves out nodes that have no edge of a relationship, and types of edges that join no
// nodes which its ends may be.
func (p *pattern) narrow(r *rel, src Source) {
	x, y := p.nodes[r.from], p.nodes[r.to]
	if r.undirected || src.Undirected() {
		both := Union(x.set, y.set)
		r.types = src.Types(r.types, both, both)
	} else {
		r.types = src.Types(r.types, x.set, y.set)
	}
	from, to := src.Ends(r.types)
	if r.undirected || src.Undirected() {
		from = Union(from, to)
		to = from
	}
	if x.outer || !r.outer {
		x.set = x.set.and(from)
	}
	if y.outer || !r.outer {
		y.set = y.set.and(to)
	}
}

// size estimates how many values a node has.
func (n *node) size(env *vector.Env) (float64, error) {
	if n.anchored {
		return float64(len(n.anchor)), nil
	}
	size := float64(n.set.Len())
	if n.check == nil {
		return size, nil
	}
	share, err := n.check.share(env)
	return size * share, err
}

// sideOf returns the direction of the lists in which owner has a relationship.
func (pl *plan) sideOf(r *rel, owner int) ast.Direction {
	switch {
	case r.undirected || pl.src.Undirected():
		return ast.Both
	case owner == r.to:
		return ast.In
	}
	return ast.Out
}

// follows reports whether a relationship can be followed from owner.
func (pl *plan) follows(r *rel, owner int) bool {
	return !pl.reads || pl.src.Outline(pl.sideOf(r, owner), r.types) != nil
}

// load gets the lists of a relationship as it is followed from owner; false if there is no memory.
func (pl *plan) load(ctx context.Context, r *rel, owner int) (bool, error) {
	r.owner, r.side = owner, pl.sideOf(r, owner)
	if pl.reads {
		r.outline, r.lists = pl.src.Outline(r.side, r.types), nil
		return r.outline != nil, nil
	}
	var err error
	if r.lists, err = pl.src.Lists(ctx, r.side, r.types); r.lists != nil {
		r.outline = &r.lists.Outline
		r.squares[r.side] = r.outline.Squares
	}
	return r.lists != nil, err
}

// makePlan plans a pattern; nil if the source cannot read what it takes. Lists are in memory if the
// source says so, by what a plan that reads them would do.
func makePlan(ctx context.Context, p *pattern, env *vector.Env, src Source) (*plan, error) {
	ok, err := p.resolve(ctx, env, src)
	if ok && err == nil {
		ok, err = p.shortest.plan(ctx, src)
	}
	if !ok || err != nil {
		return nil, err
	}
	reading, err := planWith(ctx, p, env, src, true)
	if err != nil && !errors.Is(err, errOuter) {
		return nil, err
	}
	if reading != nil && !src.InMemory(reading.wants(), reading.lists()) {
		return reading, reading.sizes()
	}
	release := src.Holds()
	pl, err := planWith(ctx, p, env, src, false)
	if pl != nil || err != nil || reading == nil {
		return pl, err
	}
	release()
	if reading, err = planWith(ctx, p, env, src, true); err != nil { // there is no memory
		return nil, err
	}
	return reading, reading.sizes()
}

// planWith plans a pattern with lists in memory, or with those that are read; nil if they cannot
// be.
func planWith(ctx context.Context, p *pattern, env *vector.Env, src Source,
	reads bool) (*plan, error) {
	pl := &plan{p: p, src: src, reads: reads, most: batchRows}
	for _, r := range p.rels { // to know how long lists are, and whether edges are loops
		owner := r.to
		if r.outline != nil { // as the plan before has it: this one may choose the same lists
			owner = r.owner
		}
		if ok, err := pl.load(ctx, r, owner); !ok || err != nil {
			return nil, err
		}
	}
	for _, c := range p.cross {
		if c.edge != nil {
			all := everything(src.Nodes())
			c.edge.types = src.Types(c.edge.types, all, all)
			if ok, err := pl.load(ctx, c.edge, c.edge.to); !ok || err != nil {
				return nil, err
			}
		}
	}
	var err error
	if pl.whole, err = p.looksAtAll(env); err != nil {
		return nil, err
	}
	factors, err := pl.cheapest(ctx, env)
	if err != nil || factors == nil || pl.steps == nil {
		return nil, err
	}
	for i, r := range pl.rels() {
		r.id = i
	}
	pl.place(factors)
	pl.live()
	for _, s := range pl.steps {
		for _, leg := range s.legs {
			s.entries = append(s.entries, slices.ContainsFunc(s.keepRels, func(i int) bool {
				return p.rels[i] == leg
			}))
		}
	}
	return pl, nil
}

// errOuter says that an OPTIONAL MATCH cannot be counted by a factor.
var errOuter = errors.New("an outer join")

// cheapest plans with and without factors of several legs, and keeps the cheaper plan.
func (pl *plan) cheapest(ctx context.Context, env *vector.Env) (factors []*factor, err error) {
	var costs [2]float64
	for i, joins := range []bool{false, true, false} {
		if i == 2 && costs[1] < costs[0] {
			break
		}
		for _, n := range pl.p.nodes {
			n.gone = false
		}
		pl.steps = nil
		if factors, err = pl.eliminate(ctx, env, joins); err != nil || factors == nil {
			return nil, err
		}
		cost, err := pl.order(ctx, env)
		if err != nil || pl.steps == nil {
			return nil, err
		}
		if i < 2 {
			costs[i] = cost + pl.counting(factors)
		}
	}
	return factors, nil
}

// counting estimates what factors of several legs cost.
func (pl *plan) counting(factors []*factor) (cost float64) {
	for _, f := range factors {
		if len(f.legs)+len(f.minus) < 2 {
			continue
		}
		rows := 0.0
		for _, s := range pl.steps {
			if slices.Contains(f.wants(), s.node) {
				rows = math.Max(rows, s.rows)
			}
		}
		cost += rows * pl.shortest(f.legs)
	}
	return cost
}

// shortest returns the length of the shortest list that relationships have on average.
func (pl *plan) shortest(rels []*rel) float64 {
	least := math.Inf(1)
	for _, r := range rels {
		ends := math.Max(1, float64(pl.p.nodes[r.owner].set.Len()))
		least = math.Min(least, float64(r.outline.Entries)/ends)
	}
	return least
}

// order chooses in which order nodes are bound: from each node on, it takes the node next that
// leads to the fewest rows, and keeps the order with the least sum of rows.
func (pl *plan) order(ctx context.Context, env *vector.Env) (float64, error) {
	sizes := make([]float64, len(pl.p.nodes))
	var core []int
	for i, n := range pl.p.nodes {
		if n.gone {
			continue
		}
		if n.outer {
			return 0, errOuter
		}
		if n.bound {
			continue
		}
		core = append(core, i)
		var err error
		if sizes[i], err = n.size(env); err != nil {
			return 0, err
		}
	}
	best, least := []int(nil), math.Inf(1)
	rows := 1.0
	if pl.p.shortest != nil {
		sizes[pathLength] = 1
		best, least = core, 0
	} else if in := pl.p.in; in != nil {
		rows = in.estimate
		best, least = pl.greedy(in.bound(pl.p), rows, core, sizes)
		if ok, err := pl.first(ctx); !ok || err != nil {
			pl.steps = nil
			return 0, err
		}
	} else {
		for _, first := range core {
			if seq, cost := pl.greedy([]int{first}, sizes[first], core, sizes); cost < least {
				best, least = seq, cost
			}
		}
	}
	for i, v := range best {
		if pl.p.nodes[v].bound {
			continue
		}
		s := &step{node: v}
		rows, _ = pl.extend(best[:i], v, rows, sizes)
		s.rows = rows
		for _, u := range best[:i] {
			for _, r := range pl.p.rels {
				if r.from == u && r.to == v || r.from == v && r.to == u {
					if ok, err := pl.load(ctx, r, u); !ok || err != nil {
						pl.steps = nil
						return 0, err
					}
					s.legs = append(s.legs, r)
				}
			}
		}
		pl.steps = append(pl.steps, s)
	}
	return least, nil
}

// greedy continues an order of nodes, which have some rows, with the nodes of core.
func (pl *plan) greedy(seq []int, rows float64, core []int, sizes []float64) ([]int, float64) {
	cost := rows
	for all := union(seq, core); len(seq) < all; {
		next, least, price := -1, math.Inf(1), 0.0
		linked := slices.ContainsFunc(core, func(v int) bool { return pl.linked(seq, v) })
		for _, v := range core {
			apart := linked && !pl.linked(seq, v) && pl.p.nodes[v].by == nil
			if slices.Contains(seq, v) || apart && sizes[v] > crossMost {
				continue
			}
			if n, c := pl.extend(seq, v, rows, sizes); next < 0 || n+c < least+price {
				next, least, price = v, n, c
			}
		}
		seq, rows = append(seq, next), least
		cost += rows + price
	}
	return seq, cost
}

// crossMost is how many values a node may have that is bound before a relationship leads to it:
// what is estimated of rows before may be far too little.
const crossMost = 4

// linked reports whether a node is not among others and is come to by relationships from them.
func (pl *plan) linked(seq []int, v int) (linked bool) {
	for _, r := range pl.p.rels {
		from := r.from + r.to - v
		if r.from != v && r.to != v || !slices.Contains(seq, from) {
			continue
		}
		if !pl.follows(r, from) {
			return false
		}
		linked = true
	}
	return linked && !slices.Contains(seq, v)
}

// extend estimates the rows after one more node, and how many entries of lists it looks at.
func (pl *plan) extend(bound []int, v int, rows float64, sizes []float64) (out, cost float64) {
	all := math.Max(1, float64(pl.p.nodes[v].set.Len()))
	if len(bound) == 0 && pl.p.in == nil {
		return sizes[v], all
	}
	out = rows * sizes[v]
	linked := false
	shortest := all
	for _, r := range pl.p.rels {
		from := r.from
		if from == v {
			from = r.to
		}
		if (r.from == v || r.to == v) && slices.Contains(bound, from) {
			if !pl.follows(r, from) {
				return math.Inf(1), 0
			}
			each := pl.length(r, from, bound)
			out *= math.Min(1, each/all)
			shortest = math.Min(shortest, each)
			linked = true
		}
	}
	if !linked && pl.p.nodes[v].by != nil {
		return rows, rows * lookUpCost
	}
	return out, rows * shortest
}

// length estimates how long the lists of a node of a relationship are. Edges are spread evenly over
// the nodes at both ends; but a node that was come to by an edge of the same types is one of many
// edges more often than one of few.
func (pl *plan) length(r *rel, from int, bound []int) float64 {
	if r.outline.Entries == 0 {
		return 0
	}
	side := pl.sideOf(r, from)
	for _, q := range pl.p.rels {
		if q == r || q.from != from && q.to != from || pl.sideOf(q, from) != side ||
			!slices.Contains(bound, q.from+q.to-from) || !slices.Equal(q.types, r.types) {
			continue
		}
		if r.squares[side] > 0 {
			return r.squares[side] / float64(r.outline.Entries)
		}
	}
	return float64(r.outline.Entries) / math.Max(1, float64(pl.p.nodes[from].set.Len()))
}

// place gives conditions, conflicts and factors to the first steps that have all they need.
func (pl *plan) place(factors []*factor) {
	at := map[int]int{} // node to step; bound ones are there from the first
	joined := 0         // the step of relationships that join bound nodes
	for i, s := range pl.steps {
		at[s.node] = i
		if s.node < 0 {
			joined = i
		}
	}
	latest := func(nodes ...int) (step int) {
		for _, n := range nodes {
			step = max(step, at[n])
		}
		return step
	}
	there := func(rels ...int) (step int) {
		for _, i := range rels {
			r := pl.p.rels[i]
			step = max(step, latest(r.from, r.to))
			if pl.p.nodes[r.from].bound && pl.p.nodes[r.to].bound {
				step = max(step, joined)
			}
		}
		return step
	}
	for _, c := range pl.p.cross {
		if !slices.ContainsFunc(c.nodes, func(n int) bool { return pl.p.nodes[n].gone }) {
			s := pl.steps[max(latest(c.nodes...), there(c.rels...))]
			s.cross = append(s.cross, c)
		}
	}
	for i, a := range pl.p.rels {
		for j, b := range pl.p.rels[:i] {
			if pl.p.isGone(a) || pl.p.isGone(b) || !pl.p.mayEqual(a, b, pl.src.Undirected()) {
				continue
			}
			s := pl.steps[there(i, j)]
			s.conflicts = append(s.conflicts, [2]int{i, j})
		}
	}
	// A search that begins at few nodes counts what it meets, and keeps nothing.
	keep := pl.p.in == nil && !pl.p.nodes[pl.steps[0].node].anchored && !pl.reads
	for _, f := range factors {
		f.settle(pl.p, pl.src, keep)
		slices.SortStableFunc(f.legs, func(a, b *rel) int { return at[a.owner] - at[b.owner] })
		s := pl.steps[latest(f.wants()...)]
		s.factors = append(s.factors, f)
	}
}

// isGone reports whether a relationship is counted by a factor.
func (p *pattern) isGone(r *rel) bool { return p.nodes[r.from].gone || p.nodes[r.to].gone }

// wants returns the nodes that a factor needs.
func (f *factor) wants() (out []int) {
	for _, r := range append(slices.Clone(f.legs), f.minus...) {
		out = append(out, r.owner)
	}
	out = append(out, f.unlike...)
	for _, q := range f.used {
		out = append(out, q.from, q.to)
	}
	return out
}

// live finds which nodes and relationships each step must keep of earlier ones.
func (pl *plan) live() {
	nodes, rels := map[int]bool{}, map[int]bool{}
	for i, n := range pl.p.nodes {
		nodes[i] = n.needed
	}
	for i, r := range pl.p.rels {
		if rels[i] = r.needed; r.needed {
			nodes[r.from], nodes[r.to] = true, true
		}
	}
	for _, c := range pl.p.last {
		for _, n := range c.nodes {
			nodes[n] = true
		}
		for _, r := range c.rels {
			rels[r] = true
		}
	}
	for k := len(pl.steps) - 1; k >= 0; k-- {
		s := pl.steps[k]
		for _, c := range s.cross {
			for _, n := range c.nodes {
				nodes[n] = true
			}
			for _, r := range c.rels {
				rels[r] = true
			}
		}
		for _, c := range s.conflicts {
			told := false // by entries, not by ends alone
			for _, i := range c {
				r := pl.p.rels[i]
				nodes[r.from], nodes[r.to] = true, true
				told = told || r.outline.Told
			}
			if told {
				rels[c[0]], rels[c[1]] = true, true
			}
		}
		for _, f := range s.factors {
			for _, n := range f.wants() {
				nodes[n] = true
			}
		}
		bound := pl.steps[:k+1]
		for i, is := range nodes {
			if is && (pl.p.nodes[i].bound || slices.ContainsFunc(bound, func(s *step) bool {
				return s.node == i
			})) {
				s.keepNodes = append(s.keepNodes, i)
			}
		}
		for i, is := range rels {
			if is && slices.ContainsFunc(bound, func(s *step) bool {
				return slices.Contains(s.legs, pl.p.rels[i])
			}) {
				s.keepRels = append(s.keepRels, i)
			}
		}
		for _, r := range s.legs {
			nodes[r.owner] = true
			nodes[r.other()] = nodes[r.other()] || s.node < 0
		}
		slices.Sort(s.keepNodes)
		slices.Sort(s.keepRels)
	}
}

// eliminate turns nodes that are only counted into factors. Nothing may want their values, and what
// is left must hang together. Without joins, each has one leg. It returns the factors of nodes that
// are left; nil if there is no memory for lists.
func (pl *plan) eliminate(ctx context.Context, env *vector.Env, joins bool) ([]*factor, error) {
	e := &eliminator{plan: pl, joins: joins, of: map[int][]*factor{}, depth: map[int]int{},
		fixed: map[int]bool{}}
	if err := e.rings(ctx); err != nil {
		return nil, err
	}
	for {
		v, err := e.next(env)
		if err != nil {
			return nil, err
		}
		if v < 0 {
			break
		}
		if ok, err := e.take(ctx, v); !ok || err != nil {
			return nil, err
		}
	}
	out := []*factor{}
	for v, n := range pl.p.nodes {
		if !n.gone {
			out = append(out, e.of[v]...)
		}
	}
	return out, nil
}
