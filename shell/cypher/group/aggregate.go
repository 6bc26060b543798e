// Package group numbers the values by which rows are grouped, and holds what aggregates have of all
// groups: for rows that come in vectors, each of which may count several times.
package group

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// Rows are rows of a vector, of which row i counts Times[i] times.
type Rows struct {
	vector.Rows
	Times []int64
}

// Aggregate is the state of an aggregate of all groups.
type Aggregate interface {
	// Add takes rows, of which row i is of group groups[i]; n is how many groups there are.
	Add(b Rows, groups []int32, n int) error
	// Merge takes the groups of another, which is of the same type: group i becomes to[i].
	Merge(other Aggregate, to []int32) error
	// Result returns the value of a group; of a new one, that of no rows.
	Result(group int32) (any, error)
}

// ErrMany says that a count does not fit.
var ErrMany = errors.New("there are more matches than 2^63: count fewer, with WHERE or a LIMIT " +
	"before it")

// Counts reports whether an aggregate can take a row as often as its batch says without taking it
// again and again.
func Counts(c *ast.Call) bool {
	switch c.Name {
	case "count", "min", "max":
		return true
	case "sum", "avg":
		return !c.Distinct
	}
	return false
}

// New returns the state of an aggregate before any rows.
func New(c *ast.Call, env *vector.Env) Aggregate {
	switch {
	case c.Star:
		return &counting{}
	case c.Name == "count" && c.Distinct:
		return newDistinct(c.Args[0], env)
	case c.Name == "count":
		return &counting{x: c.Args[0], env: env}
	case (c.Name == "sum" || c.Name == "avg") && !c.Distinct:
		return &summing{call: c, env: env}
	case c.Name == "min" || c.Name == "max":
		return &extreme{call: c, env: env}
	}
	return &rowwise{call: c, env: env}
}

// room makes s long enough for a group.
func room[T any](s []T, group int32) []T {
	if more := int(group) + 1 - len(s); more > 0 {
		s = append(s, make([]T, more)...)
	}
	return s
}

// counting is count(*) and count(x).
type counting struct {
	x   ast.Expr
	env *vector.Env
	n   []int64
}

func (a *counting) Add(b Rows, groups []int32, n int) error {
	if n > 0 {
		a.n = room(a.n, int32(n-1))
	}
	if a.x == nil {
		for i, g := range groups {
			if a.n[g] += b.Times[i]; a.n[g] < 0 {
				return ErrMany
			}
		}
		return nil
	}
	v, err := a.env.Eval(a.x, b)
	if err != nil {
		return err
	}
	for i, g := range groups {
		if !v.IsNull(i) {
			if a.n[g] += b.Times[i]; a.n[g] < 0 {
				return ErrMany
			}
		}
	}
	return nil
}

func (a *counting) Merge(other Aggregate, to []int32) error {
	for i, n := range other.(*counting).n {
		g := to[i]
		a.n = room(a.n, g)
		if a.n[g] += n; a.n[g] < 0 {
			return ErrMany
		}
	}
	return nil
}

func (a *counting) Result(g int32) (any, error) {
	a.n = room(a.n, g)
	return a.n[g], nil
}

// summing is sum and avg. Integers are added as such. Floats are added with what rounding loses
// (Neumaier), so that the sum does not depend on the order of rows.
type summing struct {
	call *ast.Call
	env  *vector.Env
	of   []sum
	rest []any // sums of durations; empty if there are none
}

type sum struct {
	n           int64 // of all values
	ints        int64
	float, lost float64
	isFloat     bool
}

func (a *summing) Add(b Rows, groups []int32, n int) error {
	v, err := a.env.Eval(a.call.Args[0], b)
	if err != nil {
		return err
	}
	if n > 0 {
		a.of = room(a.of, int32(n-1))
	}
	for i, g := range groups {
		if v.IsNull(i) {
			continue
		}
		s := &a.of[g]
		s.n += b.Times[i]
		switch {
		case v.Kind == vector.Int && !v.Const:
			err = a.int(s, v.Ints[i], b.Times[i])
		case v.Kind == vector.Float && !v.Const:
			s.isFloat = true
			s.add(v.Floats[i] * float64(b.Times[i]))
		default:
			err = a.any(g, v.At(i), b.Times[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// any adds a value some times.
func (a *summing) any(g int32, x any, times int64) (err error) {
	s := &a.of[g]
	switch x := x.(type) {
	case int64:
		return a.int(s, x, times)
	case float64:
		s.isFloat = true
		s.add(x * float64(times))
		return nil
	case value.Temporal:
		a.rest = room(a.rest, g)
		for range times {
			if a.rest[g], err = eval.Plus(a.call, a.rest[g], x); err != nil {
				return err
			}
		}
		return nil
	}
	return eval.TypeError(a.call, "%s wants numbers, not %s", a.call.Name, value.Kind(x))
}

func (s *sum) add(x float64) {
	t := s.float + x
	if math.Abs(s.float) >= math.Abs(x) {
		s.lost += (s.float - t) + x
	} else {
		s.lost += (x - t) + s.float
	}
	s.float = t
}

// int adds an integer some times.
func (a *summing) int(s *sum, x, times int64) error {
	hi, lo := bits.Mul64(uint64(max(x, -x)), uint64(times))
	product := int64(lo)
	if x < 0 {
		product = -product
	}
	total := s.ints + product
	if hi != 0 || lo > math.MaxInt64 || (total > s.ints) != (product > 0) && product != 0 {
		return ast.Errorf(a.call.Pos(), "ArithmeticError", "IntegerOverflow",
			"the sum does not fit an integer of 64 bits: add toFloat of the values")
	}
	s.ints = total
	return nil
}

func (a *summing) Merge(other Aggregate, to []int32) error {
	for i, o := range other.(*summing).of {
		a.of = room(a.of, to[i])
		s := &a.of[to[i]]
		s.n += o.n
		s.isFloat = s.isFloat || o.isFloat
		s.add(o.float)
		s.lost += o.lost
		if err := a.int(s, o.ints, 1); err != nil {
			return err
		}
	}
	for i, x := range other.(*summing).rest {
		if x != nil {
			if err := a.any(to[i], x, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *summing) Result(g int32) (any, error) {
	a.of = room(a.of, g)
	s := &a.of[g]
	var total any = s.ints
	if s.isFloat {
		total = float64(s.ints) + s.float + finite(s.lost)
	}
	if int(g) < len(a.rest) && a.rest[g] != nil {
		if s.ints != 0 || s.isFloat {
			return eval.Plus(a.call, a.rest[g], total)
		}
		total = a.rest[g]
	}
	if a.call.Name == "avg" {
		if s.n == 0 {
			return nil, nil
		}
		return eval.Divide(a.call, total, float64(s.n))
	}
	return total, nil
}

// finite returns 0 for what rounding loses where a sum has no bounds.
func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// extreme is min and max.
type extreme struct {
	call *ast.Call
	env  *vector.Env
	best []any
}

func (a *extreme) Add(b Rows, groups []int32, n int) error {
	v, err := a.env.Eval(a.call.Args[0], b)
	if err != nil {
		return err
	}
	if n > 0 {
		a.best = room(a.best, int32(n-1))
	}
	for i, g := range groups {
		if !v.IsNull(i) {
			a.take(g, v.At(i))
		}
	}
	return nil
}

func (a *extreme) take(g int32, v any) {
	if a.best[g] == nil {
		a.best[g] = v
		return
	}
	c := value.Order(v, a.best[g])
	if a.call.Name == "min" && c < 0 || a.call.Name == "max" && c > 0 {
		a.best[g] = v
	}
}

func (a *extreme) Merge(other Aggregate, to []int32) error {
	for i, v := range other.(*extreme).best {
		if v != nil {
			a.best = room(a.best, to[i])
			a.take(to[i], v)
		}
	}
	return nil
}

func (a *extreme) Result(g int32) (any, error) {
	a.best = room(a.best, g)
	return a.best[g], nil
}

// rowwise is what package eval computes row by row. A statement that has one runs in one thread.
type rowwise struct {
	call *ast.Call
	env  *vector.Env
	of   []*eval.Aggregate
}

func (a *rowwise) Add(b Rows, groups []int32, n int) error {
	a.env.Rows.Lock()
	defer a.env.Rows.Unlock()
	for i, g := range groups {
		a.of = room(a.of, g)
		if a.of[g] == nil {
			a.of[g] = a.env.Row.NewAggregate(a.call)
		}
		s := b.Scope(i)
		for range b.Times[i] {
			if err := a.of[g].Add(s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *rowwise) Merge(other Aggregate, to []int32) error {
	for i, of := range other.(*rowwise).of {
		a.of = room(a.of, to[i])
		if a.of[to[i]] != nil && of != nil {
			return fmt.Errorf("%s of one group in two threads", a.call.Name)
		}
		a.of[to[i]] = of
	}
	return nil
}

func (a *rowwise) Result(g int32) (any, error) {
	a.of = room(a.of, g)
	if a.of[g] == nil {
		a.of[g] = a.env.Row.NewAggregate(a.call)
	}
	return a.of[g].Result()
}

// Comparison returns how results of groups compare, of which all are the numbers.
func Comparison(a Aggregate, all []int32) (func(a, b int32) int, error) {
	switch a := a.(type) {
	case *counting:
		a.n = room(a.n, int32(len(all)-1))
		return func(i, j int32) int { return cmp.Compare(a.n[i], a.n[j]) }, nil
	case *distinct:
		a.n = room(a.n, int32(len(all)-1))
		return func(i, j int32) int { return cmp.Compare(a.n[i], a.n[j]) }, nil
	}
	vals := make([]any, len(all))
	for _, i := range all {
		var err error
		if vals[i], err = a.Result(i); err != nil {
			return nil, err
		}
	}
	return func(i, j int32) int { return value.Order(vals[i], vals[j]) }, nil
}
