package ingest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/sparse"
	"gdb/kv"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/ingest/stream"
	"gdb/layout/rowfile"
)

// featuresResult is what the step of one feature array gives.
type featuresResult struct {
	Meta   kv.RowsMeta
	Files  []kv.FileMeta
	Counts bool // the values are counts
	// Scaled says of each type whether its rows are not what the source has.
	Scaled []bool
	// Encodings say of each type how its rows were made; nil where that cannot be recorded.
	Encodings []*kv.FeatureEncoding `json:",omitempty"`
}

func (p *pipeline) features(ctx context.Context, m *nodeMap, i int) (*featuresResult, error) {
	info := p.info.Features[i]
	return steps.Do(ctx, p.Work, "features "+info.Name,
		func(ctx context.Context, out *featuresResult) error {
			f := &featureWriter{p: p, m: m, info: info}
			if err := f.prepare(ctx); err != nil {
				return err
			}
			err := f.straight(ctx, out)
			if errors.Is(err, errNotInOrder) {
				err = f.scatter(ctx, out)
			}
			p.KeepFiles(out.Files...)
			out.Counts = f.counts.Are()
			for i, scale := range f.scales {
				encoding := f.encoding(i, scale)
				out.Scaled = append(out.Scaled, scale.Columns() || encoding != nil &&
					len(encoding.Mean) > 0)
				out.Encodings = append(out.Encodings, encoding)
			}
			if !out.Counts && f.ranges.Uneven() && p.opt.Lacks == nil { // else a store decides
				p.note("%s: columns have very different or large ranges; training scales them as "+
					"it reads them, --normalize zscore would here", featuresOf(info.Name))
			}
			if f.missing > 0 {
				p.note("%s: %d nodes have no row, and get zeros", featuresOf(info.Name), f.missing)
			}
			return err
		})
}

// errNotInOrder says that rows do not come in order of node.
var errNotInOrder = errors.New("rows are not in order of node")

// featureWriter writes the rows of one feature array.
type featureWriter struct {
	p    *pipeline
	m    *nodeMap
	info source.FeatureInfo
	// scales has a scaling for each type of nodes whose rows have a width of their own, or one.
	scales []*stream.Scaling
	// counts looks at the rows as they are written.
	counts stream.CountWatch
	ranges stream.RangeWatch
	values []float32 // of a sparse row
	// nodes, in modes that join, are the runs of (row, node).
	nodes []extsort.Run
	done  uint64
	// zeros is the row of a node without one; missing counts these nodes.
	zeros   []float32
	missing uint64
}

// prepare does what needs a pass of its own: column statistics, and the nodes of rows.
func (f *featureWriter) prepare(ctx context.Context) error {
	for _, dim := range f.dims() {
		scale := stream.NewScaling(f.normalize(), dim)
		if f.info.Dims != nil {
			scale.ScaleCounts()
		}
		f.scales = append(f.scales, scale)
	}
	if f.scales[0].Columns() {
		err := f.p.src.Features(ctx, f.info.Name, func(c *source.RowChunk) error {
			f.scales[c.Type].Observe(c.Rows)
			f.progress("measure features", len(c.Rows)/f.dims()[c.Type])
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		for i, scale := range f.scales {
			scale.Finish()
			if chosen := scale.Chosen(); chosen != "" && f.dims()[i] > 0 {
				f.p.note("%s: --normalize auto is %s", f.featuresOf(i), chosen)
			}
		}
	}
	if !f.m.mode.joinsRows() || f.info.Dims != nil {
		return nil
	}
	return f.joinRows(ctx)
}

// encoding returns how rows of a type are made, with their scale; nil if it is not known, or has
// values that are not finite.
func (f *featureWriter) encoding(typ int, scale *stream.Scaling) *kv.FeatureEncoding {
	if f.info.Dims == nil || f.info.Encodings == nil || f.info.Encodings[typ] == nil {
		return nil
	}
	e := *f.info.Encodings[typ]
	if scale.Columns() {
		e.Mean, e.Inverse = scale.Statistics()
	}
	finite := func(all []float32) bool {
		return !slices.ContainsFunc(all, func(x float32) bool { return x-x != 0 })
	}
	if !finite(e.Mean) || !finite(e.Inverse) || slices.ContainsFunc(e.Columns,
		func(c kv.EncodedColumn) bool { return !finite(c.Fill) }) {
		return nil
	}
	return &e
}

// dims returns the width of the rows of each type, or of all.
func (f *featureWriter) dims() []int {
	if f.info.Dims != nil {
		return f.info.Dims
	}
	return []int{f.info.Width()}
}

// normalize returns how rows are scaled. Where types have columns of their own, it is chosen for
// each by default, since trainings do not scale such rows.
func (f *featureWriter) normalize() string {
	if f.info.Dims != nil && f.p.opt.Normalize == "" {
		return "auto"
	}
	return f.p.opt.Normalize
}

// featuresOf names the features of a type in notes.
func (f *featureWriter) featuresOf(typ int) string {
	if f.info.Dims != nil {
		return "features of " + f.p.info.NodeTypes[typ]
	}
	return featuresOf(f.info.Name)
}

func (f *featureWriter) progress(phase string, rows int) {
	f.done += uint64(rows)
	f.p.Progress(phase, f.done, max(f.info.Rows, f.m.nodes), "rows")
}

func (f *featureWriter) attacher() *attacher {
	return &attacher{p: f.p, m: f.m, name: "rows", what: "feature row",
		stream: func(ctx context.Context, fn func(c *idRowsChunk) error) error {
			return f.p.src.Features(ctx, f.info.Name, func(c *source.RowChunk) error {
				return fn(f.rowsOf(c))
			})
		}}
}

func (f *featureWriter) rowsOf(c *source.RowChunk) *idRowsChunk {
	return &idRowsChunk{ids: c.IDs, first: c.First, n: len(c.Rows) / f.dims()[c.Type],
		where: &c.Where,
		value: func(int) (uint32, bool, error) { return 0, true, nil }}
}

// joinRows finds the node of every row and sorts them back into the order of the rows.
func (f *featureWriter) joinRows(ctx context.Context) (err error) {
	var rec [1]uint64
	to := f.p.Sorter("rows", 1, f.p.Memory.Sort)
	f.nodes, err = extsort.SortWords(to, func(s *extsort.Words) error {
		return f.attacher().each(ctx, func(at attachment) error {
			if at.seq >= nodesMax {
				return input.Usage("features %s: more than %d rows", f.info.Name, uint64(nodesMax))
			}
			rec[0] = at.seq<<32 | uint64(at.node)
			return s.Add(rec[:])
		})
	})
	return err
}

// eachRow calls fn with every row, scaled, and its node.
func (f *featureWriter) eachRow(ctx context.Context, phase string,
	fn func(node uint32, row []float32, c *idRowsChunk, i int) error) (err error) {
	f.done, f.counts, f.ranges = 0, stream.CountWatch{}, stream.RangeWatch{}
	a := f.attacher()
	next, stop, mergeErr := f.pullNodes(ctx)
	defer stop()
	err = f.p.src.Features(ctx, f.info.Name, func(c *source.RowChunk) error {
		rows, dim := f.rowsOf(c), f.dims()[c.Type]
		for i := range rows.n {
			var node uint32
			if f.nodes == nil {
				if node, err = a.direct(rows, i); err != nil {
					return err
				}
			} else {
				word, ok := next()
				if !ok {
					return errors.Join(*mergeErr, errors.New("ingest: feature rows: the source "+
						"changed while it was read"))
				}
				node = uint32(word)
			}
			row := c.Rows[i*dim : (i+1)*dim]
			switch {
			case f.info.Words > 0:
				f.takeSparse(sparse.Row(mem.View[uint32](mem.BytesOf(row))))
			case f.info.Dims == nil:
				f.scales[c.Type].Apply(row)
				f.counts.Observe(row)
				f.ranges.Observe(row)
			default:
				f.scales[c.Type].Apply(row)
			}
			if err := fn(node, row, rows, i); err != nil {
				return err
			}
		}
		f.progress(phase, rows.n)
		return ctx.Err()
	})
	return err
}

// takeSparse scales a sparse row, and looks at it.
func (f *featureWriter) takeSparse(row sparse.Row) {
	if sum := row.Sum(); f.normalize() == "row" && sum != 0 {
		row.Scale(float32(1 / sum))
	}
	_, f.values = row.Append(nil, f.values[:0])
	f.counts.Observe(f.values)
	f.counts.ObserveZeros(f.info.Dim - len(f.values))
}

// pullNodes turns the merge of the rows' nodes into an iterator, in modes that join.
func (f *featureWriter) pullNodes(ctx context.Context) (next func() (uint64, bool), stop func(),
	mergeErr *error) {
	mergeErr = new(error)
	stopped := errors.New("stopped")
	words := iter.Seq[uint64](func(yield func(uint64) bool) {
		err := extsort.Merge(ctx, f.p.Sorter("rows", 1, f.p.Memory.Merge), f.nodes,
			func(words []uint64) error {
				for _, w := range words {
					if !yield(w) {
						return stopped
					}
				}
				return nil
			})
		if !errors.Is(err, stopped) {
			*mergeErr = err
		}
	})
	next, stop = iter.Pull(words)
	return next, stop, mergeErr
}

func (f *featureWriter) newRows() (*rowfile.Writer, error) {
	dtype := f.p.opt.dtype()
	if f.info.Words > 0 {
		dtype = rowfile.Sparse
	}
	return rowfile.NewWriter(f.p.FS, f.p.Path("features/"+f.info.Name), rowfile.Spec{
		UUID: f.p.Journal.UUID, Name: f.info.Name, Path: "features/" + f.info.Name + ".rows",
		DType: dtype, Dim: f.info.Dim, Words: f.info.Words, Nodes: f.m.nodes,
		First: f.p.rowFirsts(), Dims: f.info.Dims})
}

// straight writes rows that come in order of node, as they come.
func (f *featureWriter) straight(ctx context.Context, out *featuresResult) error {
	w, err := f.newRows()
	if err != nil {
		return err
	}
	next := uint64(0)
	err = f.eachRow(ctx, "write features", func(node uint32, row []float32, c *idRowsChunk,
		i int) error {
		if err := f.skipTo(w, &next, uint64(node)); err != nil {
			return err
		}
		next++
		return outOfRange(w.AddF32(row), func() string { return c.where.Position(i) })
	})
	if err == nil && f.info.Dims != nil {
		err = f.skipTo(w, &next, f.m.nodes)
	}
	for ; err == nil && next < f.m.nodes; next++ {
		err = f.addMissing(ctx, w, uint32(next))
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	out.Meta, out.Files, err = w.Finish()
	return err
}

// skipTo writes the rows before a node, which are of types without values; a row of another type
// is not in order, or missing.
func (f *featureWriter) skipTo(w *rowfile.Writer, next *uint64, node uint64) error {
	for ; *next < node && f.info.Dims != nil; *next++ {
		if err := w.Add(nil); err != nil {
			return err
		}
	}
	if *next != node {
		return errNotInOrder
	}
	return nil
}

// outOfRange makes an error about a value that does not fit its dtype one about the input at where.
func outOfRange(err error, where func() string) error {
	var e *rowfile.RangeError
	if errors.As(err, &e) {
		return &input.Error{Where: where(), What: e.Error()}
	}
	return err
}

// addMissing writes the row of a node that has none: zeros, if they are asked for.
func (f *featureWriter) addMissing(ctx context.Context, w *rowfile.Writer, node uint32) error {
	switch {
	case f.p.opt.Lacks != nil:
		f.p.opt.Lacks(node)
	case f.p.opt.MissingNodes != "zero":
		return f.errMissing(ctx, node)
	default:
		f.missing++
	}
	if f.zeros == nil {
		f.zeros = make([]float32, f.info.Width())
	}
	return w.AddF32(f.zeros)
}

// errMissing returns the error of a node without a row.
func (f *featureWriter) errMissing(ctx context.Context, node uint32) error {
	where := strings.TrimSuffix("features "+f.info.Name, " features")
	if len(f.p.info.Paths) == 1 {
		where = f.p.info.Paths[0]
	}
	return input.Wrong(where, fmt.Sprintf("each of the %d nodes needs one; --missing-nodes zero "+
		"gives zeros to those without", f.m.nodes), "node %s has no row", f.m.external(ctx, node))
}

// featuresOf names features in notes.
func featuresOf(name string) string {
	if name == "features" {
		return name
	}
	return "features " + name
}

// scatterBlockBytes is the least write buffer of a bucket.
const scatterBlockBytes = 64 << 10

// scatter writes rows that come in any order: it appends each to the bucket of its range of nodes,
// and then puts one bucket after the other in order in memory. Memory: one bucket, or a write
// buffer for each; so features of 500 times the memory can be ordered at least.
func (f *featureWriter) scatter(ctx context.Context, out *featuresResult) error {
	rowBytes := uint64(f.info.Width()) * 4
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
	rowBytes := uint64(f.info.Width()) * 4
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
			return input.Wrong(c.where.Position(i), "give one row a node",
				"node %s has a row already", c.id(i))
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

// madeFeatures writes features for a graph that has none.
func (p *pipeline) madeFeatures(ctx context.Context, m *nodeMap, t *topologyResult) (
	*featuresResult, error) {
	return steps.Do(ctx, p.Work, "made features", func(ctx context.Context,
		out *featuresResult) error {
		maker, err := source.NewMaker(p.opt.Features, m.nodes, t.Max, p.opt.Seed)
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
	out.Meta, out.Files, err = w.Finish()
	p.KeepFiles(out.Files...)
	return err
}
