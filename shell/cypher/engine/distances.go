package engine

import (
	"context"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/value"
)

// distances is a shortestPath that begins a statement and of which only the length is wanted. Its
// nodes are the first of the pattern: that from which it leads, that to which, and one that stands
// for the path and whose value is the length.
type distances struct {
	of   *ast.Pattern
	name string // of the path
	find *reacher
}

// The nodes of a pattern of distances.
const (
	pathStart = iota
	pathEnd
	pathLength
)

// distances adds a path of a clause as distances; false if more of it is wanted than its length.
func (p *pattern) distances(m *ast.Match, next ast.Clause) bool {
	path := m.Patterns[0]
	last, ok := next.(*ast.Project)
	if !ok || last.Star || p.in != nil || m.Optional || len(m.Patterns) != 1 ||
		path.Shortest != "shortestPath" {
		return false
	}
	r, from, to := path.Rels[0], path.Nodes[0], path.Nodes[1]
	if r.Name != "" || r.Props != nil || r.Least > 1 || from.Name == to.Name && to.Name != "" {
		return false
	}
	name := path.Name
	if name == "" {
		name = hidden + "p"
	}
	xs := []ast.Expr{m.Where, last.Where, last.Skip, last.Limit, from.Props, to.Props}
	for _, i := range last.Items {
		xs = append(xs, i.X)
	}
	for _, k := range last.OrderBy {
		xs = append(xs, k.X)
	}
	for _, x := range xs {
		if !onlyLength(x, name) {
			return false
		}
	}
	for _, n := range path.Nodes {
		if _, ok := p.node(n); !ok {
			return false
		}
	}
	p.byName[name] = pathLength
	p.nodes = append(p.nodes, &node{name: name})
	for _, n := range p.nodes {
		n.needed = true
	}
	p.shortest = &distances{of: path, name: name}
	return true
}

// onlyLength reports whether x reads nothing of a path but its length.
func onlyLength(x ast.Expr, path string) bool {
	if x == nil || !names(x)[path] {
		return true
	}
	switch c := x.(type) {
	case *ast.Compare, *ast.Binary, *ast.Unary:
	case *ast.Call:
		if v, ok := c.Args[0].(*ast.Var); ok && c.Name == "length" && v.Name == path {
			return true
		}
	default:
		return false
	}
	for _, child := range ast.Children(x) {
		if !onlyLength(child, path) {
			return false
		}
	}
	return true
}

// plan gets the lists that the searches follow; false if there are none to read.
func (d *distances) plan(ctx context.Context, src Source) (ok bool, err error) {
	if d == nil {
		return true, nil
	}
	d.find, err = newReacher(ctx, src, d.of.Rels[0].Dir, d.of.Rels[0].Types)
	if d.find != nil {
		d.find.lengths = true
	}
	return d.find != nil, err
}

// reached takes the nodes that are reached from that of a row. The rows of a batch have one length.
func (w *worker) reached(k int, in *batch, row int) error {
	d := w.p.shortest
	r := d.of.Rels[0]
	n := w.p.nodes[pathEnd]
	q := plain.Search{From: int64(in.nodes[pathStart][row]), Most: r.Most, Target: -1}
	err := d.find.run(w.ctx, q, func(v int64, hops int, _ func() []value.Rel) error {
		if hops < r.Least {
			return nil
		}
		if uint32(hops) != w.hops {
			if err := w.flush(k, in); err != nil {
				return err
			}
			w.hops = uint32(hops)
		}
		if ok, err := n.passes(w.env, uint32(v)); !ok || err != nil || !n.isAnchor(uint32(v)) {
			return err
		}
		return w.add(k, in, row, uint32(v))
	})
	if err != nil {
		return err
	}
	return w.flush(k, in)
}
