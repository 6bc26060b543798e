package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"gdb/layout/check"
	"gdb/layout/dump"
	"gdb/layout/rowfile"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/result"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
)

func planFeatures(x *execution) (*operator, error) {
	m := x.engine.Meta()
	if len(m.Features) == 0 {
		return nil, errors.New("this store holds no features")
	}
	f := m.Features[0]
	if lo, hi := x.columns(f); hi > f.Dim {
		return nil, fmt.Errorf("COLUMNS %d:%d: features have columns 0:%d", lo, hi, f.Dim)
	}
	nodes, err := x.opNodes("nodes", x.Operand.Nodes)
	if err != nil {
		return nil, err
	}
	rows := x.opFeatures(nodes)
	if x.Has("STATS") {
		return newOperator("column statistics", "", -1, 0, rows), nil
	}
	return x.opNames(rows), nil
}

// opFeatures is the operator that reads feature rows.
func (x *execution) opFeatures(in *operator) *operator {
	f := x.engine.Meta().Features[0]
	return newOperator("features", fmt.Sprintf("%s, %d x %s", f.Path, f.Dim, f.DType), in.rows,
		estimator{x.engine.Meta()}.rowReads(f, in.rows), in)
}

// columns is the range of COLUMNS, or all.
func (x *execution) columns(f kv.RowsMeta) (lo, hi int) {
	if v, ok := x.Args["COLUMNS"]; ok {
		return v.Lo, v.Hi
	}
	return 0, f.Dim
}

func runFeatures(ctx context.Context, x *execution) error {
	nodes, err := x.resolve(ctx, "nodes", x.Operand.Nodes)
	if err != nil {
		return err
	}
	f := x.engine.Meta().Features[0]
	lo, hi := x.columns(f)
	rows, err := x.engine.Rows(ctx, f)
	if err != nil {
		return err
	}
	if x.Has("STATS") {
		return x.featureStats(ctx, rows, nodes, lo, hi)
	}
	cols := []string{"node"}
	for j := lo; j < hi; j++ {
		cols = append(cols, fmt.Sprintf("f%d", j))
	}
	x.header(cols...)
	return x.featureRows(ctx, rows, nodes, func(part []layout.NodeID, data []float32) error {
		names, err := x.names(ctx, part)
		if err != nil {
			return err
		}
		cells := make([]any, 1+hi-lo)
		for i, name := range names {
			cells[0] = name
			for j, v := range data[i*f.Dim+lo : i*f.Dim+hi] {
				cells[1+j] = v
			}
			if err := x.row(cells...); err != nil {
				return err
			}
		}
		return nil
	})
}

// featureBytes bounds the rows that are in memory at once.
const featureBytes = 1 << 20

// featureRows calls fn with the rows of consecutive parts of nodes.
func (x *execution) featureRows(ctx context.Context, rows *rowfile.Reader, nodes []layout.NodeID,
	fn func(part []layout.NodeID, data []float32) error) error {
	dim := rows.Meta().Dim
	most := max(1, min(graph.NodeBatch, featureBytes/(4*dim)))
	buf := make([]float32, min(most, len(nodes))*dim)
	for len(nodes) > 0 {
		part := nodes[:min(len(nodes), most)]
		nodes = nodes[len(part):]
		data := buf[:len(part)*dim]
		inner, leave := x.enter(ctx, "features")
		err := rows.Gather(inner, part, nil, data)
		leave()
		if err != nil {
			return err
		}
		x.emit("features", len(part), len(part)*rows.Meta().RowBytes)
		if err := fn(part, data); err != nil {
			return err
		}
	}
	return nil
}

// featureStats shows a row for each column: over the given nodes, in one pass.
func (x *execution) featureStats(ctx context.Context, rows *rowfile.Reader, nodes []layout.NodeID,
	lo, hi int) error {
	type column struct{ least, most, mean, squares float64 }
	stats := make([]column, hi-lo)
	for j := range stats {
		stats[j].least, stats[j].most = math.Inf(1), math.Inf(-1)
	}
	n, dim := 0.0, rows.Meta().Dim
	err := x.featureRows(ctx, rows, nodes, func(part []layout.NodeID, data []float32) error {
		for i := range part {
			n++
			for j, v := range data[i*dim+lo : i*dim+hi] {
				// Welford's update: sums of squares would cancel.
				c, f := &stats[j], float64(v)
				c.least, c.most = min(c.least, f), max(c.most, f)
				d := f - c.mean
				c.mean += d / n
				c.squares += d * (f - c.mean)
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	x.header("column", "min", "max", "mean", "std")
	if n == 0 {
		return nil
	}
	for j, c := range stats {
		err := x.row(lo+j, c.least, c.most, c.mean, math.Sqrt(c.squares/n))
		if err != nil {
			return err
		}
	}
	return nil
}

func planBlock(x *execution) (*operator, error) {
	return newOperator("block", fmt.Sprintf("%s at %d", x.Operand.Text, x.Args["AT"].N), -1, 1),
		nil
}

func runBlock(ctx context.Context, x *execution) error {
	x.header("block")
	var out bytes.Buffer
	err := dump.Block(ctx, x.engine.Store, x.engine.Dev, x.Operand.Text, x.Args["AT"].N,
		!x.Has("HEX"), &out)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out.String()) {
		if err := x.row(strings.TrimRight(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// damageError makes a shell that found damage exit as gdb check does.
type damageError struct{ findings int }

// Error counts the findings; they were shown as rows.
func (e *damageError) Error() string {
	return fmt.Sprintf("the store is damaged: %d findings", e.findings)
}

// Unwrap makes it a kv.ErrDamaged.
func (e *damageError) Unwrap() error { return kv.ErrDamaged }

// checkBytes is how much CHECK reads at once.
const checkBytes = 8 << 20

func planCheck(x *execution) (*operator, error) {
	file, total := x.Args["OF"].Text, int64(0)
	for _, f := range x.engine.Meta().Files {
		if file == "" || f.Path == file {
			total += f.Size
		}
	}
	detail := "all files"
	if file != "" {
		detail = file
	}
	return newOperator("verify", fmt.Sprintf("%s, %s", detail, mem.FormatSize(total)), -1,
		math.Ceil(float64(total)/checkBytes)), nil
}

func runCheck(ctx context.Context, x *execution) error {
	report, err := check.Run(ctx, x.engine.Dev, x.engine.Store, check.Options{
		Full: x.Has("FULL"), File: x.Args["OF"].Text, Progress: x.progress})
	if err != nil {
		return err
	}
	x.header("file", "block", "offset", "what")
	if len(report.Findings) == 0 {
		return x.row("all", nil, nil, fmt.Sprintf("sound: %d files, %d bytes", report.Files,
			report.Bytes))
	}
	for _, f := range report.Findings {
		if err := x.row(f.Path, f.Block, f.Offset, f.What); err != nil {
			return err
		}
	}
	if err := x.footer(); err != nil {
		return err
	}
	return &damageError{len(report.Findings)}
}

func runDescribe(_ context.Context, x *execution) error {
	m := x.engine.Meta()
	switch {
	case x.Has("FILES"):
		return x.describeFiles(m)
	case x.Has("TYPES"):
		return x.describeTypes(m)
	}
	x.header("kind", "name", "what")
	rows := [][3]any{{"graph", "nodes", result.Count(m.Nodes)},
		{"graph", "edges", result.Count(m.Edges)},
		{"ids", string(m.IDs.Kind), ""}}
	for _, d := range m.Directions {
		rows = append(rows, [3]any{"lists", d, fmt.Sprintf("blocks of %d bytes", m.BlockBytes)})
	}
	for _, f := range m.Features {
		rows = append(rows, [3]any{"features", f.Name, fmt.Sprintf("%d x %s", f.Dim, f.DType)})
	}
	if l := m.Labels; l != nil {
		rows = append(rows, [3]any{"labels", l.Kind,
			fmt.Sprintf("%d classes, %d nodes labeled", len(l.Classes), l.Labeled)})
	}
	for _, s := range m.Splits {
		rows = append(rows, [3]any{"split", s.Name, fmt.Sprintf("%d nodes", s.Count)})
	}
	for _, r := range rows {
		if err := x.row(r[0], r[1], r[2]); err != nil {
			return err
		}
	}
	return nil
}

func (x *execution) describeFiles(m *kv.Meta) error {
	x.header("file", "kind", "bytes", "crc32c")
	for _, f := range m.Files {
		if err := x.row(f.Path, f.Kind, result.Size(f.Size), fmt.Sprintf("%08x",
			f.Checksum)); err != nil {
			return err
		}
	}
	return nil
}

func (x *execution) describeTypes(m *kv.Meta) error {
	x.header("number", "type", "edges")
	for i, name := range m.EdgeTypes {
		var n any
		if i < len(m.Stats.TypeCounts) {
			n = result.Count(m.Stats.TypeCounts[i])
		}
		if err := x.row(i, name, n); err != nil {
			return err
		}
	}
	return nil
}

func runHelp(_ context.Context, x *execution) error {
	x.header("statement", "what it shows", "example")
	for _, st := range lang.Statements {
		if err := x.row(st.Head, st.Help, st.Example); err != nil {
			return err
		}
	}
	return nil
}
