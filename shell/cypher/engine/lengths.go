package engine

import (
	"context"
	"errors"
	"slices"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/plain"
)

// A MATCH with relationships of variable length is run as one with each of their lengths after
// another, if these are few.

// lengthsMost bounds the matches of fixed length that are run instead of one, and hopsMost the
// relationships that are run instead of one.
const (
	lengthsMost = 9
	hopsMost    = 4
)

// lengths returns the matches of fixed length that together find what m does; none if it has no
// variable length, or one that has a name, begins at 0, or has no bound.
func lengths(m *ast.Match) []*ast.Match {
	out, variable := []*ast.Match{m}, false
	for i, path := range m.Patterns {
		if path.Name != "" || path.Shortest != "" {
			return nil
		}
		for _, r := range slices.Backward(path.Rels) {
			if !r.Variable {
				continue
			}
			if r.Name != "" || r.Least < 1 || r.Most < r.Least || r.Most > hopsMost {
				return nil
			}
			variable = true
			var longer []*ast.Match
			for _, m := range out {
				for hops := r.Least; hops <= r.Most; hops++ {
					longer = append(longer, withHops(m, i, r, hops))
				}
			}
			out = longer
		}
	}
	if !variable || m.Optional || len(out) > lengthsMost {
		return nil
	}
	return out
}

// withHops returns m with some relationships instead of r, which is in the i-th of its patterns.
func withHops(m *ast.Match, i int, r *ast.Rel, hops int) *ast.Match {
	path := *m.Patterns[i]
	at := slices.Index(path.Rels, r)
	one := *r
	one.Variable = false
	path.Nodes, path.Rels = slices.Clone(path.Nodes), slices.Clone(path.Rels)
	path.Rels[at] = &one
	for range hops - 1 {
		more := one
		path.Rels = slices.Insert(path.Rels, at, &more)
		path.Nodes = slices.Insert(path.Nodes, at+1, &ast.Node{At: r.At})
	}
	out := *m
	out.Patterns = slices.Clone(m.Patterns)
	out.Patterns[i] = &path
	return &out
}

// takeLengths returns how a MATCH is run as several of fixed length. Their rows are grouped by what
// follows.
func (e *Engine) takeLengths(ctx context.Context, row *eval.Env, clauses []ast.Clause,
	of []*ast.Match, in func() *input) (*plain.Stage, error) {
	var stages []*plain.Stage
	out := &plain.Stage{Clauses: 1}
	for _, m := range of {
		clauses := slices.Clone(clauses)
		clauses[0] = m
		s, err := e.take(ctx, row, clauses, []*ast.Match{m}, in(), false)
		if errors.Is(err, errFewer) || errors.Is(err, errOuter) {
			return nil, nil
		}
		if s == nil || err != nil {
			return nil, err
		}
		stages = append(stages, s)
		out.Values, out.Rows = s.Values, out.Rows+s.Rows
	}
	out.Run = func(rows []*eval.Scope, to plain.Out) error {
		for _, s := range stages {
			if err := s.Run(rows, to); err != nil {
				return err
			}
		}
		return nil
	}
	out.End = func(to plain.Out) error {
		for _, s := range stages {
			if s.End == nil {
				continue
			}
			if err := s.End(to); err != nil {
				return err
			}
		}
		return nil
	}
	return out, nil
}
