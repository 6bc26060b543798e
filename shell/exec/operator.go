package exec

import (
	"context"
	"fmt"
	"math"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/trace"
	"gdb/shell/words"
)

// Operator is one step of a statement.
type Operator struct {
	// Name tells the operator from the other operators of the plan, and Detail says what it does.
	Name, Detail string
	// Rows and Blocks are the estimated number of rows that it hands on and of blocks that it
	// reads; negative if there is nothing to estimate from.
	Rows, Blocks float64
	Inputs       []*Operator
	// In is the number of rows that the operator took, if it did not take all that its inputs hand
	// on.
	In any

	x    *Execution
	span trace.Span
}

// Operator makes a step that takes what inputs hand on. The reads of an operator are counted under
// the first word of its name, so that all hops count as one kind of operator.
func (x *Execution) Operator(name, detail string, rows, blocks float64,
	inputs ...*Operator) *Operator {
	kind, _, _ := strings.Cut(name, " ")
	return &Operator{Name: name, Detail: detail, Rows: rows, Blocks: blocks, Inputs: inputs, x: x,
		span: trace.Span{Name: kind}}
}

// estimate returns an estimate as a whole number for a cell, or nothing if there is none.
func estimate(v float64) any {
	if v < 0 || math.IsNaN(v) {
		return nil
	}
	return words.Count(math.Ceil(v - 1e-9))
}

// Run calls work as this operator: the operator counts the reads that use the context of work, and
// the time until work returns.
func (op *Operator) Run(ctx context.Context, work func(ctx context.Context) error) error {
	before := op.x.watch.Switch(&op.span)
	defer op.x.watch.Switch(before)
	return work(trace.With(ctx, &op.span))
}

// Begin lets this operator run until another one begins. Reads that use the returned context count
// for it.
func (op *Operator) Begin(ctx context.Context) context.Context {
	op.x.watch.Switch(&op.span)
	return trace.With(ctx, &op.span)
}

// Emit counts rows that the operator hands on, and the bytes of a file that it used for them. The
// rows of the last operator are the rows of the result.
func (op *Operator) Emit(rows, usedBytes int) {
	if op == op.x.plan.Root {
		rows = 0
	}
	op.span.Emit(rows, uint64(usedBytes))
}

// Counts returns what the operator did so far.
func (op *Operator) Counts() trace.Counts { return op.span.Counts() }

// asRoot calls work as the last operator of the plan, while another one is running.
func (op *Operator) asRoot(work func() (bool, error)) (bool, error) {
	before := op.x.watch.Switch(&op.x.plan.Root.span)
	defer op.x.watch.Switch(before)
	return work()
}

// walk calls visit for each operator of the tree, from the last to the first, with the branches to
// draw before it.
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

// explain shows the plan and its estimates.
func (x *Execution) explain() {
	x.Header("operator", "detail", "est. rows", "est. blocks")
	if x.PlanRead {
		x.Note("estimates from the lists of edges, which were read")
	} else {
		x.Note("estimates from degree statistics; nothing was read")
	}
	x.plan.Root.walk("", "", func(op *Operator, branch string) {
		x.Row(branch+op.Name, op.Detail, estimate(op.Rows), estimate(op.Blocks))
	})
}

// profile shows what each operator did.
func (x *Execution) profile() {
	x.Header("operator", "detail", "in", "out", "ms", "blocks", "cached", "read", "bytes read",
		"bytes used", "amplification")
	sum := x.Counts()
	var features *Operator
	x.plan.Root.walk("", "", func(op *Operator, branch string) {
		c := op.Counts()
		in := op.In
		if in == nil {
			in = handedOn(op.Inputs)
		}
		if op.span.Name == featuresName {
			features = op
		}
		x.profileRow(branch+op.Name, op.Detail, in, words.Count(c.Out), c)
	})
	if sum.Opened > 0 {
		c := trace.Counts{Read: sum.Opened, Bytes: sum.OpenedBytes, Time: sum.OpenedTime}
		x.profileRow("open files", "headers and indexes", nil, nil, c)
	}
	sum.Read += sum.Opened
	sum.Bytes += sum.OpenedBytes
	sum.Time += sum.OpenedTime
	if features != nil {
		x.hint(features.Counts())
	}
	x.profileRow("total", "", nil, words.Count(x.plan.Root.Counts().Out), sum)
}

// hintFrom is the amplification of feature reads from which on a hint says what to do.
const hintFrom = 2

// hint writes a line below a profile that says what its feature reads mean.
func (x *Execution) hint(features trace.Counts) {
	if features.Used == 0 || features.Bytes == 0 {
		return
	}
	times := float64(features.Bytes) / float64(features.Used)
	x.Note("used %s of %s feature bytes read: amplification %.1fx",
		mem.FormatSize(int64(features.Used)), mem.FormatSize(int64(features.Bytes)), times)
	if times >= hintFrom {
		x.Note("hint: a row is read with the rest of its sectors; SIMULATE CACHE shows how many " +
			"rows a feature cache would not read again")
	}
}

// handedOn returns the sum of the rows of some operators; nil if there are none.
func handedOn(inputs []*Operator) any {
	if len(inputs) == 0 {
		return nil
	}
	sum := words.Count(0)
	for _, op := range inputs {
		sum += words.Count(op.Counts().Out)
	}
	return sum
}

func (x *Execution) profileRow(name, detail string, in, out any, c trace.Counts) {
	var used, times any
	if c.Used > 0 {
		used = words.Size(c.Used)
	}
	if c.Used > 0 && c.Bytes > 0 {
		times = fmt.Sprintf("%.1fx", float64(c.Bytes)/float64(c.Used))
	}
	x.Row(name, detail, in, out, float64(c.Time.Microseconds())/1000,
		words.Count(c.Cached+c.Read), words.Count(c.Cached), words.Count(c.Read),
		words.Size(c.Bytes), used, times)
}
