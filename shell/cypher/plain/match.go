package plain

import (
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
	w.anchor = -1
	for i, n := range w.p.Nodes {
		if _, ok := s.Lookup(n.Name); ok && n.Name != "" {
			w.anchor = i
			break
		}
		if w.anchor < 0 && len(n.Labels) > 0 {
			w.anchor = i
		}
	}
	if w.p.Shortest != "" {
		w.anchor = 0
	}
	w.anchor = max(w.anchor, 0)
	n := w.p.Nodes[w.anchor]
	if v, ok := s.Lookup(n.Name); ok && n.Name != "" {
		node, ok := v.(value.Node)
		if v == nil {
			return nil
		}
		if !ok {
			return ast.Errorf(n.Pos(), "TypeError", "InvalidArgumentValue", "%s is %s, not a node",
				n.Name, value.Kind(v))
		}
		return w.node(w.anchor, node, s, w.first)
	}
	return w.x.graph.Nodes(w.x.ctx, n.Labels, func(node value.Node) error {
		return w.node(w.anchor, node, s, w.first)
	})
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
		if node, ok := had.(value.Node); bound && (!ok || node.ID != n.ID) {
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
		return w.rels(r, w.nodes[from], right, s, func(e value.Rel, other value.Node) error {
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
func (w *walk) rels(r *ast.Rel, n value.Node, right bool, s *eval.Scope,
	fn func(value.Rel, value.Node) error) error {
	for _, dir := range []ast.Direction{ast.Out, ast.In} {
		along := dir // the arrow of the pattern that this is
		if !right {
			along = ast.Out + ast.In - dir
		}
		if r.Dir != ast.Both && r.Dir != along {
			continue
		}
		err := w.x.graph.Rels(w.x.ctx, n, dir, r.Types, func(e value.Rel) error {
			if err := w.x.ctx.Err(); err != nil {
				return err
			}
			loop := e.From == e.To
			if w.used[e.Key()] || loop && dir == ast.In && r.Dir == ast.Both {
				return nil
			}
			other := e.To
			if dir == ast.In {
				other = e.From
			}
			return fn(e, value.Node{ID: other, G: e.G})
		})
		if err != nil {
			return err
		}
	}
	return nil
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
	return t.walk.rels(r, at, t.right, s, func(e value.Rel, other value.Node) error {
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
