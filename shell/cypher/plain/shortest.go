package plain

import (
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/value"
)

// reached is how a search came to a node.
type reached struct {
	hops int
	by   []value.Rel // the last relationships of all shortest paths
}

// shortest searches from the first node of the pattern in breadth, and ends a path at each node
// that the pattern allows: one for shortestPath, all of the least length for allShortestPaths.
func (w *walk) shortest(s *eval.Scope) error {
	r := w.p.Rels[0]
	if r.Least > 1 {
		return ast.Syntax(r.Pos(), "InvalidRelationshipPattern",
			"%s begins at 0 or 1 hops, as in *1..5", w.p.Shortest)
	}
	if done, err := w.reach(s); done || err != nil {
		return err
	}
	seen := map[int64]*reached{w.nodes[0].ID: {}}
	level := []value.Node{w.nodes[0]}
	for hops := 0; len(level) > 0; hops++ {
		for _, n := range level {
			if hops < r.Least {
				continue
			}
			if err := w.ends(n, seen, s); err != nil {
				return err
			}
		}
		if r.Most >= 0 && hops == r.Most {
			return nil
		}
		var err error
		if level, err = w.level(level, hops+1, seen, s); err != nil {
			return err
		}
	}
	return nil
}

// reach lets the engine search, if any relationship may be used, and one path is enough.
func (w *walk) reach(s *eval.Scope) (bool, error) {
	r, e := w.p.Rels[0], w.x.opts.Engine
	if e == nil || w.p.Shortest != "shortestPath" || r.Props != nil || len(w.used) > 0 {
		return false, nil
	}
	target := int64(-1)
	if v, ok := s.Lookup(w.p.Nodes[1].Name); ok && w.p.Nodes[1].Name != "" {
		node, ok := v.(value.Node)
		if !ok {
			return false, nil
		}
		target = node.ID
	}
	search := Search{From: w.nodes[0].ID, Dir: along(r, true), Types: r.Types, Most: r.Most,
		Target: target}
	return e.Reach(w.x.ctx, search,
		func(v int64, hops int, path func() []value.Rel) error {
			if hops < r.Least {
				return nil
			}
			return w.node(1, value.Node{ID: v, G: w.nodes[0].G}, s, func(s *eval.Scope) error {
				rels := path()
				list := make(value.List, len(rels))
				for i, e := range rels {
					list[i] = e
				}
				s, ok := bind(s, r.Name, list)
				if !ok {
					return nil
				}
				w.trails[0] = rels
				return w.finish(s)
			})
		})
}

// level returns the nodes that are one hop farther.
func (w *walk) level(from []value.Node, hops int, seen map[int64]*reached,
	s *eval.Scope) (next []value.Node, err error) {
	r := w.p.Rels[0]
	for _, n := range from {
		err := w.rels(r, n, true, func(e value.Rel, other value.Node) error {
			return w.taken(e, r, s, func() error {
				at := seen[other.ID]
				switch {
				case at == nil:
					seen[other.ID] = &reached{hops, []value.Rel{e}}
					next = append(next, other)
					return w.x.env.Grow(2 * rowBytes)
				case at.hops == hops && w.p.Shortest == "allShortestPaths":
					at.by = append(at.by, e)
					return w.x.env.Grow(rowBytes)
				}
				return nil
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return next, nil
}

// ends goes on with the paths to a node, if the pattern allows it as the other end.
func (w *walk) ends(n value.Node, seen map[int64]*reached, s *eval.Scope) error {
	return w.node(1, n, s, func(s *eval.Scope) error {
		return w.back(n.ID, seen, nil, s)
	})
}

// back follows the paths from a node to the first node of the pattern.
func (w *walk) back(at int64, seen map[int64]*reached, behind []value.Rel, s *eval.Scope) error {
	if seen[at].hops == 0 {
		rels := make([]value.Rel, len(behind))
		list := make(value.List, len(behind))
		for i, e := range behind {
			rels[len(behind)-1-i], list[len(behind)-1-i] = e, e
		}
		s, ok := bind(s, w.p.Rels[0].Name, list)
		if !ok {
			return nil
		}
		w.trails[0] = rels
		return w.finish(s)
	}
	for _, e := range seen[at].by {
		if err := w.back(e.From+e.To-at, seen, append(behind, e), s); err != nil {
			return err
		}
	}
	return nil
}
