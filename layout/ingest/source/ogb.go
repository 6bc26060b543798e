package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gdb/internal/mem"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ogbInverse tells, by dataset, whether the Open Graph Benchmark's own loader adds reverse edges.
// The directory does not say it.
var ogbInverse = map[string]bool{"ogbn_proteins": true, "ogbn_products": true, "ogbn_arxiv": false,
	"ogbn_papers100m": false, "ogbn_mag": false, "ogbl_ppa": true, "ogbl_collab": true,
	"ogbl_ddi": true, "ogbl_citation2": false, "ogbl_wikikg2": false, "ogbl_biokg": false}

// ogbDir is a dataset's directory as OGB's downloader leaves it.
type ogbDir struct{ *parts }

// openOGB opens a dataset: csv files in raw/, or the arrays of raw/data.npz.
func openOGB(ctx context.Context, fs vfs.FS, opt *Options, dir string) (Source, error) {
	o := &ogbDir{newParts(fs, opt, "ogb", dir)}
	for _, f := range []string{"num-node-dict.csv.gz", "triplet-type-list.csv.gz",
		"edge_index_dict.npz"} {
		if o.exists("raw", f) {
			return nil, &input.Error{Where: dir, What: "it has several types of nodes (raw/" + f +
				")", Do: "that is not supported; ingest one relation with --format csv"}
		}
	}
	var err error
	if o.exists("raw", "data.npz") {
		err = inOrder(func() error { return checkFlags(opt, ofOGBArrays) },
			func() error { return o.openBinary(ctx) })
	} else {
		err = inOrder(func() error { return checkFlags(opt, ofOGBText) }, o.openCSV)
	}
	if err != nil {
		return nil, errors.Join(input.AsError(err), o.Close())
	}
	o.inverse()
	return o.parts, nil
}

func (o *ogbDir) exists(elem ...string) bool {
	_, err := o.fs.Stat(o.fs.PathJoin(append([]string{o.dir}, elem...)...))
	return err == nil
}

// inverse applies the table.
func (o *ogbDir) inverse() {
	name := strings.ToLower(strings.ReplaceAll(o.fs.PathBase(o.dir), "-", "_"))
	name = strings.TrimSuffix(name, "_bin")
	inverse, known := ogbInverse[name]
	switch {
	case !known:
		o.note("%s is no dataset that gdb knows: --undirected adds reverse edges", name)
	case inverse:
		o.info.AddInverse = true
		o.note("%s: reverse edges are added, as OGB does", name)
	}
}

// openBinary opens data.npz and node-label.npz.
func (o *ogbDir) openBinary(ctx context.Context) error {
	files := []string{o.fs.PathJoin(o.dir, "raw", "data.npz")}
	if o.exists("raw", "node-label.npz") {
		files = append(files, o.fs.PathJoin(o.dir, "raw", "node-label.npz"))
	}
	a := &arraySet{parts: o.parts}
	err := inOrder(func() error { return a.describeNodes(ctx, files) }, o.describeSplits,
		a.describeEdges)
	if err == nil {
		a.noteUnused()
	}
	return err
}

// describeSplits finds split/NAME/{train,valid,test}.csv.gz, or the files of --split.
func (o *ogbDir) describeSplits() error {
	for _, name := range slices.Sorted(maps.Keys(o.opt.Splits)) {
		err := o.addTextSplit(name, o.locate(o.opt.Splits[name]), true)
		if err != nil {
			return err
		}
	}
	root := o.fs.PathJoin(o.dir, "split")
	names, err := o.fs.List(root)
	if oserror.IsNotExist(err) || len(o.opt.Splits) > 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ingest: list %s: %w", root, err)
	}
	slices.Sort(names)
	if len(names) > 1 {
		return &input.Error{Where: root, What: "there are several: " + strings.Join(names, ", "),
			Do: "choose files with --split train=… --split val=… --split test=…"}
	}
	for _, n := range names {
		found := false
		for _, part := range []string{"train", "valid", "test"} {
			file, ok := o.csv("split", n, part)
			if !ok {
				continue
			}
			found = true
			if err := o.addTextSplit(strings.Replace(part, "valid", "val", 1), file,
				true); err != nil {
				return err
			}
		}
		if !found {
			o.note("%s holds no csv files: splits kept by PyTorch are not read",
				o.fs.PathJoin(root, n))
		}
	}
	return nil
}

// csv finds a csv file, compressed or not.
func (o *ogbDir) csv(elem ...string) (string, bool) {
	base := o.fs.PathJoin(append([]string{o.dir}, elem...)...)
	for _, ext := range []string{".csv.gz", ".csv", ".csv.zst"} {
		if _, err := o.fs.Stat(base + ext); err == nil {
			return base + ext, true
		}
	}
	return "", false
}

// csvTable opens raw/NAME.csv.gz; nil if there is none.
func (o *ogbDir) csvTable(name string) (*table.Table, error) {
	file, ok := o.csv("raw", name)
	if !ok {
		return nil, nil
	}
	return o.tables.Open(file, table.Hints{Format: &input.Format{Delim: ','}})
}

// openCSV opens the files of raw/. Rows of node files are node numbers.
func (o *ogbDir) openCSV() error {
	nodes, err := o.count("num-node-list")
	if err != nil {
		return err
	}
	if nodes < 0 {
		return input.Wrong(o.fs.PathJoin(o.dir, "raw"), "download it again",
			"there is neither num-node-list.csv.gz nor data.npz")
	}
	o.info.RowIDs = true
	edges, err := o.count("num-edge-list")
	if err != nil {
		return err
	}
	o.info.Edges = uint64(max(0, edges))
	return inOrder(o.csvEdges, o.csvFeatures, o.csvLabels, o.describeSplits, o.noteOthers)
}

// count reads a file of one number, or returns -1.
func (o *ogbDir) count(name string) (int64, error) {
	t, err := o.csvTable(name)
	if t == nil || err != nil {
		return -1, err
	}
	n := int64(-1)
	if len(t.Sample) == 1 && t.Width == 1 {
		if n, err = strconv.ParseInt(t.Sample[0][0], 10, 64); err != nil {
			n = -1
		}
	}
	if n < 0 {
		return 0, input.Wrong(t.Path, "datasets of several graphs are not supported",
			"want one number")
	}
	if name == "num-node-list" {
		return n, o.setNodes(t.Path, n)
	}
	return n, nil
}

// noteOthers names the files of raw/ that are not read.
func (o *ogbDir) noteOthers() error {
	raw := o.fs.PathJoin(o.dir, "raw")
	names, err := o.fs.List(raw)
	if err != nil {
		return fmt.Errorf("ingest: list %s: %w", raw, err)
	}
	slices.Sort(names)
	names = slices.DeleteFunc(names, func(n string) bool {
		return slices.Contains(o.info.Paths, o.fs.PathJoin(raw, n))
	})
	if len(names) > 0 {
		o.note("not used: %s", strings.Join(names, ", "))
	}
	return nil
}

func (o *ogbDir) csvFeatures() error {
	t, err := o.csvTable("node-feat")
	if t == nil || err != nil {
		return err
	}
	var columns []int
	for c := range t.Width {
		columns = append(columns, c)
	}
	o.info.Features = []FeatureInfo{{Name: "features", Dim: t.Width, DType: "text",
		Rows: o.info.Nodes}}
	o.features["features"] = func(ctx context.Context, fn func(*RowChunk) error) error {
		row := &RowChunk{}
		return o.eachRow(ctx, t, nil, columns, func(first uint64, b *input.Batch) error {
			row.First, row.Rows, row.Where = first, b.Vector, b.Where
			return fn(row)
		})
	}
	return nil
}

// eachRow streams a table without ids, which must have a row for each node.
func (o *ogbDir) eachRow(ctx context.Context, t *table.Table, columns []input.Column, vector []int,
	fn func(first uint64, b *input.Batch) error) error {
	next := uint64(0)
	err := o.tables.Each(ctx, t, table.Fails, input.Spec{Columns: columns,
		Vector: vector}, func(b *input.Batch) error {
		first := next
		if next += uint64(b.Rows); next > o.info.Nodes {
			return o.outOfRange(b.Position(int(o.info.Nodes-first)), "row", o.info.Nodes, false)
		}
		return fn(first, b)
	})
	if err == nil && next < o.info.Nodes {
		err = input.Wrong(t.Path, fmt.Sprintf("there are %d nodes, by %s", o.info.Nodes,
			o.nodesFrom), "it ends after %d rows", next)
	}
	return err
}

func (o *ogbDir) csvLabels() error {
	t, err := o.csvTable("node-label")
	if t == nil || err != nil {
		return err
	}
	l := &ogbLabels{ogbDir: o, t: t, kind: "class"}
	for c := range t.Width {
		l.columns = append(l.columns, input.Column{Field: c, Kind: input.Optional})
	}
	switch {
	case t.Width > 1:
		l.kind = "multi"
	case !t.All(0, func(f string) bool {
		x, ok := input.ParseFloat([]byte(f))
		return l.noLabel([]byte(f)) || !ok || !HasFraction(x)
	}):
		l.kind = "target"
	}
	o.info.Labels = &LabelInfo{Kind: l.kind}
	o.labels = l.stream
	return nil
}

// ogbLabels are the rows of node-label.csv: a class or a number, or a column of 0 and 1 for each
// label. Classes up to 2^24 are exact in a float32.
type ogbLabels struct {
	*ogbDir
	t       *table.Table
	kind    string
	columns []input.Column
}

func (l *ogbLabels) stream(ctx context.Context, fn func(*LabelChunk) error) error {
	c := &LabelChunk{}
	return l.eachRow(ctx, l.t, l.columns, nil, func(first uint64, b *input.Batch) error {
		c.First, c.Where = first, b.Where
		var err error
		switch l.kind {
		case "target":
			c.Target = b.Columns[0].Floats
		case "multi":
			err = l.multi(c, first, b)
		default:
			err = floatClasses(c, b.Columns[0].Floats, 1<<24)
		}
		if err != nil {
			return err
		}
		return fn(c)
	})
}

func (l *ogbLabels) multi(c *LabelChunk, first uint64, b *input.Batch) error {
	c.Lines = nil // the lines of b stay as they are
	c.resetHot()
	var hot []float32
	for i := range b.Rows {
		hot = hot[:0]
		for k := range b.Columns {
			hot = append(hot, b.Columns[k].Floats[i])
		}
		if k := addHot(c, first+uint64(i), b.First+int64(i), hot); k >= 0 {
			return input.Wrong(b.Position(i), doMultiHot, "column %d is %v", k, hot[k])
		}
	}
	c.IDs.Where = c.Where
	return nil
}

// csvEdges reads edge.csv, and beside it one weight or type a line.
func (o *ogbDir) csvEdges() error {
	t, err := o.csvTable("edge")
	if err != nil {
		return err
	}
	if t == nil {
		return input.Wrong(o.fs.PathJoin(o.dir, "raw"), "", "there is no edge.csv.gz")
	}
	if t.Width != 2 {
		return input.Wrong(t.Path, "want source and destination", "its rows have %d fields",
			t.Width)
	}
	e := &ogbEdges{ogbDir: o, t: t}
	if e.weight, err = o.csvTable("edge_weight"); err != nil {
		return err
	}
	if e.types, err = o.csvTable("edge_reltype"); err != nil {
		return err
	}
	for _, side := range []*table.Table{e.weight, e.types} {
		if side != nil && side.Width != 1 {
			return input.Wrong(side.Path, "want one", "its rows have %d fields", side.Width)
		}
	}
	o.info.Weighted, o.info.Typed = e.weight != nil, e.types != nil
	o.edges, o.info.EdgesAbout = e.stream, t.Lines
	return nil
}

// ogbEdges are edge.csv and the files parallel to it.
type ogbEdges struct {
	*ogbDir
	t, weight, types *table.Table
}

func (e *ogbEdges) stream(ctx context.Context, fn func(*EdgeChunk) error) (err error) {
	weight, err := e.beside(e.weight, input.Float)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, weight.close()) }()
	types, err := e.beside(e.types, input.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, types.close()) }()
	c := &EdgeChunk{}
	columns := []input.Column{{Field: 0, Kind: input.ID}, {Field: 1, Kind: input.ID}}
	err = e.tables.Each(ctx, e.t, table.Fails, input.Spec{Columns: columns},
		func(b *input.Batch) error {
			c.Where, c.SrcInt, c.DstInt = b.Where, b.Columns[0].IDs, b.Columns[1].IDs
			for i, v := range c.SrcInt {
				if m := max(v, c.DstInt[i]); m >= e.info.Nodes {
					return e.outOfRange(c.Position(i), "node", m, false)
				}
			}
			if weight != nil {
				c.Weight, c.Rounded = mem.Sized(c.Weight, b.Rows), RoundedWeights{}
				if err := weight.take(ctx, b.Rows, func(i int, v *input.Values, k int) {
					c.Weight[i] = v.Floats[k]
					if written, ok := v.RoundedAt(k); ok {
						c.Rounded.add(func() string { return weight.position(k) }, written,
							c.Weight[i])
					}
				}); err != nil {
					return err
				}
			}
			if types != nil {
				c.TypeInt = mem.Sized(c.TypeInt, b.Rows)
				if err := types.take(ctx, b.Rows, func(i int, v *input.Values, k int) {
					c.TypeInt[i] = uint32(min(v.IDs[k], 1<<32-1))
				}); err != nil {
					return err
				}
			}
			return fn(c)
		})
	return err
}

// besideReader reads a file of one value for each edge, as many at a time as the edges come.
type besideReader struct {
	t  *table.Table
	r  *input.TextReader
	b  *input.Batch
	at int
}

func (e *ogbEdges) beside(t *table.Table, kind input.Kind) (*besideReader, error) {
	if t == nil {
		return nil, nil
	}
	r, err := input.OpenText(e.fs, t.Path, input.Spec{Format: t.Format, Width: 1,
		Columns: []input.Column{{Kind: kind}}})
	return &besideReader{t: t, r: r}, err
}

// take calls fn for each of the next n values: value k of v belongs to edge i.
func (s *besideReader) take(ctx context.Context, n int,
	fn func(i int, v *input.Values, k int)) (err error) {
	for i := range n {
		for s.b == nil || s.at == s.b.Rows {
			if s.b, err = s.r.Next(ctx); err == io.EOF {
				return input.Wrong(s.t.Path, "", "it has fewer lines than there are edges")
			}
			if err != nil {
				return err
			}
			if s.at = 0; len(s.b.Bad) > 0 {
				return table.BadLine(s.b, &s.b.Bad[0])
			}
		}
		fn(i, &s.b.Columns[0], s.at)
		s.at++
	}
	return nil
}

// position names row k of the batch.
func (s *besideReader) position(k int) string {
	return s.b.Position(k)
}

func (s *besideReader) close() error {
	if s == nil {
		return nil
	}
	return s.r.Close()
}
