package exec

import (
	"context"
	"math"
	"strings"

	"gdb/internal/trace"
	"gdb/shell/words"
)

// Operator is one step of a statement.
type Operator struct {
	// Name tells it from the other operators of the plan, and Detail says what it does.
	Name, Detail string
	// Rows and Blocks are what it is estimated to hand on and to read; negative if there is nothing
	// to go by.
	Rows, Blocks float64
	Inputs       []*Operator
	// In is the number of rows that it took, if those are not all that its inputs hand on.
	In any

	x    *Execution
	span trace.Span
}

// Operator makes a step that takes what inputs hand on. Reads of it are counted by the first word
// of its name: all hops are one kind of operator.
func (x *Execution) Operator(name, detail string, rows, blocks float64,
	inputs ...*Operator) *Operator {
	kind, _, _ := strings.Cut(name, " ")
	return &Operator{Name: name, Detail: detail, Rows: rows, Blocks: blocks, Inputs: inputs, x: x,
		span: trace.Span{Name: kind}}
}

// Explain is what EXPLAIN shows of the operator: what it does, and its estimates.
func (op *Operator) Explain() []any {
	return []any{op.Detail, estimate(op.Rows), estimate(op.Blocks)}
}

// estimate is a whole number, or nothing.
func estimate(v float64) any {
	if v < 0 || math.IsNaN(v) {
		return nil
	}
	return words.Count(math.Ceil(v - 1e-9))
}

// Run does work as this operator: what it reads with its context, and the time until it returns,
// are the operator's.
func (op *Operator) Run(ctx context.Context, work func(ctx context.Context) error) error {
	before := op.x.watch.Switch(&op.span)
	defer op.x.watch.Switch(before)
	return work(trace.With(ctx, &op.span))
}

// Begin lets the operator run until another one does; it reads with the context.
func (op *Operator) Begin(ctx context.Context) context.Context {
	op.x.watch.Switch(&op.span)
	return trace.With(ctx, &op.span)
}

// Emit counts rows that the operator hands on, and the bytes of a file that it took for them. The
// rows of the last operator are those of the result.
func (op *Operator) Emit(rows, usedBytes int) {
	if op == op.x.plan.Root {
		rows = 0
	}
	op.span.Emit(rows, uint64(usedBytes))
}

// Counts is what the operator did so far.
func (op *Operator) Counts() trace.Counts { return op.span.Counts() }

// asRoot does work as the last operator of the plan, from within another.
func (op *Operator) asRoot(work func() (bool, error)) (bool, error) {
	before := op.x.watch.Switch(&op.x.plan.Root.span)
	defer op.x.watch.Switch(before)
	return work()
}

// walk visits the tree from the last operator to the first, with the branches drawn before each.
func (op *Operator) walk(branch, below string, visit func(op *Operator, branch string)) {
	visit(op, branch)
	for i, in := range op.Inputs {
		if i == len(op.Inputs)-1 {
			in.walk(below+"└─ ", below+"   ", visit)
		} else {
			in.walk(below+"├─ ", below+"│  ", visit)
		}
	}
}
