package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// rowChunkBytes bounds the feature values of a chunk.
const rowChunkBytes = 4 << 20

// Features streams the rows of a feature array.
func (s *arrays) Features(ctx context.Context, name string, fn func(*RowChunk) error) error {
	prefix, ok := s.features[name]
	if !ok {
		return fmt.Errorf("ingest: features %q: there are none of this name", name)
	}
	var info FeatureInfo
	for _, f := range s.info.Features {
		if f.Name == name {
			info = f
		}
	}
	c := &RowChunk{Where: Where{File: prefix, Unit: "row"}}
	read, done, err := s.openRows(prefix, info)
	if err != nil {
		return err
	}
	step := uint64(max(1, rowChunkBytes/(4*info.Dim)))
	for first := uint64(0); first < info.Rows && err == nil; first += step {
		n := min(info.Rows-first, step)
		c.First, c.Where.First = first, int64(first)
		c.Rows = grow(c.Rows, int(n)*info.Dim)
		if err = ctx.Err(); err == nil {
			err = read(first, c.Rows)
		}
		if err == nil && !s.opt.AllowNaN {
			err = checkFinite(c, info.Dim)
		}
		if err == nil {
			err = fn(c)
		}
	}
	return errors.Join(err, done())
}

// checkFinite refuses NaN and infinite features.
func checkFinite(c *RowChunk, dim int) error {
	for i, v := range c.Rows {
		if v-v != 0 {
			return &BadInputError{Where: c.Position(i / dim),
				What: fmt.Sprintf("feature %d is %v", i%dim, v), Do: "mend it, or pass --allow-nan"}
		}
	}
	return nil
}

// openRows returns a function that fills whole rows from the row first on, called in order.
func (s *arrays) openRows(prefix string, info FeatureInfo) (
	read func(first uint64, out []float32) error, done func() error, err error) {
	if !info.Sparse {
		a, err := openArray(s.fs, prefix, 0)
		if err != nil {
			return nil, nil, err
		}
		return func(_ uint64, out []float32) error { return a.floats(out) }, a.Close, nil
	}
	r := &sparseRows{dim: info.Dim}
	for _, part := range []struct {
		name string
		a    **array
	}{{"_indptr", &r.ptr}, {"_indices", &r.idx}, {"_values", &r.val}} {
		if *part.a, err = openArray(s.fs, prefix+part.name+".npy", 0); err != nil {
			return nil, nil, errors.Join(err, r.close())
		}
	}
	return r.read, r.close, nil
}

// sparseRows makes rows dense from CSR arrays: the entries of row i are those from indptr[i] to
// indptr[i+1].
type sparseRows struct {
	dim           int
	ptr, idx, val *array
	last          int64 // end of the previous row
	began         bool
	ends          []int64
	cols          []int64
	vals          []float32
}

func (r *sparseRows) close() error {
	var errs []error
	for _, a := range []*array{r.ptr, r.idx, r.val} {
		if a != nil {
			errs = append(errs, a.Close())
		}
	}
	return errors.Join(errs...)
}

func (r *sparseRows) read(first uint64, out []float32) error {
	if !r.began {
		start := make([]int64, 1)
		if err := r.ptr.ints(start); err != nil {
			return err
		}
		r.began, r.last = true, start[0]
	}
	clear(out)
	r.ends = grow(r.ends, len(out)/r.dim)
	if err := r.ptr.ints(r.ends); err != nil {
		return err
	}
	for i, end := range r.ends {
		n := end - r.last
		if n < 0 || n > int64(r.dim) || uint64(end) > r.idx.Count() {
			return &BadInputError{Where: fmt.Sprintf("%s row %d", r.ptr.path, first+uint64(i)),
				What: fmt.Sprintf("entries %d to %d make no row", r.last, end)}
		}
		r.last = end
		if err := r.row(first+uint64(i), int(n), out[i*r.dim:(i+1)*r.dim]); err != nil {
			return err
		}
	}
	return nil
}

func (r *sparseRows) row(row uint64, n int, out []float32) error {
	r.cols, r.vals = grow(r.cols, n), grow(r.vals, n)
	if err := errors.Join(r.idx.ints(r.cols), r.val.floats(r.vals)); err != nil {
		return err
	}
	for k, c := range r.cols {
		if c < 0 || c >= int64(r.dim) {
			return &BadInputError{Where: fmt.Sprintf("%s row %d", r.idx.path, row),
				What: fmt.Sprintf("column %d is out of range: there are %d", c, r.dim)}
		}
		out[c] += r.vals[k]
	}
	return nil
}

// Labels streams the labels.
func (s *arrays) Labels(ctx context.Context, fn func(*LabelChunk) error) (err error) {
	if s.info.Labels == nil {
		return nil
	}
	file := s.labels
	if file == "" {
		file = s.coo
	}
	a, err := openArray(s.fs, file, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	c := &LabelChunk{Where: Where{File: file, Unit: "row"}}
	cols := int(a.Cols())
	step := uint64(max(1, chunkRows/cols))
	for first := uint64(0); first < a.Rows(); first += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := int(min(a.Rows()-first, step))
		c.First, c.Where.First = first, int64(first)
		if err := s.labelChunk(a, c, n, cols); err != nil {
			return err
		}
		if err := fn(c); err != nil {
			return err
		}
	}
	return nil
}

func (s *arrays) labelChunk(a *array, c *LabelChunk, n, cols int) error {
	switch {
	case s.labels == "":
		return cooChunk(a, c, n)
	case cols > 1:
		return multiHotChunk(a, c, n, cols)
	case s.info.Labels.Kind == "target":
		c.Target = grow(c.Target, n)
		return a.floats(c.Target)
	case a.Kind() == 'f':
		vals := make([]float32, n)
		if err := a.floats(vals); err != nil {
			return err
		}
		c.Class = grow(c.Class, n)
		for i, v := range vals {
			c.Class[i] = Unlabeled
			if v != v {
				continue
			}
			if v != float32(math.Trunc(float64(v))) {
				return &BadInputError{Where: c.Position(i), What: fmt.Sprintf("class %v", v),
					Do: "classes are whole numbers"}
			}
			c.Class[i] = int64(v)
		}
	default:
		c.Class = grow(c.Class, n)
		if err := a.ints(c.Class); err != nil {
			return err
		}
	}
	return checkClasses(c)
}

func checkClasses(c *LabelChunk) error {
	for i, v := range c.Class {
		if v < Unlabeled {
			return &BadInputError{Where: c.Position(i), What: fmt.Sprintf("class %d", v),
				Do: "classes are 0 or more, -1 is unlabeled"}
		}
	}
	return nil
}

// cooChunk reads pairs of node and label.
func cooChunk(a *array, c *LabelChunk, n int) error {
	pairs := make([]int64, 2*n)
	if err := a.ints(pairs); err != nil {
		return err
	}
	c.IDs = &IDChunk{Ints: make([]uint64, n), Where: c.Where}
	c.Class = grow(c.Class, n)
	for i := range n {
		node, label := pairs[2*i], pairs[2*i+1]
		if node < 0 || label < 0 {
			return &BadInputError{Where: c.Position(i),
				What: fmt.Sprintf("node %d, label %d", node, label), Do: "both are 0 or more"}
		}
		c.IDs.Ints[i], c.Class[i] = uint64(node), label
	}
	return nil
}

// multiHotChunk turns rows of 0 and 1 to pairs; a row with a negative number or NaN is unlabeled.
func multiHotChunk(a *array, c *LabelChunk, n, cols int) error {
	vals := make([]float32, n*cols)
	if err := a.floats(vals); err != nil {
		return err
	}
	c.IDs, c.Class = &IDChunk{Where: c.Where}, c.Class[:0]
	c.IDs.Lines = nil
	var lines []int64
	for i := range n {
		for label, v := range vals[i*cols : (i+1)*cols] {
			if v != v || v <= 0 {
				continue
			}
			c.IDs.Ints = append(c.IDs.Ints, c.First+uint64(i))
			c.Class = append(c.Class, int64(label))
			lines = append(lines, int64(c.First)+int64(i))
		}
	}
	c.Lines, c.IDs.Lines = lines, lines
	return nil
}

// Splits streams the members of every split.
func (s *arrays) Splits(ctx context.Context, fn func(*SplitChunk) error) error {
	if s.splits != "" {
		return s.splitColumns(ctx, fn)
	}
	for name, p := range s.members {
		if err := s.memberFile(ctx, name, p, fn); err != nil {
			return err
		}
	}
	return nil
}

// splitRole names the numbers of splits.npy.
var splitRole = []string{"", "train", "val", "test"}

// splitColumns reads splits.npy: a row of roles for each split.
func (s *arrays) splitColumns(ctx context.Context, fn func(*SplitChunk) error) (err error) {
	a, err := openArray(s.fs, s.splits, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	nodes, columns := a.Shape[len(a.Shape)-1], uint64(1)
	if len(a.Shape) == 2 {
		columns = a.Shape[0]
	}
	buf := make([]int64, chunkRows)
	for k := range columns {
		for first := uint64(0); first < nodes; first += chunkRows {
			part := buf[:min(nodes-first, chunkRows)]
			if err := errors.Join(ctx.Err(), a.ints(part)); err != nil {
				return err
			}
			if err := s.roles(part, first, k, len(a.Shape) == 2, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *arrays) roles(part []int64, first, k uint64, numbered bool,
	fn func(*SplitChunk) error) error {
	for role := 1; role < len(splitRole); role++ {
		c := SplitChunk{Name: splitRole[role]}
		if numbered {
			c.Name = fmt.Sprintf("%s@%d", c.Name, k)
		}
		c.IDs.File, c.IDs.Unit = s.splits, "row"
		for i, v := range part {
			if v < 0 || v >= int64(len(splitRole)) {
				return &BadInputError{Where: fmt.Sprintf("%s row %d column %d", s.splits, k,
					first+uint64(i)), What: fmt.Sprintf("value %d", v),
					Do: "0 unused, 1 train, 2 val, 3 test"}
			}
			if v == int64(role) {
				c.IDs.Ints = append(c.IDs.Ints, first+uint64(i))
				c.IDs.Lines = append(c.IDs.Lines, int64(first)+int64(i))
			}
		}
		if len(c.IDs.Ints) == 0 {
			continue
		}
		if err := fn(&c); err != nil {
			return err
		}
	}
	return nil
}

// memberFile reads a list of ids, or a mask.
func (s *arrays) memberFile(ctx context.Context, name, p string, fn func(*SplitChunk) error) (
	err error) {
	a, err := openArray(s.fs, p, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	buf := make([]int64, chunkRows)
	for first := uint64(0); first < a.Count(); first += chunkRows {
		part := buf[:min(a.Count()-first, chunkRows)]
		if err := errors.Join(ctx.Err(), a.ints(part)); err != nil {
			return err
		}
		c := SplitChunk{Name: name, IDs: IDChunk{Where: Where{File: p, Unit: "row"}}}
		for i, v := range part {
			row := int64(first) + int64(i)
			id := v
			if a.Kind() == 'b' {
				if v == 0 {
					continue
				}
				id = row
			}
			if id < 0 || s.info.Nodes != 0 && uint64(id) >= s.info.Nodes {
				return &BadInputError{Where: fmt.Sprintf("%s row %d", p, row),
					What: fmt.Sprintf("node %d is out of range: there are %d nodes", id,
						s.info.Nodes)}
			}
			c.IDs.Ints = append(c.IDs.Ints, uint64(id))
			c.IDs.Lines = append(c.IDs.Lines, row)
		}
		if err := fn(&c); err != nil {
			return err
		}
	}
	return nil
}
