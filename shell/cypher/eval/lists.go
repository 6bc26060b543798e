package eval

import (
	"errors"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/value"
)

// each calls fn with the elements of a list in turn; list is false if the value is null.
func (e *Env) each(x ast.Expr, s *Scope, fn func(any) error) (list bool, err error) {
	v, err := e.Eval(x, s)
	if err != nil || v == nil {
		return false, err
	}
	l, ok := v.(value.List)
	if !ok {
		return false, TypeError(x, "a list is wanted, not %s", value.Kind(v))
	}
	for _, item := range l {
		if err := e.Stop(); err != nil {
			return true, err
		}
		if err := fn(item); err != nil {
			return true, err
		}
	}
	return true, nil
}

// listing is a list that grows, with its memory.
type listing struct {
	value.List
	bytes, asked int64
}

// add appends a value. There must be room for the list whenever it is a good deal longer.
func (l *listing) add(e *Env, v any) error {
	l.List = append(l.List, v)
	if l.bytes += value.Bytes(v); l.bytes < l.asked+roomLeast {
		return nil
	}
	l.asked = l.bytes
	return e.room(l.bytes)
}

func (e *Env) listComp(x *ast.ListComp, s *Scope) (any, error) {
	out := listing{List: value.List{}}
	ok, err := e.each(x.In, s, func(item any) error {
		in := s.With(x.Name, item)
		keep, err := e.Holds(x.Where, in)
		if err != nil || !keep {
			return err
		}
		if x.Each != nil {
			if item, err = e.Eval(x.Each, in); err != nil {
				return err
			}
		}
		return out.add(e, item)
	})
	if err != nil || !ok {
		return nil, err
	}
	return out.List, nil
}

// quantifier counts how often the condition is true, false and null.
func (e *Env) quantifier(x *ast.Quantifier, s *Scope) (any, error) {
	var n [3]int
	ok, err := e.each(x.In, s, func(item any) error {
		t, err := e.tri(x.Where, s.With(x.Name, item))
		n[t]++
		return err
	})
	if err != nil || !ok {
		return nil, err
	}
	yes, no, null := n[value.True], n[value.False], n[value.Null]
	switch {
	case x.Kind == "all" && no > 0, x.Kind == "none" && yes > 0, x.Kind == "single" && yes > 1:
		return false, nil
	case x.Kind == "any" && yes > 0:
		return true, nil
	case null > 0:
		return nil, nil
	case x.Kind == "single":
		return yes == 1, nil
	}
	return x.Kind != "any", nil
}

func (e *Env) reduce(x *ast.Reduce, s *Scope) (any, error) {
	acc, err := e.Eval(x.Init, s)
	if err != nil {
		return nil, err
	}
	ok, err := e.each(x.In, s, func(item any) error {
		acc, err = e.Eval(x.Each, s.With(x.Acc, acc).With(x.Name, item))
		return err
	})
	if err != nil || !ok {
		return nil, err
	}
	return acc, nil
}

// valueBytes is what is counted for an element of a list.
const valueBytes = 32

func (e *Env) patternComp(x *ast.PatternComp, s *Scope) (any, error) {
	out := listing{List: value.List{}}
	m := &ast.Match{At: x.At, Patterns: []*ast.Pattern{x.Pattern}, Where: x.Where}
	err := e.Match(s, m, func(in *Scope) error {
		v, err := e.Eval(x.Each, in)
		if err != nil {
			return err
		}
		return out.add(e, v)
	})
	if err != nil {
		return nil, err
	}
	return out.List, nil
}

// errFound ends the search for one match.
var errFound = errors.New("found")

func (e *Env) exists(x *ast.Exists, s *Scope) (any, error) {
	if x.Query != nil {
		return e.Any(s, x.Query)
	}
	err := e.Match(s, x.Match, func(*Scope) error { return errFound })
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}
