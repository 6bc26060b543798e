package probe

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/layout/ingest/stream"
	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/setting"
)

// scaleRows is the number of rows on which the scale of columns is measured.
const scaleRows = 4096

// Scale returns how the columns of a source's open features are scaled, measured on rows spread
// evenly over all nodes. With auto it returns nil if their ranges are alike and small; they need
// no scaling then.
func Scale(ctx context.Context, src *loader.Source, auto bool) (*rowfile.Scale, error) {
	if src.Rows.Meta().Sections != nil {
		return nil, errors.New("zscore scales columns, and each type of nodes has columns of its " +
			"own here, which ingest scales (its --normalize): leave it out, or --features columns")
	}
	measured, err := measureColumns(ctx, src)
	if err != nil {
		return nil, fmt.Errorf("measure the columns of the features: %w", err)
	}
	if auto && !measured.Uneven() {
		return nil, nil
	}
	s := &rowfile.Scale{}
	s.Mean, s.Inverse = measured.Statistics()
	return s, checkScale(s)
}

// checkScale returns an error that names the first column which cannot be scaled.
func checkScale(s *rowfile.Scale) error {
	for k := range s.Mean {
		if x := float64(s.Mean[k]) + float64(s.Inverse[k]); math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("column %d of the features has values that are not finite: "+
				"ingest again without them, or --normalize none", k+1)
		}
	}
	return nil
}

// measureColumns measures the columns on some rows.
func measureColumns(ctx context.Context, src *loader.Source) (*stream.Scaling, error) {
	n := min(src.Meta.Nodes, scaleRows)
	nodes := make([]sample.NodeID, n)
	for i := range nodes {
		nodes[i] = sample.NodeID(uint64(i) * src.Meta.Nodes / n)
	}
	dim := src.Rows.Meta().Dim
	s, row := stream.NewScaling(setting.NormalizeColumns, dim), make([]float32, 64*dim)
	for len(nodes) > 0 {
		part := nodes[:min(64, len(nodes))]
		if err := src.Rows.Gather(ctx, part, nil, row[:len(part)*dim]); err != nil {
			return nil, err
		}
		s.Observe(row[:len(part)*dim])
		nodes = nodes[len(part):]
	}
	s.Finish()
	return s, nil
}
