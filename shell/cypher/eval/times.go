package eval

import (
	"strings"
	"time"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/temporal"
	"gdb/shell/cypher/value"
)

// timeFunctions returns the functions that make dates, times and durations.
func timeFunctions() map[string]function {
	out := map[string]function{
		"duration":                 {1, 1, false, makeTime},
		"datetime.fromepoch":       {2, 2, false, fromEpoch},
		"datetime.fromepochmillis": {1, 1, false, fromEpoch},
	}
	for _, unit := range []string{"between", "inMonths", "inDays", "inSeconds"} {
		out["duration."+strings.ToLower(unit)] = function{2, 2, false, between(unit)}
	}
	for _, name := range []string{"date", "localtime", "time", "localdatetime", "datetime"} {
		out[name] = function{0, 1, false, makeTime}
		out[name+".truncate"] = function{2, 3, false, truncate}
		for _, clock := range []string{"transaction", "statement", "realtime"} {
			out[name+"."+clock] = function{0, 1, false, makeTime}
		}
	}
	return out
}

// timeResult gives an error of package temporal a place.
func timeResult(x ast.Expr, v temporal.Value, err error) (any, error) {
	if err != nil {
		return nil, ast.Errorf(x.Pos(), "ArgumentError", "InvalidArgumentValue", "%v", err)
	}
	return v, nil
}

// makeTime is date(), date.realtime() and so on. Without an argument, or with a zone for those that
// name a clock, they are the current time: of the statement, or of the call.
func makeTime(e *Env, c *ast.Call, args []any) (any, error) {
	name, clock, named := strings.Cut(c.Name, ".")
	kind, _ := temporal.KindOf(name)
	now := e.Now
	if clock == "realtime" {
		now = time.Now()
	}
	if len(args) == 0 {
		v, err := temporal.Now(kind, now, "")
		return timeResult(c, v, err)
	}
	if zone, ok := args[0].(string); ok && named {
		v, err := temporal.Now(kind, now, zone)
		return timeResult(c, v, err)
	}
	v, err := temporal.New(kind, plainMap(args[0]), now)
	return timeResult(c, v, err)
}

// plainMap returns a map without its name, and other values as they are.
func plainMap(v any) any {
	if m, ok := v.(value.Map); ok {
		return map[string]any(m)
	}
	return v
}

func truncate(_ *Env, c *ast.Call, args []any) (any, error) {
	name, _, _ := strings.Cut(c.Name, ".")
	kind, _ := temporal.KindOf(name)
	unit, ok := args[0].(string)
	from, also := args[1].(temporal.Value)
	var m value.Map
	if len(args) > 2 {
		var third bool
		m, third = args[2].(value.Map)
		also = also && third
	}
	if !ok || !also {
		return nil, ast.Errorf(c.Pos(), "TypeError", "InvalidArgumentType",
			"%s() wants a unit such as 'day', a time, and a map if any", c.Name)
	}
	v, err := temporal.Truncate(kind, unit, from, m)
	return timeResult(c, v, err)
}

func fromEpoch(_ *Env, c *ast.Call, args []any) (any, error) {
	n := make([]int64, 2)
	for i, v := range args {
		var ok bool
		if n[i], ok = v.(int64); !ok {
			return nil, wants(c, "integers", v)
		}
	}
	v, err := temporal.FromEpochMillis(n[0])
	if len(args) == 2 {
		v, err = temporal.FromEpoch(n[0], n[1])
	}
	return timeResult(c, v, err)
}

func between(unit string) func(*Env, *ast.Call, []any) (any, error) {
	return func(_ *Env, c *ast.Call, args []any) (any, error) {
		a, ok := args[0].(temporal.Value)
		b, also := args[1].(temporal.Value)
		if !ok || !also {
			return nil, ast.Errorf(c.Pos(), "TypeError", "InvalidArgumentType",
				"%s() wants two times, not %s and %s", c.Name, value.Kind(args[0]),
				value.Kind(args[1]))
		}
		v, err := temporal.Between(unit, a, b)
		return timeResult(c, v, err)
	}
}

// timeArithmetic moves times by durations, and adds, multiplies and divides durations. It is not ok
// for other values.
func timeArithmetic(x *ast.Binary, l, r any) (out any, ok bool, err error) {
	a, left := l.(temporal.Value)
	b, right := r.(temporal.Value)
	d, duration := l.(temporal.Duration)
	if !left && x.Op == "*" {
		d, duration = r.(temporal.Duration)
		l, r = r, l
	}
	_, factor := number(r)
	var v temporal.Value
	switch {
	case left && right && x.Op == "+":
		v, err = temporal.Add(a, b)
	case left && right && x.Op == "-":
		v, err = temporal.Sub(a, b)
	case duration && factor && x.Op == "*":
		v, err = temporal.Mul(d, r)
	case duration && factor && x.Op == "/":
		v, err = temporal.Div(d, r)
	default:
		return nil, false, nil
	}
	out, err = timeResult(x, v, err)
	return out, true, err
}
