package query

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/inspect"
	"gdb/shell/exec"
	"gdb/shell/lang"
	"gdb/shell/words"
)

func planBlock(x *exec.Execution) (*exec.Plan, error) {
	block := x.Operator("block", fmt.Sprintf("%s at %d", x.Operand.Text, x.Args["AT"].N), -1, 1)
	return &exec.Plan{Root: block, Run: func(ctx context.Context) error {
		return runBlock(ctx, x)
	}}, nil
}

func runBlock(ctx context.Context, x *exec.Execution) error {
	x.Header("block")
	var out bytes.Buffer
	err := inspect.DumpBlock(ctx, x.Graph.Store, x.Graph.Dev, inspect.BlockOf{
		Path: x.Operand.Text, Number: x.Args["AT"].N, Decode: !x.Has("HEX")}, &out)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out.String()) {
		if err := x.Row(strings.TrimRight(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// DamageError is the error of a check that found damage. It makes a shell exit as gdb check does.
type DamageError struct{ Findings int }

// Error says how many findings there were. The findings themselves were shown as rows.
func (e *DamageError) Error() string {
	return fmt.Sprintf("the store is damaged: %d findings", e.Findings)
}

// Unwrap returns kv.ErrDamaged.
func (e *DamageError) Unwrap() error { return kv.ErrDamaged }

// checkBytes is how many bytes CHECK reads at once.
const checkBytes = 8 << 20

func planCheck(x *exec.Execution) (*exec.Plan, error) {
	file, total := x.Args["OF"].Text, int64(0)
	for _, f := range x.Graph.Meta().Files {
		if file == "" || f.Path == file {
			total += f.Size
		}
	}
	detail := "all files"
	if file != "" {
		detail = file
	}
	verify := x.Operator("verify", fmt.Sprintf("%s, %s", detail, mem.FormatSize(total)), -1,
		math.Ceil(float64(total)/checkBytes))
	return &exec.Plan{Root: verify, Run: func(ctx context.Context) error {
		return runCheck(ctx, x)
	}}, nil
}

func runCheck(ctx context.Context, x *exec.Execution) error {
	report, err := inspect.Check(ctx, x.Graph.Dev, x.Graph.Store, inspect.CheckOptions{
		Full: x.Has("FULL"), File: x.Args["OF"].Text, Progress: x.Progress})
	if err != nil {
		return err
	}
	x.Header("file", "block", "offset", "what")
	if len(report.Findings) == 0 {
		return x.Row("all", nil, nil, fmt.Sprintf("sound: %d files, %d bytes", report.Files,
			report.Bytes))
	}
	for _, f := range report.Findings {
		if err := x.Row(f.Path, f.Block, f.Offset, f.What); err != nil {
			return err
		}
	}
	if err := x.Footer(); err != nil {
		return err
	}
	return &DamageError{len(report.Findings)}
}

func runDescribe(_ context.Context, x *exec.Execution) error {
	m := x.Graph.Meta()
	switch {
	case x.Has("FILES"):
		return describeFiles(x, m)
	case x.Has("TYPES"):
		return describeTypes(x, m)
	}
	x.Header("kind", "name", "what")
	rows := [][3]any{{"graph", "nodes", words.Count(m.Nodes)},
		{"graph", "edges", words.Count(m.Edges)},
		{"ids", string(m.IDs.Kind), ""}}
	for _, d := range m.Directions {
		rows = append(rows, [3]any{"lists", d, fmt.Sprintf("blocks of %d bytes", m.BlockBytes)})
	}
	for _, f := range m.Features {
		what := fmt.Sprintf("%d x %s", f.Dim, f.DType)
		if c := m.FeatureColumns(f); c.Named() {
			what += ": " + strings.Join(c.Sources(), ", ")
		}
		rows = append(rows, [3]any{"features", f.Name, what})
	}
	if l := m.Labels; l != nil {
		what := fmt.Sprintf("%d classes, %d nodes labeled", len(l.Classes), l.Labeled)
		if l.Unknown > 0 {
			what += fmt.Sprintf(", %d labels unknown", l.Unknown)
		}
		rows = append(rows, [3]any{"labels", l.Kind, what})
	}
	for _, s := range m.Splits {
		rows = append(rows, [3]any{"split", s.Name, fmt.Sprintf("%d nodes", s.Count)})
	}
	for _, s := range m.EdgeSplits {
		rows = append(rows, [3]any{"edge split", s.Name, fmt.Sprintf("%d edges", s.Count)})
	}
	x.WarnApart()
	for _, r := range rows {
		if err := x.Row(r[0], r[1], r[2]); err != nil {
			return err
		}
	}
	return nil
}

func describeFiles(x *exec.Execution, m *kv.Meta) error {
	x.Header("file", "kind", "bytes", "crc32c")
	for _, f := range m.Files {
		if err := x.Row(f.Path, f.Kind, words.Size(f.Size), fmt.Sprintf("%08x",
			f.Checksum)); err != nil {
			return err
		}
	}
	return nil
}

func describeTypes(x *exec.Execution, m *kv.Meta) error {
	x.Header("number", "type", "edges")
	for i, name := range m.EdgeTypes {
		var n any
		if i < len(m.Stats.TypeCounts) {
			n = words.Count(m.Stats.TypeCounts[i])
		}
		if err := x.Row(i, name, n); err != nil {
			return err
		}
	}
	return nil
}

func runHelp(_ context.Context, x *exec.Execution) error {
	x.Header("statement", "what it shows", "example")
	for _, st := range lang.Statements {
		if err := x.Row(st.Head, st.Help, st.Example); err != nil {
			return err
		}
	}
	return nil
}
