package source

import (
	"context"
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
	return notFinite(c.Position(i/dim), i%dim, c.Rows[i])
}

// notFinite refuses a value.
func notFinite(where string, column int, value float32) error {
	return input.Wrong(where, "mend it, or allow it with --allow-nan", "feature %d is %v", column,
		value)
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
