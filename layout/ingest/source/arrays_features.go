package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/tables"
	"gdb/layout/ingest/input"
)

// rowChunkFloats bounds the values of a chunk of feature rows, but for one row.
const rowChunkFloats = 1 << 18

// featureDimMax bounds a row, which must fit in memory dense: 16 MiB.
const featureDimMax = 1 << 22

func (s *arraySet) describeFeatures() error {
	if s.opt.Features != "" {
		return s.givenFeatures(s.opt.Features)
	}
	found := s.find(func(stem string) bool {
		return featureStems.MatchString(stem) && s.sparsePrefix(stem) == ""
	})
	sparse := s.find(func(stem string) bool {
		return strings.HasSuffix(stem, "_indptr") && s.sparsePrefix(stem) != ""
	})
	switch all := append(slices.Clone(found), sparse...); {
	case len(all) == 0:
		return nil
	case len(all) > 1:
		return s.several("features", "--features", all)
	}
	if len(sparse) == 1 {
		return s.sparseFeatures(s.sparsePrefix(sparse[0].stem))
	}
	a, err := s.open(found[0])
	if err != nil {
		return err
	}
	return s.denseFeatures(a, "features")
}

// givenFeatures takes what --features names: an array, or the prefix or a part of CSR arrays.
func (s *arraySet) givenFeatures(value string) error {
	stem := strings.TrimSuffix(s.fs.PathBase(value), ".npy")
	for _, n := range s.find(func(have string) bool {
		return have == stem || have == stem+sparseParts[0]
	}) {
		if p := s.sparsePrefix(n.stem); p != "" {
			return s.sparseFeatures(p)
		}
	}
	a, err := s.given("--features", value)
	if err != nil {
		return err
	}
	if a.Stem == "" {
		return s.denseFeatures(a, "features")
	}
	return s.denseFeatures(a, a.Stem)
}

// sparsePrefix returns what comes before "_indptr" and the like, or "" if stem is no part of CSR
// features.
func (s *arraySet) sparsePrefix(stem string) string {
	for _, part := range sparseParts {
		p, ok := strings.CutSuffix(stem, part)
		if ok && len(s.find(func(have string) bool { return have == p+sparseParts[0] })) > 0 {
			return p
		}
	}
	return ""
}

func (s *arraySet) denseFeatures(a *tables.Array, name string) error {
	switch {
	case len(a.Shape) != 2 && len(a.Shape) != 1 || a.Elements() == 0:
		return wrongShape(a, "(nodes, values)")
	case a.Fortran && len(a.Shape) == 2 && a.Shape[0] > 1 && a.Shape[1] > 1:
		return fortran(a)
	}
	dim := a.Elements() / a.Shape[0]
	if dim > featureDimMax {
		return wrongShape(a, fmt.Sprintf("at most %d values in a row", featureDimMax))
	}
	s.info.Features = []FeatureInfo{{Name: name, Dim: int(dim), DType: a.DType.String(),
		Rows: uint64(a.Shape[0])}}
	nan := s.opt.AllowNaN
	s.features[name] = func(ctx context.Context, fn func(*RowChunk) error) error {
		return denseRows(ctx, a, int(dim), nan, fn)
	}
	return s.setNodes(a.Name, a.Shape[0])
}

// denseRows streams the rows of an array. Little-endian float32 rows are not copied.
func denseRows(ctx context.Context, a *tables.Array, dim int, nan bool,
	fn func(*RowChunk) error) error {
	c := &RowChunk{Where: Where{File: a.Name, Unit: "row"}}
	direct := a.DType.Kind == 'f' && a.DType.Size == 4
	var buf []float32
	return eachElements(ctx, a, int64(dim), max(1, rowChunkFloats/dim),
		func(first int64, rows int, b []byte) error {
			c.First, c.Where.First = uint64(first), first
			if direct {
				c.Rows = mem.View[float32](b)
			} else {
				buf = mem.Sized(buf, rows*dim)
				a.DType.Floats(buf, b)
				c.Rows = buf
			}
			if err := checkFinite(c, dim, nan); err != nil {
				return err
			}
			return fn(c)
		})
}

// checkFinite refuses NaN and infinite features.
func checkFinite(c *RowChunk, dim int, nan bool) error {
	if nan {
		return nil
	}
	i := firstNotFinite(c.Rows)
	if i < 0 {
		return nil
	}
	return input.Wrong(c.Position(i/dim), "mend it, or allow it with --allow-nan",
		"feature %d is %v", i%dim, c.Rows[i])
}

// firstNotFinite returns the index of the first NaN or infinity, or -1.
func firstNotFinite(v []float32) int {
	// Adding one to the lowest bit of the exponent overflows into the sign if all its bits are set;
	// two numbers are looked at in one word.
	const all, one, top = 0x7fffffff7fffffff, 0x0080000000800000, 0x8000000080000000
	words := mem.View[uint64](mem.BytesOf(v))
	var or uint64
	for _, w := range words {
		or |= w&all + one
	}
	if or&top == 0 && (len(v)%2 == 0 || v[len(v)-1]-v[len(v)-1] == 0) {
		return -1
	}
	return slices.IndexFunc(v, func(x float32) bool { return x-x != 0 })
}

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
	s.features["features"] = c.stream
	s.noteSparse(c)
	return s.setNodes(shape.Name, c.rows)
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

// stream makes the rows dense.
func (c *csrArrays) stream(ctx context.Context, fn func(*RowChunk) error) (err error) {
	r := csrReader{csrArrays: c}
	defer func() { err = errors.Join(err, arrayStreams(r.streams[:]).close()) }()
	for i, a := range []*tables.Array{c.indices, c.values} {
		if r.streams[i], err = a.Stream(0); err != nil {
			return err
		}
	}
	out := &RowChunk{Where: Where{File: c.indptr.Name, Unit: "row"}}
	err = eachInts(ctx, c.indptr, 1, max(1, rowChunkFloats/c.dim),
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
			out.Rows = mem.Sized(out.Rows, len(ends)*c.dim)
			out.First, out.Where.First = uint64(row), row
			if err := r.rows(ctx, row, ends, out.Rows); err != nil {
				return err
			}
			if err := checkFinite(out, c.dim, c.nan); err != nil {
				return err
			}
			return fn(out)
		})
	if err == nil && r.at != uint64(c.indices.Elements()) {
		err = r.bad(c.rows, "the last entry is %d, but there are %d indices", r.at,
			c.indices.Elements())
	}
	return err
}

// csrReader is one pass over CSR arrays.
type csrReader struct {
	*csrArrays
	streams [2]*tables.Stream // indices, values
	at      uint64            // entries read
	cols    []uint64
	vals    []float32
}

func (r *csrReader) bad(row int64, format string, args ...any) error {
	return input.Wrong(fmt.Sprintf("%s row %d", r.indptr.Name, row), "", format, args...)
}

// rows fills out with the rows from first on that end at ends.
func (r *csrReader) rows(ctx context.Context, first int64, ends []uint64, out []float32) error {
	begin := r.at
	for i, end := range ends {
		if end < begin || end-begin > uint64(r.dim) || end > uint64(r.indices.Elements()) {
			return r.bad(first+int64(i), "entries %d to %d are not a row of %d columns",
				int64(begin), int64(end), r.dim)
		}
		begin = end
	}
	n := int(begin - r.at)
	clear(out)
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
	k := 0
	for i, end := range ends {
		row := out[i*r.dim : (i+1)*r.dim]
		for ; r.at < end; r.at, k = r.at+1, k+1 {
			if r.cols[k] >= uint64(r.dim) {
				return r.bad(first+int64(i), "column %d is out of range, there are %d",
					int64(r.cols[k]), r.dim)
			}
			row[r.cols[k]] += r.vals[k]
		}
	}
	return nil
}
