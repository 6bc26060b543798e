// Package ast holds openCypher statements as values: what package parse reads, package check
// proves, and an evaluator or a planner runs.
package ast

// At is a place in the text of a statement: an offset in bytes.
type At int

// Pos returns the place.
func (a At) Pos() int { return int(a) }

// Query is a statement: single queries joined by UNION.
type Query struct {
	Singles []*Single
	All     []bool // of the UNION before Singles[i+1]: whether it keeps duplicates
	Into    string // the file of INTO, which is not of openCypher; "" for none
}

// Single is a chain of clauses, the last of which returns.
type Single struct {
	At
	Clauses []Clause
}

// Clause is Match, Unwind, Project, CallProc or Write.
type Clause interface{ Pos() int }

// Match is MATCH or OPTIONAL MATCH.
type Match struct {
	At
	Optional bool
	Patterns []*Pattern
	Where    Expr // nil for none
}

// Unwind is UNWIND X AS Name.
type Unwind struct {
	At
	X    Expr
	Name string
}

// Project is WITH or RETURN.
type Project struct {
	At
	With, Distinct, Star bool
	Items                []Item
	OrderBy              []Sort
	Skip, Limit, Where   Expr // nil for none
}

// Item is a column: an expression and its name, which is its text if AS gives none.
type Item struct {
	At
	X     Expr
	Name  string
	Named bool // by AS
}

// Sort is a key of ORDER BY.
type Sort struct {
	X    Expr
	Desc bool
}

// CallProc is CALL of a procedure.
type CallProc struct {
	At
	Name     string
	Implicit bool // no arguments in parentheses: they are parameters of the statement
	Args     []Expr
	Star     bool // YIELD *
	Yield    []Yield
	NoYield  bool // no YIELD: what it returns is thrown away, or is the result if it stands alone
	Where    Expr
}

// Yield is a column that CALL takes over, under a name.
type Yield struct {
	At
	Field, Name string
}

// Write is a clause that changes a graph. Only CREATE and DELETE are read in full; package check
// refuses all.
type Write struct {
	At
	Word     string
	Patterns []*Pattern
	Xs       []Expr
}

// Pattern is a path of a MATCH: Nodes[i] -Rels[i]- Nodes[i+1].
type Pattern struct {
	At
	Name     string // of the path; "" for none
	Shortest string // shortestPath, allShortestPaths or ""
	Nodes    []*Node
	Rels     []*Rel
}

// Node is (Name:Label:Label {Props}).
type Node struct {
	At
	Name   string
	Labels []string
	Props  Expr // a map or a parameter; nil for none
}

// Direction is where the arrow of a relationship points.
type Direction uint8

// The directions, seen from the node on the left.
const (
	Both Direction = iota
	Out
	In
)

// Rel is -[Name:Type|Type*Least..Most {Props}]->.
type Rel struct {
	At
	Name     string
	Types    []string
	Dir      Direction
	Variable bool // a star: the name is of a list
	Least    int
	Most     int // -1 for no bound
	Props    Expr
}

// Names returns the variables of the patterns.
func (m *Match) Names() (out []string) {
	add := func(name string) {
		if name != "" {
			out = append(out, name)
		}
	}
	for _, p := range m.Patterns {
		add(p.Name)
		for _, n := range p.Nodes {
			add(n.Name)
		}
		for _, r := range p.Rels {
			add(r.Name)
		}
	}
	return out
}
