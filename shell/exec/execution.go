// Package exec runs statements. A Planner turns a parsed statement into a Plan: a tree of
// operators. An Operator explains what it will do, counts its own reads and its own time while it
// runs, and reports afterwards what it did. An Execution is one running statement.
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
	// Root is the last operator, which hands out the rows of the result.
	Root *Operator
	Run  func(ctx context.Context) error
}

// Planner builds the plan of a statement from what is in memory, and reports all mistakes that can
// be found without reading. It does not change the parsed statement.
type Planner func(x *Execution) (*Plan, error)

// Session returns a planner for statements that read no block. Their plan has one operator, which
// calls run.
func Session(run func(ctx context.Context, x *Execution) error) Planner {
	return func(x *Execution) (*Plan, error) {
		return &Plan{Root: x.Operator("session", "what is known in memory", -1, 0),
			Run: func(ctx context.Context) error { return run(ctx, x) }}, nil
	}
}

// Execution is one running statement: its arguments, the store, its plan, and the place where its
// rows go.
type Execution struct {
	*lang.Parsed
	Graph *graph.Graph
	// Progress is called with the bytes that are done and the bytes in all; it may be nil.
	Progress func(done, total int64)
	// Params are the values of $NAME in a statement of openCypher.
	Params map[string]any
	// Rows is how many rows the result has so far.
	Rows uint64
	// PlanRead says that blocks were read to plan the statement.
	PlanRead bool

	planner     Planner
	plan        *Plan
	render      result.Renderer
	defaultSeed uint64
	alive       func() error // returns the error of a cancelled statement
	watch       trace.Watch

	numbered bool // nodes are named by their numbers, such as #17
	warnings []string

	known map[layout.NodeID]string // the external ids that the user wrote
	held  int64                    // bytes that are reserved until the statement ends

	cols  []string
	begun bool
	err   error // the first failure of the output
}

// New prepares a parsed statement. Its rows go to render. seed is used if neither the statement nor
// SET names one.
func New(ctx context.Context, g *graph.Graph, p *lang.Parsed, planner Planner, seed uint64,
	render result.Renderer) *Execution {
	return &Execution{Parsed: p, Graph: g, planner: planner, render: render, alive: ctx.Err,
		defaultSeed: seed}
}

// Run runs the statement, or explains it.
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
		x.explain()
	case x.Mode == lang.ModeProfile:
		if err = x.elsewhere(ctx, result.Discard{}); err == nil {
			x.profile()
		}
	case x.Has("INTO"):
		if err = x.elsewhere(ctx, nil); err == nil {
			x.Header("file", "rows")
			x.Row(x.Args["INTO"].Text, words.Count(x.plan.Root.Counts().Out))
		}
	default:
		return x.result(ctx)
	}
	if err != nil {
		return err
	}
	return x.Footer()
}

// Ask runs another statement for this one. Its rows go to render, and name nodes by their numbers,
// such as #17. What it reads counts for the last operator of this statement.
func (x *Execution) Ask(ctx context.Context, p *lang.Parsed, planner Planner,
	render result.Renderer) error {
	asked := New(ctx, x.Graph, p, planner, x.Seed(), render)
	asked.numbered = true
	err := asked.Run(ctx)
	for _, text := range asked.warnings {
		x.Warn("%s", text)
	}
	if asked.plan != nil {
		x.plan.Root.span.AddReads(asked.Counts())
	}
	return err
}

// elsewhere runs the plan. Its rows go to the file of INTO, or to other if the statement has no
// INTO.
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

// result runs the plan. What no other operator counts is counted for the last one.
func (x *Execution) result(ctx context.Context) error {
	root := x.plan.Root
	x.watch.Switch(&root.span)
	err := x.plan.Run(trace.With(ctx, &root.span))
	if err == nil || x.err != nil {
		err = x.Footer()
	}
	root.span.Emit(int(x.Rows), 0)
	x.watch.Switch(nil)
	return err
}

// Counts returns the sum of what all operators did.
func (x *Execution) Counts() (sum trace.Counts) {
	x.plan.Root.walk("", "", func(op *Operator, _ string) { sum = sum.Add(op.Counts()) })
	return sum
}

// Hold reserves n bytes until the statement ends.
func (x *Execution) Hold(what string, n int64) error {
	if err := x.Graph.Budget.Reserve(what, n); err != nil {
		return err
	}
	x.held += n
	return nil
}

// Seed returns the seed of the statement; without one, the seed of SET, and without that, the seed
// of the session.
func (x *Execution) Seed() uint64 {
	if v, ok := x.Args["SEED"]; ok {
		return uint64(v.N)
	}
	if seed, ok := x.Graph.Seed(); ok {
		return seed
	}
	return x.defaultSeed
}

// Header names the columns. They are written with the first row, or at the end, so that a statement
// that fails before its first row has written nothing.
func (x *Execution) Header(cols ...string) { x.cols = cols }

// Row adds a row, with one value for each column. Once the statement is cancelled or its output has
// failed, rows are dropped: Err returns the failure, with which the statement ends.
func (x *Execution) Row(vals ...any) {
	if x.begin(); x.err == nil {
		x.Rows++
		x.err = x.render.Row(vals)
	}
}

// TakesValues reports whether rows may hold any value of openCypher.
func (x *Execution) TakesValues() bool {
	_, ok := x.render.(result.Valuer)
	return ok
}

// Err returns why rows are dropped, or nil. Work that goes on for long looks at it now and then.
func (x *Execution) Err() error { return x.err }

func (x *Execution) begin() {
	if x.err == nil {
		x.err = x.alive()
	}
	if x.err == nil && !x.begun {
		x.begun = true
		x.err = x.render.Header(x.cols)
	}
}

// Footer ends the result.
func (x *Execution) Footer() error {
	if x.begin(); x.err == nil {
		x.err = x.render.Footer()
	}
	return x.err
}

// Note adds a line below a result that people see; other forms of output leave it out.
func (x *Execution) Note(format string, args ...any) {
	if r, ok := x.render.(result.Noter); ok {
		r.Note(fmt.Sprintf(format, args...))
	}
}

// Warn says what the rows do not show and the user must know. It is written with every form of
// output.
func (x *Execution) Warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if x.Mode != lang.ModeExplain && !slices.Contains(x.warnings, text) {
		x.warnings = append(x.warnings, text)
	}
}

// Warnings returns all texts of Warn.
func (x *Execution) Warnings() []string { return x.warnings }

// WarnApart warns if the lists of the store lack the edges of splits other than train.
func (x *Execution) WarnApart() {
	apart, of := x.Graph.Apart()
	if apart > 0 {
		x.Warn("train edges; %s of %s are apart", humanize.Comma(int64(apart)), of)
	}
}

// Failed adds to an error which statement failed. A syntax error already points at the place.
func Failed(p *lang.Parsed, err error) error {
	var syntax *lang.SyntaxError
	if errors.As(err, &syntax) {
		return err
	}
	return fmt.Errorf("shell: %s: %w", p.Statement.Head, err)
}
