package eval

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/value"
)

// function is a function of the language. Without nulls, a null argument makes it null.
type function struct {
	least, most int
	nulls       bool
	run         func(e *Env, c *ast.Call, args []any) (any, error)
}

// many is the most of functions that take any number of arguments.
const many = 1 << 16

var functions map[string]function

func init() { // a literal would be a cycle: functions call Eval, which calls functions
	functions = map[string]function{
		"coalesce":      {1, many, true, coalesce},
		"exists":        {1, 1, true, exists},
		"id":            {1, 1, false, id},
		"labels":        {1, 1, false, labels},
		"type":          {1, 1, false, typeOf},
		"properties":    {1, 1, false, properties},
		"keys":          {1, 1, false, keys},
		"startnode":     {1, 1, false, end},
		"endnode":       {1, 1, false, end},
		"nodes":         {1, 1, false, ofPath},
		"relationships": {1, 1, false, ofPath},
		"rels":          {1, 1, false, ofPath},
		"length":        {1, 1, false, ofPath},
		"size":          {1, 1, false, size},
		"isempty":       {1, 1, false, size},
		"head":          {1, 1, false, ofList},
		"last":          {1, 1, false, ofList},
		"tail":          {1, 1, false, ofList},
		"range":         {2, 3, true, rangeOf},
		"reverse":       {1, 1, false, reverse},
		"rand":          {0, 0, true, constant(func(*Env) any { return rand.Float64() })},
		"pi":            {0, 0, true, constant(func(*Env) any { return math.Pi })},
		"e":             {0, 0, true, constant(func(*Env) any { return math.E })},
		"timestamp":     {0, 0, true, constant(func(e *Env) any { return e.Now.UnixMilli() })},
	}
	maps.Copy(functions, textFunctions)
	maps.Copy(functions, numberFunctions)
	maps.Copy(functions, timeFunctions())
}

// constant returns a function without arguments.
func constant(fn func(*Env) any) func(*Env, *ast.Call, []any) (any, error) {
	return func(e *Env, _ *ast.Call, _ []any) (any, error) { return fn(e), nil }
}

func exists(_ *Env, _ *ast.Call, args []any) (any, error) { return args[0] != nil, nil }

// Functions returns the names of all functions, sorted.
func Functions() []string {
	return slices.Sorted(maps.Keys(functions))
}

// Arguments returns how many arguments a function takes; false if there is no such function.
func Arguments(name string) (least, most int, ok bool) {
	switch f, ok := functions[name]; {
	case ok:
		return f.least, f.most, true
	case name == "percentilecont" || name == "percentiledisc":
		return 2, 2, true
	}
	return 1, 1, ast.Aggregates[name]
}

func (e *Env) call(c *ast.Call, s *Scope) (any, error) {
	if v, ok := e.Aggregates[c]; ok {
		return v, nil
	}
	f, ok := functions[c.Name]
	if !ok {
		return nil, ast.Syntax(c.Pos(), "UnknownFunction", "there is no function %s", c.Name)
	}
	args := make([]any, len(c.Args))
	for i, x := range c.Args {
		var err error
		if args[i], err = e.Eval(x, s); err != nil {
			return nil, err
		}
	}
	if !f.nulls && slices.Contains(args, nil) {
		return nil, nil
	}
	return f.run(e, c, args)
}

// wants returns the error of an argument of a wrong type.
func wants(c *ast.Call, what string, got any) error {
	return ast.Errorf(c.Pos(), "TypeError", "InvalidArgumentValue", "%s() wants %s, not %s", c.Name,
		what, value.Kind(got))
}

func coalesce(_ *Env, _ *ast.Call, args []any) (any, error) {
	for _, v := range args {
		if v != nil {
			return v, nil
		}
	}
	return nil, nil
}

func id(_ *Env, c *ast.Call, args []any) (any, error) {
	switch v := args[0].(type) {
	case value.Node:
		return v.ID, nil
	case value.Rel:
		return v.ID, nil
	}
	return nil, wants(c, "a node or a relationship", args[0])
}

func labels(_ *Env, c *ast.Call, args []any) (any, error) {
	n, ok := args[0].(value.Node)
	if !ok {
		return nil, wants(c, "a node", args[0])
	}
	names, err := n.G.Labels(n.ID)
	return listOf(names), err
}

func listOf[T any](items []T) value.List {
	out := make(value.List, len(items))
	for i, v := range items {
		out[i] = v
	}
	return out
}

func typeOf(_ *Env, c *ast.Call, args []any) (any, error) {
	r, ok := args[0].(value.Rel)
	if !ok {
		return nil, wants(c, "a relationship", args[0])
	}
	return r.Type, nil
}

func properties(_ *Env, c *ast.Call, args []any) (any, error) {
	switch v := args[0].(type) {
	case value.Map:
		return v, nil
	case value.Node:
		m, err := v.G.NodeProps(v.ID)
		return m, err
	case value.Rel:
		m, err := v.G.RelProps(v)
		return m, err
	}
	return nil, wants(c, "a node, a relationship or a map", args[0])
}

func keys(e *Env, c *ast.Call, args []any) (any, error) {
	m, err := properties(e, c, args)
	if err != nil {
		return nil, err
	}
	return listOf(slices.Sorted(maps.Keys(m.(value.Map)))), nil
}

func end(_ *Env, c *ast.Call, args []any) (any, error) {
	r, ok := args[0].(value.Rel)
	switch {
	case !ok:
		return nil, wants(c, "a relationship", args[0])
	case c.Name == "startnode":
		return value.Node{ID: r.From, G: r.G}, nil
	}
	return value.Node{ID: r.To, G: r.G}, nil
}

func ofPath(_ *Env, c *ast.Call, args []any) (any, error) {
	p, ok := args[0].(value.Path)
	switch {
	case !ok:
		return nil, wants(c, "a path", args[0])
	case c.Name == "nodes":
		return listOf(p.Nodes), nil
	case c.Name == "length":
		return int64(len(p.Rels)), nil
	}
	return listOf(p.Rels), nil
}

func size(_ *Env, c *ast.Call, args []any) (any, error) {
	n := 0
	switch v := args[0].(type) {
	case value.List:
		n = len(v)
	case value.Map:
		n = len(v)
	case string:
		n = len([]rune(v))
	default:
		return nil, wants(c, "a list or a string", v)
	}
	if c.Name == "isempty" {
		return n == 0, nil
	}
	return int64(n), nil
}

func ofList(_ *Env, c *ast.Call, args []any) (any, error) {
	l, ok := args[0].(value.List)
	switch {
	case !ok:
		return nil, wants(c, "a list", args[0])
	case c.Name == "tail":
		return l[min(1, len(l)):], nil
	case len(l) == 0:
		return nil, nil
	case c.Name == "head":
		return l[0], nil
	}
	return l[len(l)-1], nil
}

func rangeOf(e *Env, c *ast.Call, args []any) (any, error) {
	n := []int64{0, 0, 1}
	for i, v := range args {
		var ok bool
		if n[i], ok = v.(int64); !ok {
			return nil, ast.Errorf(c.Pos(), "ArgumentError", "InvalidArgumentType",
				"range() wants integers, not %s", value.Kind(v))
		}
	}
	from, to, step := n[0], n[1], n[2]
	if step == 0 {
		return nil, ast.Errorf(c.Pos(), "ArgumentError", "NumberOutOfRange",
			"range() wants a step that is not 0")
	}
	count := uint64(0)
	switch {
	case step > 0 && from <= to:
		count = (uint64(to)-uint64(from))/uint64(step) + 1
	case step < 0 && from >= to:
		count = (uint64(from)-uint64(to))/magnitude(step) + 1
	}
	if count > math.MaxInt32 {
		return nil, ast.Errorf(c.Pos(), "ArgumentError", "NumberOutOfRange",
			"range() gives %d values, more than %d", count, math.MaxInt32)
	}
	if err := e.room(valueBytes * int64(count)); err != nil {
		return nil, err
	}
	out := make(value.List, count)
	for i := range out {
		out[i] = from + int64(i)*step
	}
	return out, nil
}

func reverse(_ *Env, c *ast.Call, args []any) (any, error) {
	switch v := args[0].(type) {
	case value.List:
		out := slices.Clone(v)
		slices.Reverse(out)
		return out, nil
	case string:
		r := []rune(v)
		slices.Reverse(r)
		return string(r), nil
	}
	return nil, wants(c, "a list or a string", args[0])
}
