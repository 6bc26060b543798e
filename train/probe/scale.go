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

	"github.com/RoaringBitmap/roaring/v2"
)

// scaleRows is the number of rows on which the scale of columns is measured.
const scaleRows = 4096

// Scale returns how the columns of a source's open features are scaled, measured on rows spread
// evenly over all nodes that were not deleted. With auto it returns nil if their ranges are alike
// and small; they need no scaling then.
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

// spread returns nodes that are spread evenly over those that were not deleted, most at most.
func spread(all uint64, deleted *roaring.Bitmap, most uint64) []sample.NodeID {
	there := all - deleted.GetCardinality()
	nodes := make([]sample.NodeID, min(there, most))
	gone, below := deleted.Iterator(), uint64(0) // deleted nodes below the next one
	for i := range nodes {
		v := uint64(i)*there/uint64(len(nodes)) + below
		for gone.HasNext() && uint64(gone.PeekNext()) <= v {
			gone.Next()
			below, v = below+1, v+1
		}
		nodes[i] = sample.NodeID(v)
	}
	return nodes
}

// measureColumns measures the columns on some rows.
func measureColumns(ctx context.Context, src *loader.Source) (*stream.Scaling, error) {
	deleted, err := src.Store.Deleted(ctx)
	if err != nil {
		return nil, err
	}
	if deleted == nil {
		deleted = roaring.New()
	}
	nodes := spread(src.Meta.Nodes, deleted, scaleRows)
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
