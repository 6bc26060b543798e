package query

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/layout"
	"gdb/shell/exec"
)

// features runs FEATURES: it shows rows, or statistics of their columns.
type features struct {
	x      *exec.Execution
	lo, hi int // the columns from lo up to hi, without hi
	dim    int

	nodes *exec.Find
	rows  exec.Features
	names exec.Names // not used with STATS
}

func planFeatures(x *exec.Execution) (*exec.Plan, error) {
	m := x.Graph.Meta()
	if len(m.Features) == 0 {
		return nil, errors.New("this store holds no features")
	}
	f := &features{x: x, dim: m.Features[0].Dim}
	f.hi = f.dim
	if v, ok := x.Args["COLUMNS"]; ok {
		f.lo, f.hi = v.Lo, v.Hi
	}
	if f.hi > f.dim {
		return nil, fmt.Errorf("COLUMNS %d:%d: features have columns 0:%d", f.lo, f.hi, f.dim)
	}
	var err error
	if f.nodes, err = x.Find("nodes", x.Operand.Nodes); err != nil {
		return nil, err
	}
	f.rows = x.Features(f.nodes.Operator)
	if x.Has("STATS") {
		return &exec.Plan{Run: f.runStats,
			Root: x.Operator("column statistics", "", -1, 0, f.rows.Operator)}, nil
	}
	f.names = x.Names(f.rows.Operator)
	return &exec.Plan{Root: f.names.Operator, Run: f.run}, nil
}

// run shows the rows.
func (f *features) run(ctx context.Context) error {
	nodes, err := f.nodes.Nodes(ctx)
	if err != nil {
		return err
	}
	cols := []string{"node"}
	m := f.x.Graph.Meta()
	cols = append(cols, m.FeatureColumns(m.Features[0]).Names()[f.lo:f.hi]...)
	f.x.Header(cols...)
	return f.rows.Each(ctx, nodes, func(part []layout.NodeID, data []float32) error {
		names, err := f.names.Of(ctx, part)
		if err != nil {
			return err
		}
		cells := make([]any, 1+f.hi-f.lo)
		for i, name := range names {
			cells[0] = name
			for j, v := range data[i*f.dim+f.lo : i*f.dim+f.hi] {
				cells[1+j] = v
			}
			f.x.Row(cells...)
		}
		return f.x.Err()
	})
}

// columnStats gathers the statistics of a column in one pass.
type columnStats struct{ least, most, mean, squares float64 }

// take adds the n-th value by Welford's update, because sums of squares would lose digits.
func (c *columnStats) take(v, n float64) {
	c.least, c.most = min(c.least, v), max(c.most, v)
	d := v - c.mean
	c.mean += d / n
	c.squares += d * (v - c.mean)
}

// runStats shows a row for each column, with statistics over the given nodes, in one pass.
func (f *features) runStats(ctx context.Context) error {
	nodes, err := f.nodes.Nodes(ctx)
	if err != nil {
		return err
	}
	stats := make([]columnStats, f.hi-f.lo)
	for j := range stats {
		stats[j].least, stats[j].most = math.Inf(1), math.Inf(-1)
	}
	n := 0.0
	err = f.rows.Each(ctx, nodes, func(part []layout.NodeID, data []float32) error {
		for i := range part {
			n++
			for j, v := range data[i*f.dim+f.lo : i*f.dim+f.hi] {
				stats[j].take(float64(v), n)
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	f.x.Header("column", "min", "max", "mean", "std")
	if n == 0 {
		return nil
	}
	m := f.x.Graph.Meta()
	columns := m.FeatureColumns(m.Features[0])
	names := columns.Names()
	for j, c := range stats {
		var column any = f.lo + j
		if columns.Named() {
			column = names[f.lo+j]
		}
		f.x.Row(column, c.least, c.most, c.mean, math.Sqrt(c.squares/n))
	}
	return nil
}
