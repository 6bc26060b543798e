package eval

import (
	"math"
	"slices"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/value"
)

// Aggregate is the state of an aggregate over the rows of a group.
type Aggregate struct {
	call *ast.Call
	env  *Env
	seen map[string]bool // of DISTINCT

	count  int64
	list   value.List // of collect and the percentiles
	total  any        // of sum and avg, and the least or greatest value
	mean   float64    // of stdev: Welford's running mean and sum of squares
	square float64
	at     any // which percentile
}

// NewAggregate returns the aggregate of a call over no rows.
func (e *Env) NewAggregate(c *ast.Call) *Aggregate {
	a := &Aggregate{call: c, env: e}
	if c.Distinct {
		a.seen = map[string]bool{}
	}
	if c.Name == "sum" {
		a.total = int64(0)
	}
	return a
}

// Add takes a row.
func (a *Aggregate) Add(s *Scope) error {
	if a.call.Star {
		a.count++
		return nil
	}
	v, err := a.env.Eval(a.call.Args[0], s)
	if err != nil {
		return err
	}
	if len(a.call.Args) > 1 {
		if a.at, err = a.env.Eval(a.call.Args[1], s); err != nil {
			return err
		}
	}
	if v == nil {
		return nil
	}
	if a.seen != nil {
		key := string(value.Key(nil, v))
		if a.seen[key] {
			return nil
		}
		a.seen[key] = true
		if err := a.env.Grow(int64(len(key)) + valueBytes); err != nil {
			return err
		}
	}
	return a.add(v)
}

func (a *Aggregate) add(v any) error {
	a.count++
	switch a.call.Name {
	case "collect", "percentilecont", "percentiledisc":
		a.list = append(a.list, v)
		return a.env.Grow(value.Bytes(v))
	case "min":
		if a.count == 1 || value.Order(v, a.total) < 0 {
			a.total = v
		}
	case "max":
		if a.count == 1 || value.Order(v, a.total) > 0 {
			a.total = v
		}
	case "sum", "avg":
		return a.sum(v)
	case "stdev", "stdevp":
		f, ok := number(v)
		if !ok {
			return TypeError(a.call, "%s wants numbers, not %s", a.call.Name, value.Kind(v))
		}
		d := f - a.mean
		a.mean += d / float64(a.count)
		a.square += d * (f - a.mean)
	}
	return nil
}

func (a *Aggregate) sum(v any) (err error) {
	if _, ok := number(v); !ok {
		if _, ok := v.(value.Temporal); !ok {
			return TypeError(a.call, "%s wants numbers, not %s", a.call.Name, value.Kind(v))
		}
	}
	if a.count == 1 {
		a.total = nil
	}
	a.total, err = Plus(a.call, a.total, v)
	return err
}

// Result returns the value of the aggregate.
func (a *Aggregate) Result() (any, error) {
	switch a.call.Name {
	case "count":
		return a.count, nil
	case "collect":
		if a.list == nil {
			return value.List{}, nil
		}
		return a.list, nil
	case "avg":
		if a.count == 0 {
			return nil, nil
		}
		return Divide(a.call, a.total, float64(a.count))
	case "percentilecont", "percentiledisc":
		return a.percentile()
	case "stdev":
		if a.count < 2 {
			return 0.0, nil
		}
		return math.Sqrt(a.square / float64(a.count-1)), nil
	case "stdevp":
		if a.count == 0 {
			return 0.0, nil
		}
		return math.Sqrt(a.square / float64(a.count)), nil
	}
	return a.total, nil
}

func (a *Aggregate) percentile() (any, error) {
	if a.count == 0 {
		return nil, nil
	}
	p, ok := number(a.at)
	if !ok || !(p >= 0 && p <= 1) {
		return nil, ast.Errorf(a.call.Pos(), "ArgumentError", "NumberOutOfRange",
			"a percentile is between 0.0 and 1.0")
	}
	slices.SortFunc(a.list, value.Order)
	for _, v := range []any{a.list[0], a.list[len(a.list)-1]} {
		if _, ok := number(v); !ok {
			return nil, TypeError(a.call, "%s wants numbers, not %s", a.call.Name, value.Kind(v))
		}
	}
	if a.call.Name == "percentiledisc" {
		i := int(math.Ceil(p*float64(a.count))) - 1
		return a.list[max(i, 0)], nil
	}
	at := p * float64(a.count-1)
	low := int(math.Floor(at))
	lo, _ := number(a.list[low])
	hi, _ := number(a.list[min(low+1, len(a.list)-1)])
	return lo + (hi-lo)*(at-float64(low)), nil
}

// Plus returns a + b as sum does; a may be nil for nothing.
func Plus(c *ast.Call, a, b any) (any, error) {
	if a == nil {
		return b, nil
	}
	return arithmetic(&ast.Binary{At: c.At, Op: "+"}, a, b)
}

// Divide returns a / b as avg does.
func Divide(c *ast.Call, a any, b float64) (any, error) {
	return arithmetic(&ast.Binary{At: c.At, Op: "/"}, a, b)
}
