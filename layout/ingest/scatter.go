package ingest

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/steps"
	"gdb/layout/rowfile"
)

// scatterBlockBytes is the least write buffer of a bucket.
const scatterBlockBytes = 64 << 10

// scatter writes rows that come in any order: it appends each to the bucket of its range of nodes,
// and then puts one bucket after the other in order in memory. Memory: one bucket, or a write
// buffer for each; so features of 500 times the memory can be ordered at least.
func (f *featureWriter) scatter(ctx context.Context, out *featuresResult) error {
	rowBytes := uint64(f.info.Dim) * 4
	perBucket := max(1, uint64(f.p.Memory.Scatter)/(rowBytes+1))
	buckets := (f.m.nodes + perBucket - 1) / perBucket
	if least := int64(buckets) * scatterBlockBytes; least > f.p.Memory.Merge {
		return &mem.LimitError{What: "ordering features " + f.info.Name, Want: least,
			Limit: f.p.Memory.Merge}
	}
	opt := f.p.Sorter("bucket", 0, f.p.Memory.Merge)
	opt.BlockBytes = max(scatterBlockBytes, min(int(f.p.Memory.Merge)/int(buckets), 1<<20))
	runs, err := f.fillBuckets(ctx, opt, buckets, perBucket)
	if err != nil {
		return err
	}
	w, err := f.newRows()
	if err != nil {
		return err
	}
	arena, err := mem.NewArena(f.p.Budget, "a bucket of features",
		int64(min(perBucket, f.m.nodes)*(rowBytes+1)))
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	for b, run := range runs {
		first := uint64(b) * perBucket
		n := min(perBucket, f.m.nodes-first)
		if err = f.emptyBucket(ctx, opt, run, bucketRows{arena, first, n}, w); err != nil {
			break
		}
	}
	err = errors.Join(err, arena.Free())
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	out.Meta, out.Files, err = w.Finish()
	return err
}

// fillBuckets appends every row to the run of its bucket.
func (f *featureWriter) fillBuckets(ctx context.Context, opt extsort.Options, buckets,
	perBucket uint64) (runs []extsort.Run, err error) {
	var ws []*extsort.RunWriter
	for b := range buckets {
		w, err2 := extsort.NewRunWriter(opt, fmt.Sprintf("%s-%d.run", opt.Prefix, b))
		if err = err2; err != nil {
			break
		}
		ws = append(ws, w)
	}
	seq := uint64(0)
	if err == nil {
		err = f.eachRow(ctx, "sort features", func(node uint32, row []float32, c *idRowsChunk,
			i int) error {
			e := extsort.Entry{Key: uint64(node), Aux: seq, Text: mem.BytesOf(row)}
			seq++
			return ws[uint64(node)/perBucket].Add(e)
		})
	}
	for _, w := range ws {
		run, err2 := w.Finish()
		runs, err = append(runs, run), errors.Join(err, err2)
	}
	return runs, err
}

// bucketRows are the rows of n nodes from first on, in memory.
type bucketRows struct {
	arena    *mem.Arena
	first, n uint64
}

// emptyBucket writes the rows of a bucket, which a run has.
func (f *featureWriter) emptyBucket(ctx context.Context, opt extsort.Options, run extsort.Run,
	rows bucketRows, w *rowfile.Writer) error {
	arena, first, n := rows.arena, rows.first, rows.n
	rowBytes := uint64(f.info.Dim) * 4
	there := arena.Bytes()[n*rowBytes : n*(rowBytes+1)]
	clear(there)
	twice := noRow
	err := steps.EachEntry(ctx, opt, []extsort.Run{run}, func(e extsort.Entry) error {
		at := e.Key - first
		if there[at] != 0 {
			twice = min(twice, e.Aux)
		}
		there[at] = 1
		copy(arena.Bytes()[at*rowBytes:], e.Text)
		return nil
	})
	if err != nil {
		return err
	}
	if twice != noRow {
		return f.attacher().at(ctx, twice, func(c *idRowsChunk, i int) error {
			return &input.Error{Where: c.where.Position(i),
				What: fmt.Sprintf("node %s has a row already", c.id(i)), Do: "give one row a node"}
		})
	}
	for i := range n {
		if there[i] == 0 {
			if err := f.addMissing(ctx, w, uint32(first+i)); err != nil {
				return err
			}
			continue
		}
		row := mem.View[float32](arena.Bytes()[i*rowBytes : (i+1)*rowBytes])
		if err := outOfRange(w.AddF32(row), func() string {
			return fmt.Sprintf("features %s of node %s", f.info.Name,
				f.m.external(ctx, uint32(first+i)))
		}); err != nil {
			return err
		}
	}
	return opt.Remove(run)
}
