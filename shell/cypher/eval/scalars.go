package eval

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/value"
)

// textFunctions are functions of strings, and those that make strings or read them.
var textFunctions = map[string]function{
	"tostring":  {1, 1, false, toString},
	"tointeger": {1, 1, false, toInteger},
	"toint":     {1, 1, false, toInteger},
	"tofloat":   {1, 1, false, toFloat},
	"toboolean": {1, 1, false, toBoolean},
	"toupper":   onText(strings.ToUpper),
	"upper":     onText(strings.ToUpper),
	"tolower":   onText(strings.ToLower),
	"lower":     onText(strings.ToLower),
	"trim":      onText(strings.TrimSpace),
	"ltrim":     onText(func(s string) string { return strings.TrimLeftFunc(s, unicode.IsSpace) }),
	"rtrim":     onText(func(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }),
	"replace":   {3, 3, false, replace},
	"split":     {2, 2, false, split},
	"substring": {2, 3, false, substring},
	"left":      {2, 2, false, substring},
	"right":     {2, 2, false, substring},
}

// numberFunctions are functions of numbers.
var numberFunctions = map[string]function{
	"abs":      {1, 1, false, absOrSign},
	"sign":     {1, 1, false, absOrSign},
	"round":    {1, 2, false, round},
	"ceil":     onNumber(math.Ceil),
	"floor":    onNumber(math.Floor),
	"sqrt":     onNumber(math.Sqrt),
	"exp":      onNumber(math.Exp),
	"log":      onNumber(math.Log),
	"log10":    onNumber(math.Log10),
	"sin":      onNumber(math.Sin),
	"cos":      onNumber(math.Cos),
	"tan":      onNumber(math.Tan),
	"cot":      onNumber(func(f float64) float64 { return 1 / math.Tan(f) }),
	"asin":     onNumber(math.Asin),
	"acos":     onNumber(math.Acos),
	"atan":     onNumber(math.Atan),
	"haversin": onNumber(func(f float64) float64 { return (1 - math.Cos(f)) / 2 }),
	"degrees":  onNumber(func(f float64) float64 { return f * 180 / math.Pi }),
	"radians":  onNumber(func(f float64) float64 { return f * math.Pi / 180 }),
	"atan2":    {2, 2, false, atan2},
	"isnan":    {1, 1, false, isNaN},
}

func onText(fn func(string) string) function {
	return function{1, 1, false, func(_ *Env, c *ast.Call, args []any) (any, error) {
		s, ok := args[0].(string)
		if !ok {
			return nil, wants(c, "a string", args[0])
		}
		return fn(s), nil
	}}
}

func onNumber(fn func(float64) float64) function {
	return function{1, 1, false, func(_ *Env, c *ast.Call, args []any) (any, error) {
		f, ok := number(args[0])
		if !ok {
			return nil, wants(c, "a number", args[0])
		}
		return fn(f), nil
	}}
}

func toString(_ *Env, c *ast.Call, args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return v, nil
	case value.Temporal:
		return v.String(), nil
	case int64, float64, bool:
		return value.Text(v)
	}
	return nil, wants(c, "a string, a number, a boolean or a time", args[0])
}

func toInteger(_ *Env, c *ast.Call, args []any) (any, error) {
	switch v := args[0].(type) {
	case int64:
		return v, nil
	case float64:
		return whole(v), nil
	case string:
		s := strings.TrimSpace(v)
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n, nil
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return whole(f), nil
		}
		return nil, nil
	}
	return nil, wants(c, "a number or a string", args[0])
}

// whole cuts a float to an integer; null if none can hold it.
func whole(f float64) any {
	if !(f >= -1<<63 && f < 1<<63) {
		return nil
	}
	return int64(f)
}

func toFloat(_ *Env, c *ast.Call, args []any) (any, error) {
	if f, ok := number(args[0]); ok {
		return f, nil
	}
	s, ok := args[0].(string)
	if !ok {
		return nil, wants(c, "a number or a string", args[0])
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		return nil, nil //nolint:nilerr // a text that is no number gives null
	}
	return f, nil
}

func toBoolean(_ *Env, c *ast.Call, args []any) (any, error) {
	switch v := args[0].(type) {
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, nil
	}
	return nil, wants(c, "a boolean or a string", args[0])
}

// texts returns arguments as strings.
func texts(c *ast.Call, args []any) ([]string, error) {
	out := make([]string, len(args))
	for i, v := range args {
		var ok bool
		if out[i], ok = v.(string); !ok {
			return nil, wants(c, "strings", v)
		}
	}
	return out, nil
}

func replace(e *Env, c *ast.Call, args []any) (any, error) {
	s, err := texts(c, args)
	if err != nil {
		return nil, err
	}
	if grown := int64(strings.Count(s[0], s[1])) * int64(len(s[2])); grown > 0 {
		if err := e.room(grown); err != nil {
			return nil, err
		}
	}
	return strings.ReplaceAll(s[0], s[1], s[2]), nil
}

func split(_ *Env, c *ast.Call, args []any) (any, error) {
	s, err := texts(c, args)
	if err != nil {
		return nil, err
	}
	return listOf(strings.Split(s[0], s[1])), nil
}

// substring is substring(s, from, length), left(s, n) and right(s, n).
func substring(_ *Env, c *ast.Call, args []any) (any, error) {
	s, ok := args[0].(string)
	if !ok {
		return nil, wants(c, "a string", args[0])
	}
	n := make([]int64, len(args))
	for i, v := range args[1:] {
		if n[i], ok = v.(int64); !ok || n[i] < 0 {
			return nil, ast.Errorf(c.Pos(), "ArgumentError", "NumberOutOfRange",
				"%s() wants integers from 0", c.Name)
		}
	}
	r := []rune(s)
	from := min(n[0], int64(len(r)))
	switch {
	case c.Name == "left":
		return string(r[:from]), nil
	case c.Name == "right":
		return string(r[int64(len(r))-from:]), nil
	case len(args) == 3:
		return string(r[from : from+min(n[1], int64(len(r))-from)]), nil
	}
	return string(r[from:]), nil
}

// absOrSign is abs(x) and sign(x).
func absOrSign(_ *Env, c *ast.Call, args []any) (any, error) {
	switch v := args[0].(type) {
	case int64:
		switch {
		case c.Name == "sign":
			return min(max(v, -1), 1), nil
		case v < 0:
			return subtract(c, 0, v)
		}
		return v, nil
	case float64:
		switch {
		case c.Name == "abs":
			return math.Abs(v), nil
		case v > 0:
			return int64(1), nil
		case v < 0:
			return int64(-1), nil
		}
		return int64(0), nil
	}
	return nil, wants(c, "a number", args[0])
}

// round rounds to a number of digits behind the point; halves go up.
func round(_ *Env, c *ast.Call, args []any) (any, error) {
	f, ok := number(args[0])
	digits, also := int64(0), true
	if len(args) > 1 {
		digits, also = args[1].(int64)
	}
	if !ok || !also || digits < 0 || digits > 300 {
		return nil, wants(c, "a number and a count of digits", args[0])
	}
	p := math.Pow(10, float64(digits))
	if r := math.Floor(f*p+.5) / p; !math.IsInf(f*p, 0) {
		return r, nil
	}
	return f, nil
}

func atan2(_ *Env, c *ast.Call, args []any) (any, error) {
	y, ok := number(args[0])
	x, also := number(args[1])
	if !ok || !also {
		return nil, wants(c, "numbers", args[0])
	}
	return math.Atan2(y, x), nil
}

func isNaN(_ *Env, c *ast.Call, args []any) (any, error) {
	f, ok := number(args[0])
	if !ok {
		return nil, wants(c, "a number", args[0])
	}
	return math.IsNaN(f), nil
}
