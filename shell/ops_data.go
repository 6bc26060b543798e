package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"

	"github.com/RoaringBitmap/roaring/v2"
)

func runFeatures(ctx context.Context, x *execution) error {
	m := x.engine.meta()
	if len(m.Features) == 0 {
		return errors.New("this store holds no features")
	}
	nodes, err := x.engine.resolve(ctx, x.operand.nodes)
	if err != nil {
		return err
	}
	f := m.Features[0]
	lo, hi := 0, f.Dim
	if v, ok := x.args["COLUMNS"]; ok {
		lo, hi = v.lo, v.hi
	}
	if hi > f.Dim {
		return fmt.Errorf("COLUMNS %d:%d: features have columns 0:%d", lo, hi, f.Dim)
	}
	rows, err := x.engine.open(ctx, f)
	if err != nil {
		return err
	}
	if x.has("STATS") {
		return x.featureStats(ctx, rows, nodes, lo, hi)
	}
	cols := []string{"node"}
	for j := lo; j < hi; j++ {
		cols = append(cols, fmt.Sprintf("f%d", j))
	}
	if err := x.header(cols...); err != nil {
		return err
	}
	return x.featureRows(ctx, rows, nodes, func(name string, row []float32) error {
		cells := []any{name}
		for _, v := range row[lo:hi] {
			cells = append(cells, v)
		}
		return x.row(cells...)
	})
}

// featureRows reads the rows of nodes in bounded parts.
func (x *execution) featureRows(ctx context.Context, rows *layout.Rows, nodes []layout.NodeID,
	fn func(name string, row []float32) error) error {
	dim := rows.Meta().Dim
	part := max(1, min(nodeBatch, (4<<20)/(4*dim)))
	buf := make([]float32, part*dim)
	for len(nodes) > 0 {
		ids := nodes[:min(len(nodes), part)]
		nodes = nodes[len(ids):]
		if err := rows.Gather(ctx, ids, nil, buf[:len(ids)*dim]); err != nil {
			return err
		}
		names, err := x.engine.names(ctx, ids)
		if err != nil {
			return err
		}
		for i, name := range names {
			if err := fn(name, buf[i*dim:(i+1)*dim]); err != nil {
				return err
			}
		}
	}
	return nil
}

// featureStats shows a row for each column: over the given nodes, in one pass.
func (x *execution) featureStats(ctx context.Context, rows *layout.Rows, nodes []layout.NodeID,
	lo, hi int) error {
	type column struct{ least, most, sum, squares float64 }
	stats := make([]column, hi-lo)
	for j := range stats {
		stats[j].least, stats[j].most = math.Inf(1), math.Inf(-1)
	}
	err := x.featureRows(ctx, rows, nodes, func(_ string, row []float32) error {
		for j, v := range row[lo:hi] {
			c, f := &stats[j], float64(v)
			c.least, c.most = min(c.least, f), max(c.most, f)
			c.sum += f
			c.squares += f * f
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := x.header("column", "min", "max", "mean", "std"); err != nil {
		return err
	}
	n := float64(len(nodes))
	for j, c := range stats {
		mean := c.sum / n
		std := math.Sqrt(max(c.squares/n-mean*mean, 0))
		if err := x.row(lo+j, c.least, c.most, mean, std); err != nil {
			return err
		}
	}
	return nil
}

func runLabels(ctx context.Context, x *execution) error {
	l := x.engine.meta().Labels
	if l == nil {
		return errors.New("this store holds no labels")
	}
	nodes, err := x.engine.resolve(ctx, x.operand.nodes)
	if err != nil {
		return err
	}
	rows, err := x.engine.open(ctx, l.Rows)
	if err != nil {
		return err
	}
	var labeled *roaring.Bitmap
	if l.Kind == "multi" {
		if labeled, err = x.engine.store.Split(ctx, "labeled"); err != nil {
			return err
		}
	}
	counts := map[string]uint64{}
	if !x.has("COUNTS") {
		if err := x.header("node", "label"); err != nil {
			return err
		}
	}
	buf := make([]byte, nodeBatch*l.Rows.RowBytes)
	err = x.engine.inBatches(ctx, nodes, func(part []layout.NodeID, names []string) error {
		if err := rows.GatherRaw(ctx, part, nil, buf[:len(part)*l.Rows.RowBytes]); err != nil {
			return err
		}
		for i, name := range names {
			row := buf[i*l.Rows.RowBytes : (i+1)*l.Rows.RowBytes]
			label := labelText(l, row, labeled == nil || labeled.Contains(uint32(part[i])))
			if x.has("COUNTS") {
				counts[raw(label)]++
				continue
			}
			if err := x.row(name, label); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !x.has("COUNTS") {
		return err
	}
	return x.labelCounts(counts)
}

func (x *execution) labelCounts(counts map[string]uint64) error {
	if err := x.header("label", "nodes"); err != nil {
		return err
	}
	labels := make([]string, 0, len(counts))
	for label := range counts {
		labels = append(labels, label)
	}
	slices.SortFunc(labels, func(a, b string) int {
		if counts[a] != counts[b] {
			return int(int64(counts[b]) - int64(counts[a]))
		}
		return strings.Compare(a, b)
	})
	for _, label := range labels {
		if err := x.row(label, counts[label]); err != nil {
			return err
		}
	}
	return nil
}

// labelText is the user's label of a row: a class, classes joined by ';', a number, or nil.
func labelText(l *kv.LabelsMeta, row []byte, labeled bool) any {
	switch l.Kind {
	case "target":
		if v := mem.View[float32](row)[0]; v == v {
			return v
		}
		return nil
	case "multi":
		if !labeled {
			return nil
		}
		var names []string
		for c, name := range l.Classes {
			if row[c/8]>>(c%8)&1 != 0 {
				names = append(names, name)
			}
		}
		return strings.Join(names, ";")
	}
	c := mem.View[int32](row)[0]
	if c < 0 || int(c) >= len(l.Classes) {
		return nil
	}
	return l.Classes[c]
}

func runBlock(ctx context.Context, x *execution) error {
	if err := x.header("block"); err != nil {
		return err
	}
	var out bytes.Buffer
	err := x.engine.store.DumpBlock(ctx, x.engine.dev, x.operand.text, x.args["AT"].n,
		!x.has("HEX"), &out)
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

func runCheck(ctx context.Context, x *execution) error {
	report, err := layout.Check(ctx, x.engine.dev, x.engine.store, layout.CheckOptions{
		Full: x.has("FULL"), File: x.args["OF"].text})
	if err != nil {
		return err
	}
	if err := x.header("file", "block", "offset", "what"); err != nil {
		return err
	}
	if len(report.Findings) == 0 {
		return x.row("all", nil, nil, fmt.Sprintf("sound: %d files, %d bytes", report.Files,
			report.Bytes))
	}
	for _, f := range report.Findings {
		if err := x.row(f.Path, f.Block, f.Offset, f.What); err != nil {
			return err
		}
	}
	if err := x.render.Footer(); err != nil {
		return err
	}
	return &damageError{len(report.Findings)}
}

func runDescribe(_ context.Context, x *execution) error {
	m := x.engine.meta()
	switch {
	case x.has("FILES"):
		return x.describeFiles(m)
	case x.has("TYPES"):
		return x.describeTypes(m)
	}
	if err := x.header("kind", "name", "what"); err != nil {
		return err
	}
	rows := [][3]any{{"graph", "nodes", m.Nodes}, {"graph", "edges", m.Edges},
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
	if err := x.header("file", "kind", "bytes", "crc32c"); err != nil {
		return err
	}
	for _, f := range m.Files {
		if err := x.row(f.Path, f.Kind, f.Size, fmt.Sprintf("%08x", f.Checksum)); err != nil {
			return err
		}
	}
	return nil
}

func (x *execution) describeTypes(m *kv.Meta) error {
	if err := x.header("number", "type", "edges"); err != nil {
		return err
	}
	for i, name := range m.EdgeTypes {
		var n any
		if i < len(m.Stats.TypeCounts) {
			n = m.Stats.TypeCounts[i]
		}
		if err := x.row(i, name, n); err != nil {
			return err
		}
	}
	return nil
}

func runHelp(_ context.Context, x *execution) error {
	if err := x.header("statement", "what it shows", "example"); err != nil {
		return err
	}
	for _, st := range registry {
		if err := x.row(st.head, st.help, st.example); err != nil {
			return err
		}
	}
	return nil
}
