package query

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/inspect"
	"gdb/layout/nodeindex"
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
		x.Row(strings.TrimRight(line, "\n"))
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
		x.Row("all", nil, nil, fmt.Sprintf("sound: %d files, %d bytes", report.Files,
			report.Bytes))
		return nil
	}
	for _, f := range report.Findings {
		x.Row(f.Path, f.Block, f.Offset, f.What)
	}
	if err := x.Footer(); err != nil {
		return err
	}
	return &DamageError{len(report.Findings)}
}

func runDescribe(ctx context.Context, x *exec.Execution) error {
	m := x.Graph.Meta()
	switch {
	case x.Has("FILES"):
		describeFiles(x, m)
		return nil
	case x.Has("TYPES"):
		describeTypes(x, m)
		return nil
	}
	x.Header("kind", "name", "what")
	x.WarnApart()
	x.Row("graph", "nodes", words.Count(m.Nodes))
	x.Row("graph", "edges", words.Count(m.Edges))
	x.Row("ids", string(m.IDs.Kind), "")
	for _, d := range m.Directions {
		x.Row("lists", d, fmt.Sprintf("blocks of %d bytes", m.BlockBytes))
	}
	for _, f := range m.Features {
		what := fmt.Sprintf("%d x %s", f.Dim, f.DType)
		if c := m.FeatureColumns(f); c.Named() {
			what += ": " + strings.Join(c.Sources(), ", ")
		}
		x.Row("features", f.Name, what)
	}
	for _, t := range m.NodeTypes {
		x.Row("node type", t.Name, fmt.Sprintf("%d nodes", t.Nodes))
		if t.KeyName != "" {
			x.Row("column", t.Name+"."+t.KeyName, "ids")
		}
		describeColumns(x, "column", t.Name, t.Columns)
	}
	for i, r := range m.Relations {
		x.Row("relation", m.EdgeTypes[i], fmt.Sprintf("%s -> %s, %d edges",
			m.NodeTypes[r.Src].Name, m.NodeTypes[r.Dst].Name, m.Stats.TypeCounts[i]))
	}
	for _, t := range m.EdgeTables {
		of := "edges"
		if t.Relation < len(m.Relations) {
			of = m.EdgeTypes[t.Relation]
		}
		if t.Reverse != nil {
			x.Row("edge columns", of, "those of "+m.EdgeTypes[t.Reverse.Of])
		}
		describeColumns(x, "edge column", of, columnsOfEdges(m, &t))
	}
	if l := m.Labels; l != nil {
		what := fmt.Sprintf("%d classes, %d nodes labeled", len(l.Classes), l.Labeled)
		if l.Unknown > 0 {
			what += fmt.Sprintf(", %d labels unknown", l.Unknown)
		}
		x.Row("labels", l.Kind, what)
	}
	for _, s := range m.Splits {
		x.Row("split", s.Name, fmt.Sprintf("%d nodes", s.Count))
	}
	for _, s := range m.EdgeSplits {
		x.Row("edge split", s.Name, fmt.Sprintf("%d edges", s.Count))
	}
	indexes, err := x.Graph.Indexes.All(ctx)
	for _, m := range indexes {
		what := fmt.Sprintf("%s, %d values", m.Type, m.Values)
		if why := nodeindex.Stale(m, x.Graph.Store); why != "" {
			what = "not used: " + why
		}
		x.Row("index", m.Name(), what)
	}
	return err
}

// columnsOfEdges describes the columns of a table of edges. Of a store with levels the catalog
// tells of the values of the base alone, which are left out.
func columnsOfEdges(m *kv.Meta, t *kv.EdgeTable) []kv.TableColumn {
	columns := slices.Clone(t.Columns)
	for i := range columns {
		if len(m.Levels) > 0 {
			columns[i].Nulls, columns[i].Least, columns[i].Greatest = 0, "", ""
		}
	}
	return columns
}

// describeColumns shows the columns of a table of nodes or edges.
func describeColumns(x *exec.Execution, kind, of string, columns []kv.TableColumn) {
	for _, c := range columns {
		what := c.Type
		switch {
		case c.Nulls == 1:
			what += ", 1 null"
		case c.Nulls > 1:
			what += fmt.Sprintf(", %d nulls", c.Nulls)
		}
		if c.Least != "" || c.Greatest != "" {
			what += fmt.Sprintf(", from %s to %s", c.Least, c.Greatest)
		}
		x.Row(kind, of+"."+c.Name, what)
	}
}

func describeFiles(x *exec.Execution, m *kv.Meta) {
	x.Header("file", "kind", "bytes", "crc32c")
	for _, f := range m.Files {
		x.Row(f.Path, f.Kind, words.Size(f.Size), fmt.Sprintf("%08x", f.Checksum))
	}
}

func describeTypes(x *exec.Execution, m *kv.Meta) {
	x.Header("number", "type", "edges")
	for i, name := range m.EdgeTypes {
		var n any
		if i < len(m.Stats.TypeCounts) {
			n = words.Count(m.Stats.TypeCounts[i])
		}
		x.Row(i, name, n)
	}
}

func runHelp(_ context.Context, x *exec.Execution) error {
	x.Header("statement", "what it shows", "example")
	for _, st := range lang.Statements {
		x.Row(st.Head, st.Help, st.Example)
	}
	return nil
}
