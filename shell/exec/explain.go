package exec

import (
	"fmt"

	"gdb/internal/mem"
	"gdb/internal/trace"
	"gdb/shell/words"
)

// explain shows the plan and its estimates.
func (x *Execution) explain() {
	x.Header("operator", "detail", "est. rows", "est. blocks")
	x.Note("estimates from degree statistics; nothing was read")
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
