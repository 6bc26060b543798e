package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/internal/sparse"
	"gdb/internal/tables"
	"gdb/layout/ingest/input"
)

// csrArrays are features as compressed sparse rows: the entries of row i are those from indptr[i]
// to indptr[i+1]. Entries of one column add up.
type csrArrays struct {
	name                    string
	indptr, indices, values *tables.Array
	rows                    int64
	dim                     int
	nan                     bool
}

func (s *arraySet) sparseFeatures(prefix string) error {
	c := &csrArrays{name: prefix, nan: s.opt.AllowNaN}
	var shape *tables.Array
	for i, to := range []**tables.Array{&c.indptr, &c.indices, &c.values, &shape} {
		a, err := s.one("sparse features", "", prefix+sparseParts[i])
		if err != nil {
			return err
		}
		if a == nil {
			return input.Wrong(c.indptr.Name, "", "%s%s is missing beside it", prefix,
				sparseParts[i])
		}
		*to = a
	}
	dims, err := readInts(shape, 2)
	if err != nil {
		return err
	}
	c.rows = dims[0]
	switch {
	case dims[0] == 0 || dims[1] == 0 || dims[1] > featureDimMax:
		return input.Wrong(shape.Name, fmt.Sprintf("rows have 1 to %d values", featureDimMax),
			"the shape is %v", dims)
	case len(c.indptr.Shape) != 1 || c.indptr.Elements() != c.rows+1:
		return wrongShape(c.indptr, fmt.Sprintf("(%d,): one more than rows", c.rows+1))
	case len(c.values.Shape) != 1 || c.values.Elements() != c.indices.Elements():
		return wrongShape(c.values, "as many values as indices")
	case !c.indptr.DType.Integer():
		return wrongType(c.indptr, "integers")
	case !c.indices.DType.Integer():
		return wrongType(c.indices, "integers")
	}
	c.dim = int(dims[1])
	s.info.Features = []FeatureInfo{{Name: "features", Dim: c.dim, Sparse: true,
		DType: c.values.DType.String(), Rows: uint64(c.rows)}}
	if err := s.setNodes(shape.Name, c.rows); err != nil {
		return err
	}
	return s.chooseSparse(c)
}

// denseTimes is how many times a sparse row must be smaller than a dense one to be kept.
const denseTimes = 2

// chooseSparse decides whether rows stay sparse, and notes that.
func (s *arraySet) chooseSparse(c *csrArrays) error {
	s.features["features"] = c.stream
	if !s.opt.KeepSparse {
		s.noteSparse(c)
		return nil
	}
	longest, valued, err := c.measure(context.Background())
	if err != nil {
		return err
	}
	words := sparse.Words(longest, c.dim, valued)
	if denseTimes*words > c.dim {
		s.noteSparse(c)
		return nil
	}
	s.info.Features[0].Words = words
	s.features["features"] = c.sparseStream(valued, words)
	s.note("features %s are sparse, up to %d of %d values a node, and are stored so: %s a node, "+
		"%s with all values (--feature-dtype f32)", c.name, longest, c.dim,
		mem.FormatSize(4*int64(words)), mem.FormatSize(4*int64(c.dim)))
	return nil
}

// sparseFilled is the share of values that are not zero below which dense rows are mostly zeros.
const sparseFilled = 0.1

// noteSparse notes what sparse features cost as the dense rows that they become.
func (s *arraySet) noteSparse(c *csrArrays) {
	filled := c.indices.Elements()
	share := float64(filled) / (float64(c.rows) * float64(c.dim))
	if c.rows == 0 || c.dim == 0 || share >= sparseFilled {
		return
	}
	const floatBytes, fewer = 4, 256
	given := filled * int64(c.indices.DType.Size+c.values.DType.Size)
	advice := "--feature-dtype f16 halves that"
	if c.dim > fewer {
		advice += fmt.Sprintf("; fewer columns, as of sklearn.decomposition.TruncatedSVD(%d), "+
			"take %s", fewer, mem.FormatSize(c.rows*fewer*floatBytes))
	}
	s.note("features %s are sparse: %.2g %% of %d x %d values are given, %s; a store has all of "+
		"them, %s, %s a node, and training reads that: %s", c.name, 100*share, c.rows, c.dim,
		mem.FormatSize(given), mem.FormatSize(c.rows*int64(c.dim)*floatBytes),
		mem.FormatSize(int64(c.dim)*floatBytes), advice)
}

// entry is a value that is given: those of a row that name one column add up.
type entry struct {
	column uint64
	value  float32
}

// each calls fn with the entries of rows, some rows at a time: those of row first+i end at ends[i].
func (c *csrArrays) each(ctx context.Context, most int,
	fn func(first int64, entries []entry, ends []int) error) (err error) {
	r := csrReader{csrArrays: c}
	defer func() { err = errors.Join(err, arrayStreams(r.streams[:]).close()) }()
	for i, a := range []*tables.Array{c.indices, c.values} {
		if r.streams[i], err = a.Stream(0); err != nil {
			return err
		}
	}
	err = eachInts(ctx, c.indptr, 1, most,
		func(first int64, ends []uint64, _ int) error {
			row := first - 1
			if first == 0 { // the first element is the begin of row 0
				if ends[0] != 0 {
					return r.bad(0, "the first entry is %d, not 0", int64(ends[0]))
				}
				ends, row = ends[1:], 0
			}
			if len(ends) == 0 {
				return nil
			}
			if err := r.read(ctx, row, ends); err != nil {
				return err
			}
			return fn(row, r.entries, r.ends)
		})
	if err == nil && r.at != uint64(c.indices.Elements()) {
		err = r.bad(c.rows, "the last entry is %d, but there are %d indices", r.at,
			c.indices.Elements())
	}
	return err
}

// stream makes the rows dense.
func (c *csrArrays) stream(ctx context.Context, fn func(*RowChunk) error) error {
	out := &RowChunk{Where: Where{File: c.indptr.Name, Unit: "row"}}
	return c.each(ctx, max(1, rowChunkFloats/c.dim), func(first int64, all []entry,
		ends []int) error {
		out.Rows = mem.Sized(out.Rows, len(ends)*c.dim)
		out.First, out.Where.First = uint64(first), first
		clear(out.Rows)
		begin := 0
		for i, end := range ends {
			for _, e := range all[begin:end] {
				out.Rows[i*c.dim+int(e.column)] += e.value
			}
			begin = end
		}
		if err := checkFinite(out, c.dim, c.nan); err != nil {
			return err
		}
		return fn(out)
	})
}

// measure reads all entries: how many the longest row has, and whether some value is not 1.
func (c *csrArrays) measure(ctx context.Context) (longest int, valued bool, err error) {
	err = c.eachSummed(ctx, func(_ int64, columns []uint32, values []float32) error {
		longest = max(longest, len(columns))
		valued = valued || slices.ContainsFunc(values, func(v float32) bool { return v != 1 })
		return nil
	})
	return longest, valued, err
}

// eachSummed calls fn with the entries of each row that are not 0, in order of columns, each once.
func (c *csrArrays) eachSummed(ctx context.Context, fn func(row int64, columns []uint32,
	values []float32) error) error {
	var columns []uint32
	var values []float32
	return c.each(ctx, rowChunkFloats/16, func(first int64, all []entry, ends []int) error {
		begin := 0
		for i, end := range ends {
			row := all[begin:end]
			begin = end
			slices.SortStableFunc(row, func(a, b entry) int {
				return cmp.Compare(a.column, b.column)
			})
			columns, values = columns[:0], values[:0]
			for k := 0; k < len(row); {
				e := row[k]
				for k++; k < len(row) && row[k].column == e.column; k++ {
					e.value += row[k].value
				}
				if e.value-e.value != 0 && !c.nan {
					return notFinite(fmt.Sprintf("%s row %d", c.indptr.Name, first+int64(i)),
						int(e.column), e.value)
				}
				if e.value != 0 {
					columns, values = append(columns, uint32(e.column)), append(values, e.value)
				}
			}
			if err := fn(first+int64(i), columns, values); err != nil {
				return err
			}
		}
		return nil
	})
}

// sparseStream streams rows as package sparse has them.
func (c *csrArrays) sparseStream(valued bool, words int) func(ctx context.Context,
	fn func(*RowChunk) error) error {
	return func(ctx context.Context, fn func(*RowChunk) error) error {
		out := &RowChunk{Where: Where{File: c.indptr.Name, Unit: "row"}}
		give := func() error {
			if len(out.Rows) == 0 {
				return nil
			}
			err := fn(out)
			out.First += uint64(len(out.Rows) / words)
			out.Where.First, out.Rows = int64(out.First), out.Rows[:0]
			return err
		}
		most := max(1, rowChunkFloats/words) * words
		err := c.eachSummed(ctx, func(_ int64, columns []uint32, values []float32) error {
			if !valued {
				values = nil
			}
			n := len(out.Rows)
			out.Rows = slices.Grow(out.Rows, words)[:n+words]
			sparse.Row(mem.View[uint32](mem.BytesOf(out.Rows[n:]))).Set(c.dim, columns, values)
			if len(out.Rows) < most {
				return nil
			}
			return give()
		})
		if err != nil {
			return err
		}
		return give()
	}
}

// csrReader is one pass over CSR arrays.
type csrReader struct {
	*csrArrays
	streams [2]*tables.Stream // indices, values
	at      uint64            // entries read
	cols    []uint64
	vals    []float32
	entries []entry
	ends    []int
}

func (r *csrReader) bad(row int64, format string, args ...any) error {
	return input.Wrong(fmt.Sprintf("%s row %d", r.indptr.Name, row), "", format, args...)
}

// read reads the entries of the rows from first on that end at ends.
func (r *csrReader) read(ctx context.Context, first int64, ends []uint64) error {
	begin := r.at
	for i, end := range ends {
		if end < begin || end-begin > uint64(r.dim) || end > uint64(r.indices.Elements()) {
			return r.bad(first+int64(i), "entries %d to %d are not a row of %d columns",
				int64(begin), int64(end), r.dim)
		}
		begin = end
	}
	n := int(begin - r.at)
	r.cols, r.vals = mem.Sized(r.cols, n), mem.Sized(r.vals, n)
	if n > 0 {
		b, err := r.streams[0].Next(ctx, n)
		if err != nil {
			return err
		}
		r.indices.DType.IDs(r.cols, b, 0, 1)
		if b, err = r.streams[1].Next(ctx, n); err != nil {
			return err
		}
		r.values.DType.Floats(r.vals, b)
	}
	r.entries, r.ends = r.entries[:0], r.ends[:0]
	for i, end := range ends {
		for ; r.at < end; r.at++ {
			k := len(r.entries)
			if r.cols[k] >= uint64(r.dim) {
				return r.bad(first+int64(i), "column %d is out of range, there are %d",
					int64(r.cols[k]), r.dim)
			}
			r.entries = append(r.entries, entry{r.cols[k], r.vals[k]})
		}
		r.ends = append(r.ends, len(r.entries))
	}
	return nil
}
