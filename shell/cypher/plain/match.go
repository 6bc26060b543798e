package plain

import (
	"iter"
	"slices"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/value"
)

// matcher finds the matches of the patterns of one MATCH, in which no relationship stands twice.
type matcher struct {
	x     *execution
	m     *ast.Match
	used  map[value.RelKey]bool
	late  []late // properties that need variables of the patterns themselves
	yield func(*eval.Scope) error
}

// late is a map of properties that is compared when all of the pattern is there.
type late struct {
	props *ast.Map
	of    func() any
}

// match calls yield with the scopes of all matches of m from a row.
func (x *execution) match(s *eval.Scope, m *ast.Match, yield func(*eval.Scope) error) error {
	a := &matcher{x: x, m: m, used: map[value.RelKey]bool{}, yield: yield}
	return a.pattern(0, s)
}

// pattern matches the patterns from the i-th on.
func (a *matcher) pattern(i int, s *eval.Scope) error {
	if i < len(a.m.Patterns) {
		p := a.m.Patterns[i]
		w := &walk{matcher: a, p: p, number: i, nodes: make([]value.Node, len(p.Nodes)),
			trails: make([][]value.Rel, len(p.Rels))}
		return w.begin(s)
	}
	for _, l := range a.late {
		ok, err := a.hasProps(l.of(), l.props, s)
		if err != nil || !ok {
			return err
		}
	}
	ok, err := a.x.env.Holds(a.m.Where, s)
	if err != nil || !ok {
		return err
	}
	return a.yield(s)
}

// props reports whether a node or relationship, which of returns, has the properties of a pattern.
// If these need variables that are not there yet, it is asked again at the end; done forgets that.
func (a *matcher) props(x ast.Expr, v any, s *eval.Scope) (ok bool, done func(), err error) {
	done = func() {}
	m, isMap := x.(*ast.Map)
	if !isMap {
		return true, done, nil
	}
	for _, name := range variables(m) {
		if _, known := s.Lookup(name); !known {
			a.late = append(a.late, late{m, func() any { return v }})
			return true, func() { a.late = a.late[:len(a.late)-1] }, nil
		}
	}
	ok, err = a.hasProps(v, m, s)
	return ok, done, err
}

// variables returns the names in x.
func variables(x ast.Expr) (out []string) {
	if v, ok := x.(*ast.Var); ok {
		return []string{v.Name}
	}
	for _, child := range ast.Children(x) {
		out = append(out, variables(child)...)
	}
	return out
}

func (a *matcher) hasProps(of any, m *ast.Map, s *eval.Scope) (bool, error) {
	for i, key := range m.Keys {
		want, err := a.x.env.Eval(m.Values[i], s)
		if err != nil {
			return false, err
		}
		has, err := eval.Property(m, of, key)
		if err != nil || value.Equal(has, want) != value.True {
			return false, err
		}
	}
	return true, nil
}

// walk is the match of one pattern: from an anchor to its right end, then to its left end.
type walk struct {
	*matcher
	p      *ast.Pattern
	number int
	anchor int
	nodes  []value.Node
	trails [][]value.Rel // of each part of the pattern, from left to right
}

// begin takes each node that the anchor may be.
func (w *walk) begin(s *eval.Scope) error {
	w.anchor = w.best(s)
	n := w.p.Nodes[w.anchor]
	if v, ok := s.Lookup(n.Name); ok && n.Name != "" {
		node, ok := v.(value.Node)
		if v == nil {
			return nil
		}
		if !ok {
			return notNode(n, v)
		}
		return w.node(w.anchor, node, s, w.first)
	}
	take := func(node value.Node) error { return w.node(w.anchor, node, s, w.first) }
	if done, err := w.find(n, s, take); done || err != nil {
		return err
	}
	return w.x.graph.Nodes(w.x.ctx, n.Labels, take)
}

// notNode returns the error for a variable of a pattern that is no node.
func notNode(n *ast.Node, v any) error {
	return ast.Errorf(n.Pos(), "TypeError", "InvalidArgumentValue", "%s is %s, not a node", n.Name,
		value.Kind(v))
}

// find calls take with the nodes that a property of the pattern or an equation of WHERE leaves, if
// the graph finds them; false if it does not.
func (w *walk) find(n *ast.Node, s *eval.Scope, take func(value.Node) error) (bool, error) {
	finder, ok := w.x.graph.(Finder)
	if !ok {
		return false, nil
	}
	for key, x := range w.equations(n) {
		if slices.ContainsFunc(variables(x), func(name string) bool {
			_, known := s.Lookup(name)
			return !known
		}) {
			continue
		}
		v, err := w.x.env.Eval(x, s)
		if err != nil {
			continue // a node that has all else of the pattern meets the mistake again
		}
		if done, err := finder.Find(w.x.ctx, n.Labels, key, v, take); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// equations yields what properties of a node, and its number, must equal: those of the pattern,
// then those of WHERE that stand in no OR.
func (w *walk) equations(n *ast.Node) iter.Seq2[string, ast.Expr] {
	return func(yield func(string, ast.Expr) bool) {
		if m, ok := n.Props.(*ast.Map); ok {
			for i, key := range m.Keys {
				if !yield(key, m.Values[i]) {
					return
				}
			}
		}
		for _, x := range ast.Conjuncts(w.m.Where) {
			c, ok := x.(*ast.Compare)
			if !ok || len(c.Ops) != 1 || c.Ops[0] != "=" || n.Name == "" {
				continue
			}
			for i, side := range c.Xs {
				if key, ok := ast.KeyOf(side, n.Name); ok && !yield(key, c.Xs[1-i]) {
					return
				}
			}
		}
	}
}

// best returns the node of the pattern at which the search begins: one from which all directions
// are cheap, then one that is known, then one with labels.
func (w *walk) best(s *eval.Scope) (best int) {
	if w.p.Shortest != "" {
		return 0
	}
	most := -1
	for i, n := range w.p.Nodes {
		score := 0
		if _, ok := s.Lookup(n.Name); ok && n.Name != "" {
			score = 2
		} else if w.isFound(n) {
			score = 2
		} else if len(n.Labels) > 0 {
			score = 1
		}
		cheap := true
		for k, r := range w.p.Rels {
			cheap = cheap && w.x.graph.Keeps(along(r, k >= i))
		}
		if cheap {
			score += 3
		}
		if score > most {
			best, most = i, score
		}
	}
	return best
}

// isFound reports whether a graph may find a node of the pattern by its id.
func (w *walk) isFound(n *ast.Node) bool {
	finder, ok := w.x.graph.(Finder)
	for key := range w.equations(n) {
		if ok && finder.FindsBy(key, n.Labels) {
			return true
		}
	}
	return false
}

func (w *walk) first(s *eval.Scope) error {
	if w.p.Shortest != "" {
		return w.shortest(s)
	}
	return w.step(w.anchor, s)
}

// node takes a node for the i-th of the pattern, if it is one, and goes on.
func (w *walk) node(i int, n value.Node, s *eval.Scope, next func(*eval.Scope) error) error {
	if err := w.x.ctx.Err(); err != nil {
		return err
	}
	p := w.p.Nodes[i]
	if p.Name != "" {
		had, bound := s.Lookup(p.Name)
		node, ok := had.(value.Node)
		switch {
		case had != nil && !ok:
			return notNode(p, had)
		case bound && (!ok || node.ID != n.ID):
			return nil
		}
		if !bound {
			s = s.With(p.Name, n)
		}
	}
	ok, err := eval.HasAll(n, p.Labels)
	if err != nil || !ok {
		return err
	}
	ok, done, err := w.props(p.Props, n, s)
	defer done()
	if err != nil || !ok {
		return err
	}
	w.nodes[i] = n
	return next(s)
}

// step goes over the i-th relationship of the pattern: those from the anchor to the right, then
// those to its left.
func (w *walk) step(i int, s *eval.Scope) error {
	if i == len(w.p.Rels) {
		i = w.anchor - 1
	}
	if i < 0 {
		return w.finish(s)
	}
	return w.hop(i, s, i >= w.anchor)
}

// after continues behind the i-th relationship.
func (w *walk) after(i int, s *eval.Scope, right bool) error {
	if right {
		return w.step(i+1, s)
	}
	if i == 0 {
		return w.finish(s)
	}
	return w.hop(i-1, s, false)
}

func (w *walk) hop(i int, s *eval.Scope, right bool) error {
	from, to := i, i+1
	if !right {
		from, to = to, from
	}
	r := w.p.Rels[i]
	if !r.Variable {
		return w.rels(r, w.nodes[from], right, func(e value.Rel, other value.Node) error {
			in, ok := bind(s, r.Name, e)
			if !ok {
				return nil
			}
			w.trails[i] = []value.Rel{e}
			return w.taken(e, r, in, func() error {
				return w.node(to, other, in, func(s *eval.Scope) error {
					return w.after(i, s, right)
				})
			})
		})
	}
	t := &trail{walk: w, i: i, to: to, right: right}
	return t.extend(w.nodes[from], s)
}

// bind gives a relationship's variable its value; false if it has another.
func bind(s *eval.Scope, name string, v any) (*eval.Scope, bool) {
	if name == "" {
		return s, true
	}
	had, bound := s.Lookup(name)
	if !bound {
		return s.With(name, v), true
	}
	return s, value.Equal(had, v) == value.True
}

// rels calls fn with the relationships of a node that a pattern allows and that are not used, and
// their other nodes. right says that the node is on the left of the pattern.
func (w *walk) rels(r *ast.Rel, n value.Node, right bool,
	fn func(value.Rel, value.Node) error) error {
	return w.x.graph.Rels(w.x.ctx, n, along(r, right), r.Types,
		func(e value.Rel, other value.Node) error {
			if err := w.x.ctx.Err(); err != nil || w.used[e.Key()] {
				return err
			}
			return fn(e, other)
		})
}

// along returns the direction in which a relationship is followed, to the right of the pattern or
// to its left.
func along(r *ast.Rel, right bool) ast.Direction {
	if right || r.Dir == ast.Both {
		return r.Dir
	}
	return ast.Out + ast.In - r.Dir
}

// taken runs fn with a relationship in use, if it has the properties of the pattern.
func (a *matcher) taken(e value.Rel, r *ast.Rel, s *eval.Scope, fn func() error) error {
	ok, done, err := a.props(r.Props, e, s)
	defer done()
	if err != nil || !ok {
		return err
	}
	a.used[e.Key()] = true
	defer delete(a.used, e.Key())
	return fn()
}

// trail is the walk over a relationship of variable length.
type trail struct {
	*walk
	i, to int
	right bool
	rels  []value.Rel // in the order they are taken
}

// extend ends the trail at a node where it may end, and goes on over each of its relationships.
func (t *trail) extend(at value.Node, s *eval.Scope) error {
	r := t.p.Rels[t.i]
	if len(t.rels) >= r.Least && (r.Most < 0 || len(t.rels) <= r.Most) {
		if err := t.finish(at, s); err != nil {
			return err
		}
	}
	if r.Most >= 0 && len(t.rels) >= r.Most {
		return nil
	}
	return t.walk.rels(r, at, t.right, func(e value.Rel, other value.Node) error {
		return t.taken(e, r, s, func() error {
			t.rels = append(t.rels, e)
			err := t.extend(other, s)
			t.rels = t.rels[:len(t.rels)-1]
			return err
		})
	})
}

func (t *trail) finish(at value.Node, s *eval.Scope) error {
	rels := make([]value.Rel, len(t.rels))
	list := make(value.List, len(t.rels))
	for k, e := range t.rels {
		if !t.right {
			k = len(rels) - 1 - k
		}
		rels[k], list[k] = e, e
	}
	s, ok := bind(s, t.p.Rels[t.i].Name, list)
	if !ok {
		return nil
	}
	saved := t.rels
	defer func() { t.rels = saved }()
	t.trails[t.i] = rels
	return t.node(t.to, at, s, func(s *eval.Scope) error { return t.after(t.i, s, t.right) })
}

// finish names the path and goes on with the next pattern.
func (w *walk) finish(s *eval.Scope) error {
	if w.p.Name != "" {
		s = s.With(w.p.Name, pathOf(w.nodes[0], w.trails))
	}
	return w.pattern(w.number+1, s)
}

// pathOf returns the path from a node over relationships.
func pathOf(from value.Node, trails [][]value.Rel) value.Path {
	p := value.Path{Nodes: []value.Node{from}}
	at := from.ID
	for _, t := range trails {
		for _, r := range t {
			at = r.From + r.To - at
			p.Rels = append(p.Rels, r)
			p.Nodes = append(p.Nodes, value.Node{ID: at, G: r.G})
		}
	}
	return p
}
