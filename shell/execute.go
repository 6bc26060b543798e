package shell

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/trace"
	"gdb/layout"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/result"
)

// execution is one running statement: its arguments, the store, its operators, and where rows go.
type execution struct {
	*lang.Parsed
	engine      *graph.Graph
	render      result.Renderer
	defaultSeed uint64
	alive       func() error // the error of a cancelled statement
	// progress says how much of how many bytes is done.
	progress func(done, total int64)

	root  *operator // the last operator: it hands out the rows
	ops   map[string]*operator
	watch trace.Watch

	known map[layout.NodeID]string // the external ids that the user wrote
	held  int64                    // bytes of the nodes that were resolved

	cols  []string
	begun bool
	rows  uint64
}

// newExecution prepares a parsed statement; its rows go to render.
func newExecution(ctx context.Context, e *graph.Graph, p *lang.Parsed, seed uint64,
	render result.Renderer) *execution {
	return &execution{Parsed: p, engine: e, render: render, alive: ctx.Err, defaultSeed: seed}
}

// run executes the statement, or explains it.
func (x *execution) run(ctx context.Context) error {
	defer func() { x.engine.Budget.Release(x.held) }()
	if err := x.planned(); err != nil {
		return err
	}
	if x.Has("INTO") {
		if err := result.CheckFile(x.Args["INTO"].Text); err != nil {
			return err
		}
	}
	switch x.Mode {
	case lang.ModeExplain:
		if err := x.explain(); err != nil {
			return err
		}
		return x.footer()
	case lang.ModeProfile:
		if err := x.elsewhere(ctx, discard{}); err != nil {
			return err
		}
		if err := x.profile(); err != nil {
			return err
		}
		return x.footer()
	}
	if !x.Has("INTO") {
		return x.result(ctx)
	}
	if err := x.elsewhere(ctx, nil); err != nil {
		return err
	}
	x.header("file", "rows")
	if err := x.row(x.Args["INTO"].Text, result.Count(x.root.span.Counts().Out)); err != nil {
		return err
	}
	return x.footer()
}

// elsewhere runs the operators with rows that go to the file of INTO, or without it to other.
func (x *execution) elsewhere(ctx context.Context, other result.Renderer) (err error) {
	shown := x.render
	if x.Has("INTO") {
		file, err := result.NewFile(x.engine.Store.FS(), x.Args["INTO"].Text)
		if err != nil {
			return err
		}
		x.render = file
		if err := file.Finish(ctx, x.result(ctx)); err != nil {
			return err
		}
	} else {
		x.render = other
		if err := x.result(ctx); err != nil {
			return err
		}
	}
	x.render, x.begun, x.rows = shown, false, 0
	return nil
}

// result runs the operators. What none of them counts is the last one's.
func (x *execution) result(ctx context.Context) error {
	x.watch.Switch(&x.root.span)
	err := definitions[x.Statement.Head].run(trace.With(ctx, &x.root.span), x)
	if err == nil {
		err = x.footer()
	}
	x.root.span.Emit(int(x.rows), 0)
	x.watch.Switch(nil)
	return err
}

// header names the columns. They are written with the first row, or at the end: a statement that
// fails before has written nothing.
func (x *execution) header(cols ...string) { x.cols = cols }

// row adds a row; there is one value for each column. It fails once the statement is cancelled.
func (x *execution) row(vals ...any) error {
	if err := x.begin(); err != nil {
		return err
	}
	x.rows++
	return x.render.Row(vals)
}

func (x *execution) begin() error {
	if err := x.alive(); err != nil || x.begun {
		return err
	}
	x.begun = true
	return x.render.Header(x.cols)
}

// footer ends the result.
func (x *execution) footer() error {
	if err := x.begin(); err != nil {
		return err
	}
	return x.render.Footer()
}

// discard is the renderer of rows that nobody asked to see.
type discard struct{}

// Header does nothing.
func (discard) Header([]string) error { return nil }

// Row does nothing.
func (discard) Row([]any) error { return nil }

// Footer does nothing.
func (discard) Footer() error { return nil }

// statementError says which statement failed; syntax errors already point at the place.
func statementError(p *lang.Parsed, err error) error {
	var syntax *lang.SyntaxError
	var cancelled *cancelledError
	if errors.As(err, &syntax) || errors.As(err, &cancelled) {
		return err
	}
	return fmt.Errorf("shell: %s: %w", p.Statement.Head, err)
}
