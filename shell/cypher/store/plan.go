package store

import (
	"context"
	"errors"

	"gdb/internal/mem"
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/engine"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/value"
	"gdb/shell/exec"
	"gdb/shell/lang"
)

// Check reads a statement of openCypher, and sets its INTO. A mistake is a *lang.SyntaxError.
func Check(p *lang.Parsed, procs []Procedure) error {
	src, from := p.Cypher()
	q, err := plain.Prepare(src[from:], plain.Options{Procedures: signatures(procs)})
	if err != nil {
		return placed(err, src, from)
	}
	if q.AST.Into != "" {
		p.Args = map[string]lang.Value{"INTO": {Text: q.AST.Into}}
	}
	return nil
}

// placed turns a mistake in a statement into one that shows its place. What data are at fault for
// stays as it is.
func placed(err error, src string, from int) error {
	var e *ast.Error
	if errors.As(err, &e) && e.Pos >= 0 && e.Type != "ArithmeticError" {
		return &lang.SyntaxError{Src: src, Msg: e.Msg, Pos: from + e.Pos,
			AtEnd: from+e.Pos == len(src)}
	}
	return err
}

// Planner plans statements of openCypher that may CALL procedures: one operator, which runs a
// statement clause by clause, and below it what the engine runs.
func Planner(procs []Procedure) exec.Planner {
	return func(x *exec.Execution) (*exec.Plan, error) {
		src, from := x.Cypher()
		q, err := plain.Prepare(src[from:], plain.Options{Procedures: signatures(procs)})
		if err != nil {
			return nil, placed(err, src, from)
		}
		root := x.Operator("cypher", "clause by clause, row by row", -1, -1)
		if x.Mode == lang.ModeExplain {
			return &exec.Plan{Root: root}, explain(x, root, q)
		}
		return &exec.Plan{Root: root, Run: func(ctx context.Context) error {
			return placed(answer(ctx, x, root, q, procs), src, from)
		}}, nil
	}
}

// with calls run with the store for one statement, and what it is run with. tell is told how the
// engine runs a part of it.
func with(ctx context.Context, x *exec.Execution, root *exec.Operator, tell func([]engine.Step),
	run func(s *store, o plain.Options) error) (err error) {
	s := newStore(ctx, x, root)
	defer func() { err = errors.Join(err, s.Close()) }()
	held := mem.NewAccount(x.Graph.Budget, "rows of the statement")
	defer held.Release()
	if err := s.leaveOut(&held); err != nil {
		return err
	}
	lists := newSource(s, &held)
	defer lists.Close()
	return run(s, plain.Options{Params: x.Params, Grow: lists.Grow,
		Engine: &engine.Engine{Source: lists, Tell: tell}})
}

// answer runs a statement.
func answer(ctx context.Context, x *exec.Execution, root *exec.Operator, q *plain.Query,
	procs []Procedure) error {
	x.WarnApart()
	x.Header(q.Columns...)
	var steps []engine.Step
	var ops []*exec.Operator
	tell := func(of []engine.Step) {
		steps, ops = append(steps, of...), append(ops, operators(x, root, of)...)
	}
	err := with(ctx, x, root, tell, func(s *store, o plain.Options) error {
		s.warnDates(q.AST)
		o.Procedures = s.procedures(procs)
		return q.Run(ctx, s, o, func(row []any) error {
			if !x.TakesValues() {
				if err := cells(row); err != nil {
					return err
				}
			}
			x.Row(row...)
			return x.Err()
		})
	})
	for i, op := range ops {
		op.Emit(int(steps[i].Out()), 0)
	}
	return err
}

// operators puts the steps of the engine below the last operator, and what gives them rows below
// the first.
func operators(x *exec.Execution, root *exec.Operator, steps []engine.Step) (out []*exec.Operator) {
	for i, s := range steps {
		op := x.Operator(s.Name, s.Detail, s.Rows, -1)
		switch {
		case i > 0:
			op.Inputs = []*exec.Operator{out[i-1]}
		case s.Name == engine.RowsStep:
			op.Inputs, root.Inputs = root.Inputs, nil
		}
		out = append(out, op)
	}
	root.Detail = "groups, sorts and returns"
	root.Inputs = append(root.Inputs, out[len(out)-1])
	return out
}

// explain plans a statement without running it. It reads the lists of which sizes are estimated.
func explain(x *exec.Execution, root *exec.Operator, q *plain.Query) error {
	ctx := context.Background()
	tell := func(of []engine.Step) {
		x.PlanRead = true
		operators(x, root, of)
	}
	return with(ctx, x, root, tell, func(s *store, o plain.Options) error {
		return q.Plan(ctx, s, o)
	})
}

// cells makes of values what renderers take: all but numbers, strings and null become text.
func cells(row []any) error {
	for i, v := range row {
		switch v := v.(type) {
		case nil, int64, float64, string:
		case value.Temporal:
			row[i] = v.String()
		default:
			text, err := value.Text(v)
			if err != nil {
				return err
			}
			row[i] = text
		}
	}
	return nil
}
