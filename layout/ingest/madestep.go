package ingest

import (
	"context"
	"errors"

	"gdb/kv"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
)

// checkMade fails early if features cannot be made for so many nodes.
func (p *pipeline) checkMade(m *nodeMap) error {
	if !source.IsMade(p.opt.Features) {
		return nil
	}
	kind, err := source.ParseMade(p.opt.Features)
	if err == nil {
		_, err = source.NewMaker(kind, m.nodes, 0, p.opt.Seed)
	}
	if err != nil {
		return input.Usage("%w", err)
	}
	return nil
}

// madeFeatures writes features for a graph that has none.
func (p *pipeline) madeFeatures(ctx context.Context, m *nodeMap, t *topologyResult) (
	*featuresResult, error) {
	return steps.Do(ctx, p.Work, "made features", func(ctx context.Context,
		out *featuresResult) error {
		kind, err := source.ParseMade(p.opt.Features)
		if err != nil {
			return err
		}
		maker, err := source.NewMaker(kind, m.nodes, t.Max, p.opt.Seed)
		if err != nil {
			return err
		}
		p.DropRuns(t.Degrees)
		return p.writeMade(ctx, maker, m, t.Degrees, out)
	})
}

func (p *pipeline) writeMade(ctx context.Context, maker *source.Maker, m *nodeMap,
	degrees []extsort.Run, out *featuresResult) error {
	f := &featureWriter{p: p, m: m, info: source.FeatureInfo{Name: "features", Dim: maker.Dim()}}
	w, err := f.newRows()
	if err != nil {
		return err
	}
	row, next := make([]float32, maker.Dim()), uint64(0)
	fill := func(end uint64) error { // the nodes below end have no in-edges
		for ; next < end; next++ {
			maker.Row(row, next, 0)
			if err := w.AddF32(row); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	err = steps.EachEntry(ctx, p.Sorter("degrees", 0, p.Memory.Merge), degrees,
		func(e extsort.Entry) error {
			if err := fill(e.Key); err != nil {
				return err
			}
			maker.Row(row, e.Key, e.Aux)
			next++
			if next%(1<<16) == 0 {
				f.progress("make features", 1<<16)
			}
			return w.AddF32(row)
		})
	if err == nil {
		err = fill(m.nodes)
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	var files []kv.FileMeta
	out.Meta, files, err = w.Finish()
	out.Files = files
	p.KeepFiles(files...)
	return err
}
