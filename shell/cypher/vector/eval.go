package vector

import (
	"cmp"
	"math"
	"strings"
	"sync"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/value"
)

// Rows are what an expression is computed for.
type Rows interface {
	Len() int
	// Vector returns a variable; nil if it is only in scopes.
	Vector(name string) *Vector
	// Scope returns all variables of a row.
	Scope(row int) *eval.Scope
}

// Env is what expressions read besides their rows. One goroutine may use it; several share a Row,
// which is used by one at a time.
type Env struct {
	Row *eval.Env
	// Rows is locked while Row computes.
	Rows *sync.Mutex
	// Property writes a property of nodes or of relationships; false if that is to be read row by
	// row.
	Property func(of *Vector, key string, out *Vector) (bool, error)
}

// Eval returns the values of x.
func (e *Env) Eval(x ast.Expr, rows Rows) (*Vector, error) {
	v, err := e.fast(x, rows)
	if v != nil || err != nil {
		return v, err
	}
	return e.slow(x, rows)
}

// slow computes x row by row.
func (e *Env) slow(x ast.Expr, rows Rows) (*Vector, error) {
	e.Rows.Lock()
	defer e.Rows.Unlock()
	out := &Vector{Anys: make([]any, rows.Len())}
	for i := range out.Anys {
		var err error
		if out.Anys[i], err = e.Row.Eval(x, rows.Scope(i)); err != nil {
			return nil, err
		}
		if err := e.Row.Stop(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fast computes what it can; nil for what it cannot.
func (e *Env) fast(x ast.Expr, rows Rows) (*Vector, error) {
	switch x := x.(type) {
	case *ast.Literal:
		return Of(x.Value), nil
	case *ast.Var:
		return rows.Vector(x.Name), nil
	case *ast.Prop:
		return e.property(x, rows)
	case *ast.Compare:
		return e.compare(x, rows)
	case *ast.IsNull:
		v, err := e.Eval(x.X, rows)
		if err != nil {
			return nil, err
		}
		return nulls(v, x.Not, rows.Len()), nil
	case *ast.Unary:
		return e.not(x, rows)
	case *ast.Binary:
		return e.binary(x, rows)
	case *ast.Call:
		return e.call(x, rows)
	}
	return e.constant(x)
}

// constant computes once what no row changes.
func (e *Env) constant(x ast.Expr) (*Vector, error) {
	if !Constant(x) {
		return nil, nil
	}
	e.Rows.Lock()
	defer e.Rows.Unlock()
	v, err := e.Row.Eval(x, nil)
	if err != nil {
		return nil, err
	}
	return Of(v), nil
}

// Constant reports whether x has the same value in all rows.
func Constant(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Literal, *ast.Param:
		return true
	case *ast.Var, *ast.PatternComp, *ast.Exists, *ast.ListComp, *ast.Quantifier, *ast.Reduce:
		return false
	case *ast.Call:
		if x.Name == "rand" || x.Star || ast.Aggregates[x.Name] {
			return false
		}
	}
	for _, child := range ast.Children(x) {
		if !Constant(child) {
			return false
		}
	}
	return true
}

func (e *Env) property(x *ast.Prop, rows Rows) (*Vector, error) {
	of, ok := x.Of.(*ast.Var)
	if !ok {
		return e.constant(x)
	}
	v := rows.Vector(of.Name)
	if v == nil || v.Kind != Node && v.Kind != Rel {
		return nil, nil
	}
	out := &Vector{}
	if ok, err := e.Property(v, x.Key, out); !ok || err != nil {
		return nil, err
	}
	return out, nil
}

// call computes id of nodes, and length of paths.
func (e *Env) call(x *ast.Call, rows Rows) (*Vector, error) {
	of, ok := map[string]Kind{"id": Node, "length": Path}[x.Name]
	if !ok || len(x.Args) != 1 || Constant(x) {
		return e.constant(x)
	}
	v, err := e.fast(x.Args[0], rows)
	if err != nil || v == nil || v.Kind != of {
		return nil, err
	}
	out := &Vector{Kind: Int, Ints: make([]int64, len(v.Nodes))}
	for i, n := range v.Nodes {
		if n == NoNode {
			return nil, nil
		}
		out.Ints[i] = int64(n)
	}
	return out, nil
}

func nulls(v *Vector, not bool, n int) *Vector {
	out := &Vector{Kind: Bool, Tris: make([]value.Tri, n)}
	for i := range out.Tris {
		out.Tris[i] = value.Of(v.isNull(v.place(i)) != not)
	}
	return out
}

func (e *Env) not(x *ast.Unary, rows Rows) (*Vector, error) {
	if x.Op != "NOT" {
		return e.constant(x)
	}
	v, err := e.Eval(x.X, rows)
	if err != nil || v.Kind != Bool {
		return nil, err
	}
	out := &Vector{Kind: Bool, Const: v.Const, Tris: make([]value.Tri, len(v.Tris))}
	for i, t := range v.Tris {
		out.Tris[i] = t.Not()
	}
	return out, nil
}

// compare computes a chain of comparisons.
func (e *Env) compare(x *ast.Compare, rows Rows) (*Vector, error) {
	l, err := e.Eval(x.Xs[0], rows)
	if err != nil {
		return nil, err
	}
	out := &Vector{Kind: Bool, Tris: make([]value.Tri, rows.Len())}
	for i := range out.Tris {
		out.Tris[i] = value.True
	}
	for k, op := range x.Ops {
		r, err := e.Eval(x.Xs[k+1], rows)
		if err != nil {
			return nil, err
		}
		compared(op, l, r, out.Tris)
		l = r
	}
	return out, nil
}

// compared combines a comparison with what the chain before it gave.
func compared(op string, l, r *Vector, out []value.Tri) {
	switch {
	case l.Kind == r.Kind && (l.Kind == Int || l.Kind == Date || l.Kind == Timestamp):
		each(op, l, r, l.Ints, r.Ints, out)
	case l.Kind == Float && r.Kind == Float:
		floats(op, l, r, l.Floats, r.Floats, out)
	case l.Kind == Float && r.Kind == Int && r.Const && exact(r.Ints[0]):
		floats(op, l, r, l.Floats, []float64{float64(r.Ints[0])}, out)
	case l.Kind == String && r.Kind == String:
		each(op, l, r, l.Strings, r.Strings, out)
	case l.Kind == Node && r.Kind == Node && (op == "=" || op == "<>"):
		each(op, l, r, l.Nodes, r.Nodes, out)
	default:
		for i := range out {
			out[i] = and(out[i], eval.Compare(op, l.At(i), r.At(i)))
		}
	}
}

// exact reports whether a float holds an integer without loss.
func exact(n int64) bool { return n > -1<<53 && n < 1<<53 }

// each compares values that have an order.
func each[T cmp.Ordered](op string, l, r *Vector, a, b []T, out []value.Tri) {
	test := tests[T](op)
	la, ra := 1, 1
	if l.Const {
		la = 0
	}
	if r.Const {
		ra = 0
	}
	null := l.HasNull() || r.HasNull()
	for i := range out {
		if null && (l.isNull(i*la) || r.isNull(i*ra)) {
			out[i] = and(out[i], value.Null)
		} else if !test(a[i*la], b[i*ra]) {
			out[i] = value.False
		}
	}
}

// tests returns what an operator says of two values.
func tests[T cmp.Ordered](op string) func(a, b T) bool {
	switch op {
	case "=":
		return func(a, b T) bool { return a == b }
	case "<>":
		return func(a, b T) bool { return a != b }
	case "<":
		return func(a, b T) bool { return a < b }
	case "<=":
		return func(a, b T) bool { return a <= b }
	case ">":
		return func(a, b T) bool { return a > b }
	}
	return func(a, b T) bool { return a >= b }
}

// floats compares numbers, of which NaN is equal to none.
func floats(op string, l, r *Vector, a, b []float64, out []value.Tri) {
	if op == "<>" {
		for i := range out {
			x, y := a[l.place(i)], b[r.place(i)]
			if math.IsNaN(x) || math.IsNaN(y) {
				out[i] = and(out[i], eval.Compare(op, l.At(i), r.At(i)))
				continue
			}
			if l.isNull(l.place(i)) || r.isNull(r.place(i)) {
				out[i] = and(out[i], value.Null)
			} else if x == y {
				out[i] = value.False
			}
		}
		return
	}
	each(op, l, r, a, b, out)
}

func and(a, b value.Tri) value.Tri {
	switch {
	case a == value.False || b == value.False:
		return value.False
	case a == value.Null || b == value.Null:
		return value.Null
	}
	return value.True
}

func or(a, b value.Tri) value.Tri { return and(a.Not(), b.Not()).Not() }

func xor(a, b value.Tri) value.Tri {
	if a == value.Null || b == value.Null {
		return value.Null
	}
	return value.Of(a != b)
}

func (e *Env) binary(x *ast.Binary, rows Rows) (*Vector, error) {
	if Constant(x) {
		return e.constant(x)
	}
	switch x.Op {
	case "AND":
		return e.logic(x, rows, and)
	case "OR":
		return e.logic(x, rows, or)
	case "XOR":
		return e.logic(x, rows, xor)
	case "STARTS WITH":
		return e.strings(x, rows, strings.HasPrefix)
	case "ENDS WITH":
		return e.strings(x, rows, strings.HasSuffix)
	case "CONTAINS":
		return e.strings(x, rows, strings.Contains)
	case "IN":
		return e.in(x, rows)
	case "+", "-", "*", "/", "%":
		return e.arithmetic(x, rows)
	}
	return nil, nil
}

func (e *Env) logic(x *ast.Binary, rows Rows, op func(a, b value.Tri) value.Tri) (*Vector, error) {
	l, err := e.Eval(x.L, rows)
	if err != nil || l.Kind != Bool {
		return nil, err
	}
	r, err := e.Eval(x.R, rows)
	if err != nil || r.Kind != Bool {
		return nil, err
	}
	out := &Vector{Kind: Bool, Tris: make([]value.Tri, rows.Len())}
	for i := range out.Tris {
		out.Tris[i] = op(l.Tris[l.place(i)], r.Tris[r.place(i)])
	}
	return out, nil
}

func (e *Env) strings(x *ast.Binary, rows Rows, test func(s, part string) bool) (*Vector, error) {
	l, err := e.Eval(x.L, rows)
	if err != nil || l.Kind != String {
		return nil, err
	}
	r, err := e.Eval(x.R, rows)
	if err != nil || r.Kind != String {
		return nil, err
	}
	out := &Vector{Kind: Bool, Tris: make([]value.Tri, rows.Len())}
	for i := range out.Tris {
		a, b := l.place(i), r.place(i)
		out.Tris[i] = value.Null
		if !l.isNull(a) && !r.isNull(b) {
			out.Tris[i] = value.Of(test(l.Strings[a], r.Strings[b]))
		}
	}
	return out, nil
}

// in looks integers and strings up in a list that is the same for all rows.
func (e *Env) in(x *ast.Binary, rows Rows) (*Vector, error) {
	if !Constant(x.R) {
		return nil, nil
	}
	r, err := e.constant(x.R)
	if err != nil || r.Kind != Any {
		return nil, err
	}
	list, ok := r.Anys[0].(value.List)
	if !ok {
		return nil, nil
	}
	l, err := e.Eval(x.L, rows)
	if err != nil {
		return nil, err
	}
	ints, texts, null := map[int64]bool{}, map[string]bool{}, value.False
	for _, v := range list {
		switch v := v.(type) {
		case int64:
			ints[v] = true
		case string:
			texts[v] = true
		case nil:
			null = value.Null
		default:
			return nil, nil
		}
	}
	if l.Kind != Int && l.Kind != String {
		return nil, nil
	}
	out := &Vector{Kind: Bool, Tris: make([]value.Tri, rows.Len())}
	for i := range out.Tris {
		k := l.place(i)
		out.Tris[i] = null
		switch {
		case l.isNull(k):
			out.Tris[i] = value.Null
			if len(list) == 0 {
				out.Tris[i] = value.False
			}
		case l.Kind == Int && ints[l.Ints[k]], l.Kind == String && texts[l.Strings[k]]:
			out.Tris[i] = value.True
		}
	}
	return out, nil
}

// arithmetic computes with numbers; with floats if one side has them. What overflows, or divides by
// the integer zero, is left to rows, which say where.
func (e *Env) arithmetic(x *ast.Binary, rows Rows) (*Vector, error) {
	l, err := e.Eval(x.L, rows)
	if err != nil {
		return nil, err
	}
	r, err := e.Eval(x.R, rows)
	if err != nil {
		return nil, err
	}
	if l.Kind != Int && l.Kind != Float || r.Kind != Int && r.Kind != Float {
		return nil, nil
	}
	n := rows.Len()
	out := &Vector{Kind: max(l.Kind, r.Kind)}
	if l.HasNull() || r.HasNull() {
		out.Null = make([]bool, n)
		for i := range out.Null {
			out.Null[i] = l.isNull(l.place(i)) || r.isNull(r.place(i))
		}
	}
	if out.Kind == Float {
		out.Floats = make([]float64, n)
		for i := range out.Floats {
			out.Floats[i] = float(x.Op, l.float(i), r.float(i))
		}
		return out, nil
	}
	out.Ints = make([]int64, n)
	for i := range out.Ints {
		var ok bool
		a, b := l.Ints[l.place(i)], r.Ints[r.place(i)]
		if out.Ints[i], ok = integer(x.Op, a, b); !ok && !(len(out.Null) > 0 && out.Null[i]) {
			return nil, nil
		}
	}
	return out, nil
}

// float returns the number of a row.
func (v *Vector) float(i int) float64 {
	if v.Kind == Int {
		return float64(v.Ints[v.place(i)])
	}
	return v.Floats[v.place(i)]
}

func float(op string, a, b float64) float64 {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "/":
		return a / b
	case "%":
		return math.Mod(a, b)
	}
	return a * b
}

// integer computes with small numbers; false for those that may overflow, and for division by zero.
func integer(op string, a, b int64) (int64, bool) {
	const most = 1 << 31
	ok := a > -most && a < most && b > -most && b < most
	switch op {
	case "+":
		return a + b, ok
	case "-":
		return a - b, ok
	case "/", "%":
		if b == 0 {
			return 0, false
		}
		if op == "%" {
			return a % b, true
		}
		return a / b, ok
	}
	return a * b, ok
}

// Filter sets keep to the rows in which x is true.
func (e *Env) Filter(x ast.Expr, rows Rows, keep []bool) error {
	v, err := e.Eval(x, rows)
	if err != nil {
		return err
	}
	for i := range keep {
		k := v.place(i)
		if v.Kind == Bool {
			keep[i] = v.Tris[k] == value.True
			continue
		}
		switch t := v.At(i).(type) {
		case nil:
			keep[i] = false
		case bool:
			keep[i] = t
		default:
			return e.refuse(x, rows, i)
		}
	}
	return nil
}

// refuse returns the error for a condition that is not true, false or null.
func (e *Env) refuse(x ast.Expr, rows Rows, row int) error {
	e.Rows.Lock()
	defer e.Rows.Unlock()
	_, err := e.Row.Holds(x, rows.Scope(row))
	return err
}
