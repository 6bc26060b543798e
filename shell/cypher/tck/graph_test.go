package tck

import (
	"context"
	"fmt"
	"slices"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/value"
)

// memory is a graph in memory, which CREATE and DELETE change.
type memory struct {
	labels [][]string
	props  []value.Map
	rels   []value.Rel // Type is "" where one was deleted
	of     []value.Map
}

func (g *memory) Labels(n int64) ([]string, error)     { return g.labels[n], nil }
func (g *memory) NodeProps(n int64) (value.Map, error) { return g.props[n], nil }
func (g *memory) NodeProp(n int64, key string) (any, error) {
	return g.props[n][key], nil
}
func (g *memory) RelProps(r value.Rel) (value.Map, error) { return g.of[r.ID], nil }

func (g *memory) RelProp(r value.Rel, key string) (any, error) {
	return g.of[r.ID][key], nil
}

func (g *memory) Nodes(_ context.Context, labels []string, yield func(value.Node) error) error {
	for i, has := range g.labels {
		if slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) }) {
			continue
		}
		if err := yield(value.Node{ID: int64(i), G: g}); err != nil {
			return err
		}
	}
	return nil
}

func (g *memory) Keeps(ast.Direction) bool { return true }

func (g *memory) Rels(_ context.Context, n value.Node, dir ast.Direction, types []string,
	yield func(value.Rel, value.Node) error) error {
	for _, r := range g.rels {
		if r.Type == "" || len(types) > 0 && !slices.Contains(types, r.Type) {
			continue
		}
		other := r.To
		switch {
		case r.From == n.ID && dir != ast.In:
		case r.To == n.ID && dir != ast.Out:
			other = r.From
		default:
			continue
		}
		if err := yield(r, value.Node{ID: other, G: g}); err != nil {
			return err
		}
	}
	return nil
}

// write runs CREATE, and DELETE of relationships.
func (g *memory) write(e *eval.Env, s *eval.Scope, w *ast.Write) (*eval.Scope, error) {
	for _, x := range w.Xs {
		v, err := e.Eval(x, s)
		if r, ok := v.(value.Rel); ok {
			g.rels[r.ID].Type = ""
		} else if err == nil {
			err = fmt.Errorf("cannot delete %s", value.Kind(v))
		}
		if err != nil {
			return s, err
		}
	}
	for _, p := range w.Patterns {
		ids := make([]int64, len(p.Nodes))
		for i, n := range p.Nodes {
			had, bound := s.Lookup(n.Name)
			if node, ok := had.(value.Node); bound && ok && n.Name != "" {
				ids[i] = node.ID
				continue
			}
			props, err := g.eval(e, n.Props, s)
			if err != nil {
				return s, err
			}
			ids[i] = int64(len(g.labels))
			g.labels, g.props = append(g.labels, slices.Sorted(slices.Values(n.Labels))),
				append(g.props, props)
			s = s.With(n.Name, value.Node{ID: ids[i], G: g})
		}
		for i, r := range p.Rels {
			props, err := g.eval(e, r.Props, s)
			if err != nil {
				return s, err
			}
			rel := value.Rel{ID: int64(len(g.rels)), From: ids[i], To: ids[i+1], Type: r.Types[0],
				G: g}
			if r.Dir == ast.In {
				rel.From, rel.To = rel.To, rel.From
			}
			g.rels, g.of = append(g.rels, rel), append(g.of, props)
			s = s.With(r.Name, rel)
		}
	}
	return s, nil
}

// eval returns properties without those that are null.
func (g *memory) eval(e *eval.Env, x ast.Expr, s *eval.Scope) (value.Map, error) {
	if x == nil {
		return value.Map{}, nil
	}
	v, err := e.Eval(x, s)
	m, _ := v.(value.Map)
	for k, v := range m {
		if v == nil {
			delete(m, k)
		}
	}
	return m, err
}
