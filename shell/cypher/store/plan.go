package store

import (
	"context"
	"errors"

	"gdb/internal/mem"
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/plain"
	"gdb/shell/cypher/value"
	"gdb/shell/exec"
	"gdb/shell/lang"
)

// Check reads a statement of openCypher, and sets its INTO. A mistake is a *lang.SyntaxError.
func Check(p *lang.Parsed) error {
	src, from := p.Cypher()
	q, err := plain.Prepare(src[from:], plain.Options{})
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

// Plan plans a statement of openCypher: one operator, which runs it clause by clause.
func Plan(x *exec.Execution) (*exec.Plan, error) {
	src, from := x.Cypher()
	q, err := plain.Prepare(src[from:], plain.Options{})
	if err != nil {
		return nil, placed(err, src, from)
	}
	root := x.Operator("cypher", "clause by clause, row by row", -1, -1)
	return &exec.Plan{Root: root, Run: func(ctx context.Context) (err error) {
		s := newStore(ctx, x, root)
		defer func() { err = errors.Join(err, s.Close()) }()
		x.WarnApart()
		x.Header(q.Columns...)
		held := mem.NewAccount(x.Graph.Budget, "rows of the statement")
		defer held.Release()
		o := plain.Options{Params: x.Params, Grow: held.Add}
		err = q.Run(ctx, s, o, func(row []any) error {
			if err := cells(row); err != nil {
				return err
			}
			x.Row(row...)
			return x.Err()
		})
		return placed(err, src, from)
	}}, nil
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
