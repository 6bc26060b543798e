package ingest

import (
	"context"
	"errors"
	"fmt"
	"path"
)

// edgeLayout is how edges.npy holds its pairs: rows (src, dst[, type]), or with columns one row of
// all sources, one of all destinations.
type edgeLayout struct {
	edges   uint64
	cols    int
	columns bool // (2,E) in C order
}

func (s *arrays) edgeLayout() (edgeLayout, error) {
	h, err := s.header(s.edges)
	if err != nil {
		return edgeLayout{}, err
	}
	bad := func(what, do string) (edgeLayout, error) {
		return edgeLayout{}, &BadInputError{Where: s.edges, What: what, Do: do}
	}
	if h.Kind() != 'i' && h.Kind() != 'u' {
		return bad(fmt.Sprintf("values are %s, want integers", h.Descr), "node ids are integers")
	}
	if len(h.Shape) != 2 {
		return bad(fmt.Sprintf("shape %v", h.Shape), "edges are (E,2), (2,E) or (E,3)")
	}
	rows, cols := h.Shape[0], h.Shape[1]
	if h.Fortran {
		rows, cols = cols, rows
	}
	typed := path.Base(s.edges) == "edges_typed.npy"
	switch {
	case rows == 2 && cols == 2 || rows == 2 && cols == 3 && typed:
		return bad(fmt.Sprintf("shape %v can be read in two ways", h.Shape),
			"give src.npy and dst.npy instead")
	case cols == 2, cols == 3 && (typed || rows != 2):
		// A Fortran (E,2) lies on disk as (2,E) does, and the other way around.
		return edgeLayout{edges: rows, cols: int(cols), columns: false}, nil
	case rows == 2:
		return edgeLayout{edges: cols, cols: 2, columns: true}, nil
	}
	return bad(fmt.Sprintf("shape %v", h.Shape), "edges are (E,2), (2,E) or (E,3)")
}

// Edges streams the edges.
func (s *arrays) Edges(ctx context.Context, fn func(*EdgeChunk) error) (err error) {
	e := &edgeReader{s: s}
	if err := e.open(); err != nil {
		return errors.Join(err, e.close())
	}
	defer func() { err = errors.Join(err, e.close()) }()
	for first := uint64(0); first < s.info.Edges; first += chunkRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := e.read(first, int(min(s.info.Edges-first, chunkRows))); err != nil {
			return err
		}
		if err := fn(&e.chunk); err != nil {
			return err
		}
	}
	return nil
}

// edgeReader holds the open files of one pass over the edges: pairs, or two columns.
type edgeReader struct {
	s             *arrays
	pairs         *array
	cols          int
	src, dst      *array
	weight, times *array
	chunk         EdgeChunk
	buf           []int64
}

func (e *edgeReader) open() (err error) {
	s := e.s
	file := s.src
	if s.edges == "" {
		if e.src, err = openArray(s.fs, s.src, 0); err == nil {
			e.dst, err = openArray(s.fs, s.dst, 0)
		}
	} else {
		file = s.edges
		var l edgeLayout
		if l, err = s.edgeLayoutQuiet(); err != nil {
			return err
		}
		e.cols = l.cols
		if l.columns {
			if e.src, err = openArray(s.fs, s.edges, 0); err == nil {
				e.dst, err = openArray(s.fs, s.edges, l.edges)
			}
		} else {
			e.pairs, err = openArray(s.fs, s.edges, 0)
		}
	}
	if err == nil && s.weights != "" {
		e.weight, err = openArray(s.fs, s.weights, 0)
	}
	if err == nil && s.times != "" {
		e.times, err = openArray(s.fs, s.times, 0)
	}
	e.chunk.File, e.chunk.Unit = file, "row"
	return err
}

// edgeLayoutQuiet is edgeLayout without counting the file again.
func (s *arrays) edgeLayoutQuiet() (edgeLayout, error) {
	paths, size := s.info.Paths, s.info.Bytes
	l, err := s.edgeLayout()
	s.info.Paths, s.info.Bytes = paths, size
	return l, err
}

func (e *edgeReader) close() error {
	var errs []error
	for _, a := range []*array{e.pairs, e.src, e.dst, e.weight, e.times} {
		if a != nil {
			errs = append(errs, a.Close())
		}
	}
	return errors.Join(errs...)
}

func (e *edgeReader) read(first uint64, n int) error {
	c := &e.chunk
	c.First = int64(first)
	c.SrcInt, c.DstInt = grow(c.SrcInt, n), grow(c.DstInt, n)
	if err := e.readIDs(n); err != nil {
		return err
	}
	if e.weight != nil {
		c.Weight = grow(c.Weight, n)
		if err := e.weight.floats(c.Weight); err != nil {
			return err
		}
	}
	if e.times != nil {
		c.Time = grow(c.Time, n)
		return e.times.ints(c.Time)
	}
	return nil
}

func (e *edgeReader) readIDs(n int) error {
	c := &e.chunk
	if e.pairs == nil {
		for _, side := range []struct {
			a    *array
			out  []uint64
			name string
		}{{e.src, c.SrcInt, "source"}, {e.dst, c.DstInt, "destination"}} {
			e.buf = grow(e.buf, n)
			if err := side.a.ints(e.buf); err != nil {
				return err
			}
			for i, v := range e.buf {
				if err := e.id(&side.out[i], v, i, side.name); err != nil {
					return err
				}
			}
		}
		return nil
	}
	e.buf = grow(e.buf, n*e.cols)
	if err := e.pairs.ints(e.buf); err != nil {
		return err
	}
	if e.cols == 3 {
		c.TypeInt = grow(c.TypeInt, n)
	}
	for i := range n {
		row := e.buf[i*e.cols : (i+1)*e.cols]
		if err := e.id(&c.SrcInt[i], row[0], i, "source"); err != nil {
			return err
		}
		if err := e.id(&c.DstInt[i], row[1], i, "destination"); err != nil {
			return err
		}
		if e.cols == 3 {
			if row[2] < 0 || row[2] > 65535 {
				return &BadInputError{Where: c.Position(i),
					What: fmt.Sprintf("edge type %d", row[2]), Do: "types are 0 to 65535"}
			}
			c.TypeInt[i] = uint32(row[2])
		}
	}
	return nil
}

// id checks one node id and stores it.
func (e *edgeReader) id(out *uint64, v int64, i int, side string) error {
	*out = uint64(v)
	nodes := e.s.info.Nodes
	if v >= 0 && (nodes == 0 || uint64(v) < nodes) {
		return nil
	}
	what := fmt.Sprintf("%s %d is negative", side, v)
	if v >= 0 {
		what = fmt.Sprintf("%s %d is out of range: there are %d nodes", side, v, nodes)
	}
	return &BadInputError{Where: e.chunk.Position(i), What: what,
		Do: "ids are row numbers of the arrays, from 0"}
}

// grow returns a slice of n elements, reusing s.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
