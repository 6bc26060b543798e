// Package exec runs statements. A statement is planned as a tree of operators, which are values:
// each explains what it will do, runs as itself, so that what it reads and the time it takes are
// its own, and tells afterwards what it did.
package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/trace"
	"gdb/layout"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/result"
	"gdb/shell/words"

	"github.com/dustin/go-humanize"
)

// Plan is a statement that is ready to run.
type Plan struct {
	// Root is the last operator: the one that hands out the rows of the result.
	Root *Operator
	Run  func(ctx context.Context) error
}

// Planner builds the plan of a statement from what is in memory, and reports what is known to be
// wrong without reading. It does not change the parsed statement.
type Planner func(x *Execution) (*Plan, error)

// Session is the planner of statements that read no block: one operator, which runs run.
func Session(run func(ctx context.Context, x *Execution) error) Planner {
	return func(x *Execution) (*Plan, error) {
		return &Plan{Root: x.Operator("session", "what is known in memory", -1, 0),
			Run: func(ctx context.Context) error { return run(ctx, x) }}, nil
	}
}

// Execution is one running statement: its arguments, the store, its plan, and where rows go.
type Execution struct {
	*lang.Parsed
	Graph *graph.Graph
	// Progress is told how much of how many bytes is done; nil for nobody.
	Progress func(done, total int64)
	// Rows is how many rows the result has so far.
	Rows uint64

	planner     Planner
	plan        *Plan
	render      result.Renderer
	defaultSeed uint64
	alive       func() error // the error of a cancelled statement
	watch       trace.Watch

	warnings []string

	known map[layout.NodeID]string // the external ids that the user wrote
	held  int64                    // bytes that are counted until the statement ends

	cols  []string
	begun bool
}

// New prepares a parsed statement. Its rows go to render, and seed is that of a statement that
// names none in a session that has set none.
func New(ctx context.Context, g *graph.Graph, p *lang.Parsed, planner Planner, seed uint64,
	render result.Renderer) *Execution {
	return &Execution{Parsed: p, Graph: g, planner: planner, render: render, alive: ctx.Err,
		defaultSeed: seed}
}

// Run executes the statement, or explains it.
func (x *Execution) Run(ctx context.Context) (err error) {
	defer func() { x.Graph.Budget.Release(x.held) }()
	if x.plan, err = x.planner(x); err != nil {
		return err
	}
	if x.Has("INTO") {
		if err := result.CheckFile(x.Args["INTO"].Text); err != nil {
			return err
		}
	}
	switch {
	case x.Mode == lang.ModeExplain:
		err = x.explain()
	case x.Mode == lang.ModeProfile:
		if err = x.elsewhere(ctx, result.Discard{}); err == nil {
			err = x.profile()
		}
	case x.Has("INTO"):
		if err = x.elsewhere(ctx, nil); err == nil {
			x.Header("file", "rows")
			err = x.Row(x.Args["INTO"].Text, words.Count(x.plan.Root.Counts().Out))
		}
	default:
		return x.result(ctx)
	}
	if err != nil {
		return err
	}
	return x.Footer()
}

// elsewhere runs the plan with rows that go to the file of INTO, or without it to other.
func (x *Execution) elsewhere(ctx context.Context, other result.Renderer) error {
	shown := x.render
	if x.Has("INTO") {
		file, err := result.NewFile(x.Graph.Store.FS(), x.Args["INTO"].Text)
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
	x.render, x.begun, x.Rows = shown, false, 0
	return nil
}

// result runs the plan. What no operator counts is the last one's.
func (x *Execution) result(ctx context.Context) error {
	root := x.plan.Root
	x.watch.Switch(&root.span)
	err := x.plan.Run(trace.With(ctx, &root.span))
	if err == nil {
		err = x.Footer()
	}
	root.span.Emit(int(x.Rows), 0)
	x.watch.Switch(nil)
	return err
}

// Counts sums what all operators did.
func (x *Execution) Counts() (sum trace.Counts) {
	x.plan.Root.walk("", "", func(op *Operator, _ string) { sum = sum.Add(op.Counts()) })
	return sum
}

// Hold counts n bytes until the statement ends.
func (x *Execution) Hold(what string, n int64) error {
	if err := x.Graph.Budget.Reserve(what, n); err != nil {
		return err
	}
	x.held += n
	return nil
}

// Seed is that of the statement, of SET, or of the session.
func (x *Execution) Seed() uint64 {
	if v, ok := x.Args["SEED"]; ok {
		return uint64(v.N)
	}
	if seed, ok := x.Graph.Seed(); ok {
		return seed
	}
	return x.defaultSeed
}

// Header names the columns. They are written with the first row, or at the end: a statement that
// fails before has written nothing.
func (x *Execution) Header(cols ...string) { x.cols = cols }

// Row adds a row; there is one value for each column. It fails once the statement is cancelled.
func (x *Execution) Row(vals ...any) error {
	if err := x.begin(); err != nil {
		return err
	}
	x.Rows++
	return x.render.Row(vals)
}

func (x *Execution) begin() error {
	if err := x.alive(); err != nil || x.begun {
		return err
	}
	x.begun = true
	return x.render.Header(x.cols)
}

// Footer ends the result.
func (x *Execution) Footer() error {
	if err := x.begin(); err != nil {
		return err
	}
	return x.render.Footer()
}

// Note adds a line below the result, where people see it: no other output has it.
func (x *Execution) Note(format string, args ...any) {
	if r, ok := x.render.(result.Noter); ok {
		r.Note(fmt.Sprintf(format, args...))
	}
}

// Warn says what the rows do not show and the user must know, whatever the form of the result.
func (x *Execution) Warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if x.Mode != lang.ModeExplain && !slices.Contains(x.warnings, text) {
		x.warnings = append(x.warnings, text)
	}
}

// Warnings are what Warn said.
func (x *Execution) Warnings() []string { return x.warnings }

// WarnApart says that the lists of the store lack the edges of other splits than train, if they do.
func (x *Execution) WarnApart() {
	apart, of := x.Graph.Apart()
	if apart > 0 {
		x.Warn("train edges; %s of %s are apart", humanize.Comma(int64(apart)), of)
	}
}

// Failed says which statement failed; a syntax error already points at the place.
func Failed(p *lang.Parsed, err error) error {
	var syntax *lang.SyntaxError
	if errors.As(err, &syntax) {
		return err
	}
	return fmt.Errorf("shell: %s: %w", p.Statement.Head, err)
}
