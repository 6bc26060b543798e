package nearest

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/rowfile"
	"gdb/train/ivf"
	"gdb/train/link/triples"
	"gdb/train/runs/vectors"
)

// source is where vectors are read.
type source interface {
	// shape returns the number of nodes, and of columns.
	shape() (count, dim int)
	// closeness returns the way to compare that fits.
	closeness() string
	// tag tells the vectors from those that have the same name at another time.
	tag() string
	// node reads the vector of a node, whose checksum an index may have.
	node(ctx context.Context, x *ivf.Index, node uint32, to []float32) error
	// gather reads the vectors of nodes, whose checksums are in sums.
	gather(ctx context.Context, nodes, sums []uint32, to []float32) error
	// each calls fn with the vectors of all nodes in order, about n at a time.
	each(ctx context.Context, n int, fn func(first int, rows []float32) error) error
	Close() error
}

// UsageError says that there are no such vectors.
type UsageError struct{ error }

func openSource(ctx context.Context, st *layout.Store, dev blockdev.Device, of triples.VectorsOf,
	budget *mem.Budget) (source, error) {
	if of.Run != "" {
		rows, err := vectors.OpenRows(st, of.Run)
		if err != nil {
			return nil, err
		}
		return &learned{rows, st, dev, budget}, nil
	}
	m, err := featuresOf(st.Meta(), of.Features)
	if err != nil {
		return nil, &UsageError{err}
	}
	rows, err := rowfile.Open(ctx, st, dev, m, budget)
	if err != nil {
		return nil, err
	}
	return &features{rows, m, st.Meta()}, nil
}

// featuresOf finds features whose rows can be compared.
func featuresOf(meta *kv.Meta, name string) (kv.RowsMeta, error) {
	var names []string
	for _, m := range meta.Features {
		names = append(names, m.Name)
		switch {
		case m.Name != name:
		case m.DType == rowfile.Sparse:
			return m, fmt.Errorf("features %s are sparse: their rows are not compared", name)
		case len(m.Sections) > 0:
			return m, fmt.Errorf("features %s have another width for each type of nodes: their "+
				"rows are not compared", name)
		default:
			return m, nil
		}
	}
	if len(names) == 0 {
		return kv.RowsMeta{}, errors.New("this store holds no features")
	}
	return kv.RowsMeta{}, fmt.Errorf("no features %s, but %v", name, names)
}

// features are rows of features. Their file has checksums of single ones.
type features struct {
	*rowfile.Reader
	m    kv.RowsMeta
	meta *kv.Meta
}

func (f *features) shape() (count, dim int) { return int(f.meta.Nodes), f.m.Dim }

func (f *features) closeness() string { return ivf.Cosine }

func (f *features) tag() string { return "features " + f.m.Name }

func (f *features) node(ctx context.Context, _ *ivf.Index, node uint32, to []float32) error {
	return f.gather(ctx, []uint32{node}, nil, to)
}

func (f *features) gather(ctx context.Context, nodes, _ []uint32, to []float32) error {
	ids := make([]layout.NodeID, len(nodes))
	for i, n := range nodes {
		ids[i] = layout.NodeID(n)
	}
	return f.Gather(ctx, ids, nil, to)
}

func (f *features) each(ctx context.Context, n int,
	fn func(first int, rows []float32) error) error {
	count, dim := f.shape()
	buf := make([]float32, min(n, count)*dim)
	for first := 0; first < count; first += n {
		part := buf[:min(n, count-first)*dim]
		if err := f.Scan(ctx, layout.NodeID(first), len(part)/dim, part); err != nil {
			return err
		}
		if err := fn(first, part); err != nil {
			return err
		}
	}
	return nil
}

// learned are vectors of a run.
type learned struct {
	*vectors.Rows
	store  *layout.Store
	dev    blockdev.Device
	budget *mem.Budget
}

func (l *learned) shape() (count, dim int) { return l.Count, l.Dim }

func (l *learned) closeness() string {
	if l.Distance {
		return ivf.Euclid
	}
	return ivf.Cosine
}

func (l *learned) tag() string { return l.Tag }

func (l *learned) node(ctx context.Context, x *ivf.Index, node uint32, to []float32) error {
	if err := l.Node(node, to); err != nil || x == nil {
		return err
	}
	sum, found, err := x.Sum(ctx, node, to)
	if err == nil && !found {
		err = fmt.Errorf("run %s: the vector of node %d is in no list near it: %w", l.Run, node,
			layout.ErrCorrupt)
	}
	if err != nil {
		return err
	}
	return l.Gather(ctx, []uint32{node}, []uint32{sum}, to)
}

func (l *learned) gather(ctx context.Context, nodes, sums []uint32, to []float32) error {
	return l.Gather(ctx, nodes, sums, to)
}

// each reads all vectors of the checkpoint once more before, to check them.
func (l *learned) each(ctx context.Context, _ int,
	fn func(first int, rows []float32) error) (err error) {
	v, err := vectors.Open(ctx, l.store, l.dev, l.Run, l.budget, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	return v.Each(ctx, fn)
}
