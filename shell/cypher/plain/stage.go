package plain

import (
	"errors"

	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/value"
)

// Stage is how an engine runs some clauses.
type Stage struct {
	Clauses int
	// Groups says that it also makes the groups of the clause after these, which is a Project.
	Groups bool
	// Values says that it also computes the columns of the clause after these, which is a Project.
	Values bool
	// Rows is about how many rows it gives.
	Rows float64
	// Run runs the clauses for some rows of the clauses before, in their order. It is called again
	// and again. The first clause of a statement has one row, without variables.
	Run func(rows []*eval.Scope, out Out) error
	// End hands on what is known once all rows have come; it may be nil.
	End func(out Out) error
}

// Out takes what an engine gives: rows, or the first row of each group with the results of its
// aggregates, in the order of the columns and then of ORDER BY; or the values of columns and of
// ORDER BY, with the row where WHERE follows.
type Out struct {
	Row   func(s *eval.Scope) error
	Group func(first *eval.Scope, results []any) error

	Values func(s *eval.Scope, vals, keys value.List) error
}

// These bound the rows for which a stage runs at once: few at first, so that a LIMIT is met soon.
const (
	stagedLeast = 128
	stagedMost  = 16 << 10
)

// staged runs clauses by an engine.
type staged struct {
	x    *execution
	s    *Stage
	next sink
	out  Out
	rows []*eval.Scope
	room int // rows that it runs for
}

func newStaged(x *execution, s *Stage, next sink) *staged {
	out := Out{Row: next.push}
	if p, ok := next.(*projecting); ok {
		out.Group, out.Values = p.group, p.values
	}
	return &staged{x: x, s: s, next: next, out: out, room: stagedLeast}
}

func (s *staged) push(row *eval.Scope) error {
	if len(s.rows) == s.room {
		if err := s.run(); err != nil {
			return err
		}
		s.room = min(8*s.room, stagedMost)
	}
	s.rows = append(s.rows, row)
	return s.x.env.Grow(rowBytes)
}

// run runs the clauses for the rows so far.
func (s *staged) run() error {
	defer func(was bool) { s.x.fronted = was }(s.x.fronted)
	s.x.fronted = true
	err := s.s.Run(s.rows, s.out)
	if back := s.x.env.Grow(-rowBytes * int64(len(s.rows))); err == nil {
		err = back
	}
	clear(s.rows)
	s.rows = s.rows[:0]
	return err
}

func (s *staged) end() error {
	var err error
	if len(s.rows) > 0 {
		err = s.run()
	}
	if err == nil && s.s.End != nil {
		err = s.s.End(s.out)
	}
	if err != nil && !errors.Is(err, errStop) {
		return err
	}
	return s.next.end()
}

// unknownRows is how many rows a clause is taken to make of one where nothing tells.
const unknownRows = 10

// after returns the clause after the at-th, or after those of a stage, and about how many rows it
// takes.
func after(clauses []ast.Clause, at int, rows float64, s *Stage) (int, float64) {
	if s != nil {
		return at + s.Clauses, s.Rows
	}
	switch c := clauses[at].(type) {
	case *ast.Unwind:
		if l, ok := c.X.(*ast.List); ok {
			return at + 1, rows * float64(len(l.Items))
		}
		rows *= unknownRows
	case *ast.Match, *ast.CallProc:
		rows *= unknownRows
	case *ast.Project:
		if l, ok := c.Limit.(*ast.Literal); ok {
			if n, ok := l.Value.(int64); ok {
				rows = min(rows, float64(n))
			}
		}
	}
	return at + 1, rows
}
