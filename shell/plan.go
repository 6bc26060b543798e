package shell

import (
	"context"
	"fmt"
	"math"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/trace"
	"gdb/layout"
	"gdb/shell/lang"
	"gdb/shell/result"
)

// operator is one step of a statement. EXPLAIN shows its estimates, PROFILE its span.
type operator struct {
	name   string // unique in the plan; its first word is what STATS IO BY op groups by
	detail string
	rows   float64 // estimated; negative if there is nothing to go by
	blocks float64
	inputs []*operator
	in     any // rows taken, if not all that the inputs hand on
	span   trace.Span
}

func newOperator(name, detail string, rows, blocks float64, inputs ...*operator) *operator {
	return &operator{name: name, detail: detail, rows: rows, blocks: blocks, inputs: inputs,
		span: trace.Span{Name: name}}
}

// planned builds the operators of the statement; it reads nothing but the metadata in memory.
func (x *execution) planned() (err error) {
	plan := definitions[x.Statement.Head].plan
	if plan == nil {
		x.root = newOperator("session", "what is known in memory", -1, 0)
	} else if x.root, err = plan(x); err != nil {
		return err
	}
	x.ops = map[string]*operator{}
	x.root.walk("", "", func(op *operator, _ string) { x.ops[op.name] = op })
	return nil
}

// walk visits the tree from the last operator to the first, with the branches drawn before each.
func (op *operator) walk(branch, below string, visit func(op *operator, branch string)) {
	visit(op, branch)
	for i, in := range op.inputs {
		if i == len(op.inputs)-1 {
			in.walk(below+"└─ ", below+"   ", visit)
		} else {
			in.walk(below+"├─ ", below+"│  ", visit)
		}
	}
}

// enter lets an operator run: reads with the context, and time until leave, are its own.
func (x *execution) enter(ctx context.Context, name string) (_ context.Context, leave func()) {
	op := x.ops[name]
	if op == nil {
		panic("BUG: the plan of " + x.Statement.Head + " has no operator " + name)
	}
	before := x.watch.Switch(&op.span)
	return trace.With(ctx, &op.span), func() { x.watch.Switch(before) }
}

// emit counts rows that an operator hands on, and the bytes of a file that it took for them. The
// rows of the last operator are those of the result.
func (x *execution) emit(name string, rows, usedBytes int) {
	op := x.ops[name]
	if op == x.root {
		rows = 0
	}
	op.span.Emit(rows, uint64(usedBytes))
}

// explain shows the plan and its estimates.
func (x *execution) explain() error {
	x.header("operator", "detail", "est. rows", "est. blocks")
	x.note("estimates from degree statistics; nothing was read")
	return x.eachOperator(func(op *operator, branch string) error {
		return x.row(branch+op.name, op.detail, estimate(op.rows), estimate(op.blocks))
	})
}

func (x *execution) eachOperator(fn func(op *operator, branch string) error) (err error) {
	x.root.walk("", "", func(op *operator, branch string) {
		if err == nil {
			err = fn(op, branch)
		}
	})
	return err
}

// estimate is a whole number, or nothing.
func estimate(v float64) any {
	if v < 0 || math.IsNaN(v) {
		return nil
	}
	return result.Count(math.Ceil(v - 1e-9))
}

// counts sums what all operators did.
func (x *execution) counts() (sum trace.Counts) {
	x.root.walk("", "", func(op *operator, _ string) { sum = sum.Add(op.span.Counts()) })
	return sum
}

// profile shows what each operator did.
func (x *execution) profile() error {
	x.header("operator", "detail", "in", "out", "ms", "blocks", "cached", "read", "bytes read",
		"bytes used", "amplification")
	sum := x.counts()
	err := x.eachOperator(func(op *operator, branch string) error {
		c := op.span.Counts()
		in := op.in
		if in == nil {
			in = handedOn(op.inputs)
		}
		return x.profileRow(branch+op.name, op.detail, in, result.Count(c.Out), c)
	})
	if err != nil {
		return err
	}
	if sum.Opened > 0 {
		c := trace.Counts{Read: sum.Opened, Bytes: sum.OpenedBytes, Time: sum.OpenedTime}
		if err := x.profileRow("open files", "headers and indexes", nil, nil, c); err != nil {
			return err
		}
	}
	sum.Read += sum.Opened
	sum.Bytes += sum.OpenedBytes
	sum.Time += sum.OpenedTime
	x.hint()
	return x.profileRow("total", "", nil, result.Count(x.root.span.Counts().Out), sum)
}

// hintFrom is the amplification of feature reads from which a hint says what to do.
const hintFrom = 2

// hint says below a profile what its feature reads mean.
func (x *execution) hint() {
	op := x.ops["features"]
	if op == nil {
		return
	}
	c := op.span.Counts()
	if c.Used == 0 || c.Bytes == 0 {
		return
	}
	times := float64(c.Bytes) / float64(c.Used)
	x.note("used %s of %s feature bytes read: amplification %.1fx", mem.FormatSize(int64(c.Used)),
		mem.FormatSize(int64(c.Bytes)), times)
	if times >= hintFrom {
		x.note("hint: a row is read with the rest of its sectors; SIMULATE CACHE shows how many " +
			"rows a feature cache would not read again")
	}
}

// handedOn sums the rows of operators; of none it is nil.
func handedOn(inputs []*operator) any {
	if len(inputs) == 0 {
		return nil
	}
	sum := result.Count(0)
	for _, op := range inputs {
		sum += result.Count(op.span.Counts().Out)
	}
	return sum
}

func (x *execution) profileRow(name, detail string, in, out any, c trace.Counts) error {
	var used, times any
	if c.Used > 0 {
		used = result.Size(c.Used)
	}
	if c.Used > 0 && c.Bytes > 0 {
		times = fmt.Sprintf("%.1fx", float64(c.Bytes)/float64(c.Used))
	}
	return x.row(name, detail, in, out, float64(c.Time.Microseconds())/1000,
		result.Count(c.Cached+c.Read), result.Count(c.Cached), result.Count(c.Read),
		result.Size(c.Bytes), used, times)
}

// opNodes is the operator that finds the nodes of a statement.
func (x *execution) opNodes(name string, s lang.NodeSet) (*operator, error) {
	switch {
	case s.Random > 0:
		n := min(float64(s.Random), float64(x.engine.Meta().Nodes))
		return newOperator(name, fmt.Sprintf("%d random nodes", s.Random), n, 0), nil
	case s.Split != "":
		for _, sp := range x.engine.Meta().Splits {
			if sp.Name == s.Split {
				return newOperator(name, "split "+s.Split, float64(sp.Count), 0), nil
			}
		}
		return nil, x.engine.NoSplit(s.Split)
	}
	lookups := 0
	var refs []string
	for i, ref := range s.IDs.All() {
		if !ref.Internal {
			lookups++
		}
		if i < refsShown {
			refs = append(refs, ref.Text())
		}
	}
	if s.IDs.Count > refsShown {
		refs = append(refs, fmt.Sprintf("… (%d)", s.IDs.Count))
	}
	if x.engine.DenseIDs() {
		lookups = 0
	}
	return newOperator(name, strings.Join(refs, ","), float64(s.IDs.Count), float64(lookups)), nil
}

// refsShown is how many of the nodes that were named stand in the plan.
const refsShown = 4

// opNames is the operator that turns the nodes of in into external ids.
func (x *execution) opNames(in *operator) *operator {
	if x.engine.DenseIDs() {
		return newOperator("names", "ids are node numbers", in.rows, 0, in)
	}
	return newOperator("names", "id dictionary", in.rows,
		estimator{x.engine.Meta()}.nameBlocks(in.rows), in)
}

// opHops are the operators that follow lists for some hops. Without distinct they hand on every
// entry, else each node once.
func (x *execution) opHops(name func(hop int) string, hops int, dirs []layout.Direction, via int,
	distinctNodes bool, in *operator) *operator {
	e := estimator{x.engine.Meta()}
	for hop := 1; hop <= hops; hop++ {
		out, blocks := 0.0, 0.0
		for _, dir := range dirs {
			mean, met := e.degree(dir)
			if hop > 1 {
				mean = met
			}
			entries := in.rows * mean
			blocks += e.listBlocks(dir, in.rows, entries)
			out += entries * e.of(via)
		}
		if distinctNodes {
			out = distinct(out, float64(x.engine.Meta().Nodes))
		}
		in = newOperator(name(hop), x.listsDetail(dirs, via), out, blocks, in)
	}
	return in
}

// listsDetail says which lists are followed.
func (x *execution) listsDetail(dirs []layout.Direction, via int) string {
	var names []string
	for _, d := range dirs {
		names = append(names, d.String())
	}
	if via >= 0 {
		return strings.Join(names, " and ") + ", " + x.engine.Meta().EdgeTypes[via]
	}
	if len(x.engine.Meta().EdgeTypes) == 0 {
		return strings.Join(names, " and ")
	}
	return strings.Join(names, " and ") + ", all types"
}
