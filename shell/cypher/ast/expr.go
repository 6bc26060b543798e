package ast

// Expr is one of the types of this file.
type Expr interface{ Pos() int }

// Expressions, by the grammar's names.
type (
	// Literal is null, a boolean, an int64, a float64 or a string.
	Literal struct {
		At
		Value any
	}
	// Param is $Name.
	Param struct {
		At
		Name string
	}
	// Var is a variable.
	Var struct {
		At
		Name string
	}
	// Prop is Of.Key.
	Prop struct {
		At
		Of  Expr
		Key string
	}
	// Index is Of[I].
	Index struct {
		At
		Of, I Expr
	}
	// Slice is Of[From..To]; either may be nil.
	Slice struct {
		At
		Of, From, To Expr
	}
	// List is [Items].
	List struct {
		At
		Items []Expr
	}
	// Map is {Keys[i]: Values[i]}.
	Map struct {
		At
		Keys   []string
		Values []Expr
	}
	// Unary is NOT, + or - before X.
	Unary struct {
		At
		Op string
		X  Expr
	}
	// Binary is L Op R: OR, XOR, AND, IN, STARTS WITH, ENDS WITH, CONTAINS, + - * / % ^ or =~.
	Binary struct {
		At
		Op   string
		L, R Expr
	}
	// Compare is a chain: Xs[0] Ops[0] Xs[1] Ops[1] Xs[2] and so on, all of which must hold.
	Compare struct {
		At
		Ops []string
		Xs  []Expr
	}
	// IsNull is X IS NULL, or IS NOT NULL.
	IsNull struct {
		At
		X   Expr
		Not bool
	}
	// HasLabels is X:Label:Label.
	HasLabels struct {
		At
		X      Expr
		Labels []string
	}
	// Call is a function or an aggregate. Name is in lower case.
	Call struct {
		At
		Name           string
		Distinct, Star bool
		Args           []Expr
	}
	// Case is CASE Of WHEN ... END; Of may be nil.
	Case struct {
		At
		Of        Expr
		Whens     []Expr
		Thens     []Expr
		Otherwise Expr
	}
	// ListComp is [Name IN In WHERE Where | Each].
	ListComp struct {
		At
		Name            string
		In, Where, Each Expr
	}
	// Quantifier is all, any, none or single (Name IN In WHERE Where).
	Quantifier struct {
		At
		Kind, Name string
		In, Where  Expr
	}
	// Reduce is reduce(Acc = Init, Name IN In | Each).
	Reduce struct {
		At
		Acc, Name      string
		Init, In, Each Expr
	}
	// PatternComp is [Pattern WHERE Where | Each].
	PatternComp struct {
		At
		Pattern     *Pattern
		Where, Each Expr
	}
	// Exists is EXISTS { }: a query, or patterns with a condition. A pattern that stands as a
	// condition is Exists too, with Bare set.
	Exists struct {
		At
		Bare  bool
		Match *Match
		Query *Query
	}
)

// Children returns the expressions that x is made of, without those of patterns and subqueries.
func Children(x Expr) []Expr {
	switch x := x.(type) {
	case *Prop:
		return []Expr{x.Of}
	case *Index:
		return []Expr{x.Of, x.I}
	case *Slice:
		return some(x.Of, x.From, x.To)
	case *List:
		return x.Items
	case *Map:
		return x.Values
	case *Unary:
		return []Expr{x.X}
	case *Binary:
		return []Expr{x.L, x.R}
	case *Compare:
		return x.Xs
	case *IsNull:
		return []Expr{x.X}
	case *HasLabels:
		return []Expr{x.X}
	case *Call:
		return x.Args
	case *Case:
		return some(append(append([]Expr{x.Of, x.Otherwise}, x.Whens...), x.Thens...)...)
	case *ListComp:
		return some(x.In, x.Where, x.Each)
	case *Quantifier:
		return some(x.In, x.Where)
	case *Reduce:
		return []Expr{x.Init, x.In, x.Each}
	case *PatternComp:
		return some(x.Where, x.Each)
	}
	return nil
}

// some returns those of xs that are there.
func some(xs ...Expr) (out []Expr) {
	for _, x := range xs {
		if x != nil {
			out = append(out, x)
		}
	}
	return out
}

// Conjuncts returns the conditions that AND joins in x.
func Conjuncts(x Expr) []Expr {
	if b, ok := x.(*Binary); ok && b.Op == "AND" {
		return append(Conjuncts(b.L), Conjuncts(b.R)...)
	}
	return []Expr{x}
}

// Aggregates are the functions that take the rows of a group.
var Aggregates = map[string]bool{"count": true, "sum": true, "avg": true, "min": true, "max": true,
	"collect": true, "percentilecont": true, "percentiledisc": true, "stdev": true, "stdevp": true}

// AggregatesOf returns the aggregates in x, outermost only, in the order of the text.
func AggregatesOf(x Expr) (out []*Call) {
	if c, ok := x.(*Call); ok && Aggregates[c.Name] {
		return []*Call{c}
	}
	for _, child := range Children(x) {
		out = append(out, AggregatesOf(child)...)
	}
	return out
}

// IDFunction is the key that KeyOf returns for the function id.
const IDFunction = "id()"

// KeyOf returns the key of x if it is a property of a variable, and IDFunction if it is its id(). A
// property of that name is none.
func KeyOf(x Expr, name string) (key string, ok bool) {
	of := x
	switch x := x.(type) {
	case *Prop:
		if x.Key != IDFunction {
			key, of = x.Key, x.Of
		}
	case *Call:
		if x.Name != "id" || len(x.Args) != 1 {
			return "", false
		}
		key, of = IDFunction, x.Args[0]
	}
	v, is := of.(*Var)
	return key, is && key != "" && v.Name == name
}
