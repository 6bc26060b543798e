package eval

import (
	"math"
	"math/bits"
	"regexp"
	"strings"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/value"
)

func (e *Env) unary(x *ast.Unary, s *Scope) (any, error) {
	if x.Op == "NOT" {
		t, err := e.tri(x.X, s)
		return t.Not().Value(), err
	}
	v, err := e.Eval(x.X, s)
	if err != nil {
		return nil, err
	}
	switch n := v.(type) {
	case nil:
		return nil, nil
	case int64:
		if x.Op == "+" {
			return n, nil
		}
		return subtract(x, 0, n)
	case float64:
		if x.Op == "-" {
			return -n, nil
		}
		return n, nil
	}
	return nil, TypeError(x, "a sign stands before a number, not before %s", value.Kind(v))
}

func (e *Env) binary(x *ast.Binary, s *Scope) (any, error) {
	switch x.Op {
	case "AND", "OR", "XOR":
		return e.logic(x, s)
	}
	l, err := e.Eval(x.L, s)
	if err != nil {
		return nil, err
	}
	r, err := e.Eval(x.R, s)
	if err != nil {
		return nil, err
	}
	switch x.Op {
	case "IN":
		return in(x, l, r)
	case "STARTS WITH", "ENDS WITH", "CONTAINS", "=~":
		return matches(x, l, r)
	case "+":
		return e.plus(x, l, r)
	}
	return arithmetic(x, l, r)
}

func (e *Env) logic(x *ast.Binary, s *Scope) (any, error) {
	l, err := e.tri(x.L, s)
	if err != nil {
		return nil, err
	}
	if x.Op == "AND" && l == value.False || x.Op == "OR" && l == value.True {
		return l.Value(), nil
	}
	r, err := e.tri(x.R, s)
	if err != nil {
		return nil, err
	}
	switch {
	case x.Op == "AND" && r == value.False, x.Op == "OR" && r == value.True:
		return r.Value(), nil
	case l == value.Null || r == value.Null:
		return nil, nil
	case x.Op == "XOR":
		return l != r, nil
	}
	return r.Value(), nil
}

// in says whether a list has an element that equals l: null if none does and one may.
func in(x *ast.Binary, l, r any) (any, error) {
	if r == nil {
		return nil, nil
	}
	list, ok := r.(value.List)
	if !ok {
		return nil, TypeError(x, "IN wants a list, not %s", value.Kind(r))
	}
	out := value.False
	for _, item := range list {
		switch value.Equal(l, item) {
		case value.True:
			return true, nil
		case value.Null:
			out = value.Null
		}
	}
	return out.Value(), nil
}

// matches compares strings; all other values give null.
func matches(x *ast.Binary, l, r any) (any, error) {
	a, ok := l.(string)
	b, also := r.(string)
	if !ok || !also {
		return nil, nil
	}
	switch x.Op {
	case "STARTS WITH":
		return strings.HasPrefix(a, b), nil
	case "ENDS WITH":
		return strings.HasSuffix(a, b), nil
	case "CONTAINS":
		return strings.Contains(a, b), nil
	}
	re, err := regexp.Compile("^(?s:" + b + ")$")
	if err != nil {
		return nil, ast.Errorf(x.Pos(), "ArgumentError", "InvalidArgumentValue",
			"%q is no regular expression: %v", b, err)
	}
	return re.MatchString(a), nil
}

func (e *Env) compare(x *ast.Compare, s *Scope) (any, error) {
	l, err := e.Eval(x.Xs[0], s)
	if err != nil {
		return nil, err
	}
	out := value.True
	for i, op := range x.Ops {
		r, err := e.Eval(x.Xs[i+1], s)
		if err != nil {
			return nil, err
		}
		switch Compare(op, l, r) {
		case value.False:
			out = value.False
		case value.Null:
			if out == value.True {
				out = value.Null
			}
		}
		l = r
	}
	return out.Value(), nil
}

// Compare says whether l op r holds.
func Compare(op string, l, r any) value.Tri {
	switch op {
	case "=":
		return value.Equal(l, r)
	case "<>":
		return value.Equal(l, r).Not()
	}
	c, unordered, ok := value.Compare(l, r)
	switch {
	case !ok:
		return value.Null
	case unordered:
		return value.False
	case op == "<":
		return value.Of(c < 0)
	case op == "<=":
		return value.Of(c <= 0)
	case op == ">":
		return value.Of(c > 0)
	}
	return value.Of(c >= 0)
}

// plus adds numbers, joins strings and lists, and moves times.
func (e *Env) plus(x *ast.Binary, l, r any) (any, error) {
	a, left := l.(value.List)
	b, right := r.(value.List)
	switch {
	case l == nil || r == nil:
		return nil, nil
	case left || right:
		if !left {
			a = value.List{l}
		}
		if !right {
			b = value.List{r}
		}
		out := append(append(make(value.List, 0, len(a)+len(b)), a...), b...)
		return out, e.room(valueBytes * int64(len(out)))
	}
	if out, ok := joined(l, r); ok {
		return out, e.room(int64(len(out)))
	}
	return arithmetic(x, l, r)
}

// joined returns a string with a string or a number behind it or before it.
func joined(l, r any) (string, bool) {
	var out string
	strings := 0
	for _, v := range []any{l, r} {
		switch v := v.(type) {
		case string:
			strings++
			out += v
		case int64, float64:
			t, _ := value.Text(v)
			out += t
		default:
			return "", false
		}
	}
	return out, strings > 0
}

func arithmetic(x *ast.Binary, l, r any) (any, error) {
	if l == nil || r == nil {
		return nil, nil
	}
	a, ok := l.(int64)
	b, also := r.(int64)
	if ok && also && x.Op != "^" {
		return integers(x, a, b)
	}
	if out, ok, err := timeArithmetic(x, l, r); ok {
		return out, err
	}
	f, ok := number(l)
	g, also := number(r)
	if !ok || !also {
		return nil, TypeError(x, "%s %s %s is not defined", value.Kind(l), x.Op, value.Kind(r))
	}
	switch x.Op {
	case "+":
		return f + g, nil
	case "-":
		return f - g, nil
	case "*":
		return f * g, nil
	case "/":
		return f / g, nil
	case "%":
		return math.Mod(f, g), nil
	}
	return math.Pow(f, g), nil
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func overflow(x ast.Expr) error {
	return ast.Errorf(x.Pos(), "ArithmeticError", "IntegerOverflow",
		"the result does not fit in 64 bits; write a factor as a float, as in 2.0")
}

func subtract(x ast.Expr, a, b int64) (any, error) {
	if c := a - b; (c < a) == (b > 0) {
		return c, nil
	}
	return nil, overflow(x)
}

func integers(x *ast.Binary, a, b int64) (any, error) {
	switch x.Op {
	case "+":
		if c := a + b; (c > a) == (b > 0) {
			return c, nil
		}
		return nil, overflow(x)
	case "-":
		return subtract(x, a, b)
	case "*":
		c := a * b
		hi, _ := bits.Mul64(magnitude(a), magnitude(b))
		if hi != 0 || a != 0 && (c/a != b || a == -1 && b == math.MinInt64) {
			return nil, overflow(x)
		}
		return c, nil
	}
	if b == 0 {
		return nil, ast.Errorf(x.Pos(), "ArithmeticError", "DivisionByZero",
			"an integer is divided by zero")
	}
	if x.Op == "%" {
		return a % b, nil
	}
	if b == -1 {
		return subtract(x, 0, a)
	}
	return a / b, nil
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return uint64(-a)
	}
	return uint64(a)
}
