package columnfile

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/rowfile"
)

// Features reads the values of columns that stand in rows of features. It keeps the rows that were
// read last, up to 8192 and 16 MiB, so that several columns which are read together, some rows at a
// time, read each row once. Any goroutine may use it; one reads at a time.
type Features struct {
	store  *layout.Store
	dev    blockdev.Device
	budget *mem.Budget
	mu     struct {
		sync.Mutex
		rows  *rowfile.Reader // nil until a column asks
		held  mem.Account
		first uint64    // the first row of x
		x     []float32 // rows
	}
}

const (
	// RowsTogether is how many rows of several columns are read in turn so that their features are
	// read once, if these take up to windowBytes.
	RowsTogether = rowsMost
	// windowBytes bounds the rows that are kept.
	windowBytes = 16 << 20
	// windowLeast is how many rows must be asked for so that more are read ahead.
	windowLeast = 1024
)

// NewFeatures returns the features of a store, which are opened when they are first asked for. The
// caller calls Close, behind that of all columns.
func NewFeatures(s *layout.Store, dev blockdev.Device, budget *mem.Budget) *Features {
	f := &Features{store: s, dev: dev, budget: budget}
	f.mu.held = mem.NewAccount(budget, "features of columns")
	return f
}

// Open opens a column as Open does, of which several that are read together share the features.
func (f *Features) Open(ctx context.Context, m kv.TableColumn) (*Reader, error) {
	r, err := openFrom(ctx, f.store.OfColumns(m.Path), f.dev, m.Path, f.budget, f)
	return r.described(m, err)
}

// Close frees the memory and closes the file.
func (f *Features) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.held.Release()
	f.mu.x = nil
	if f.mu.rows == nil {
		return nil
	}
	return f.mu.rows.Close()
}

// values writes the values of a column from a row of its table on.
func (f *Features) values(ctx context.Context, at kv.FeatureAt, row uint64, out []float64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.openLocked(ctx, at); err != nil {
		return err
	}
	dim := f.mu.rows.Meta().Dim
	for node := at.First + row; len(out) > 0; {
		have := uint64(len(f.mu.x) / dim)
		if node < f.mu.first || node >= f.mu.first+have {
			if err := f.loadLocked(ctx, at, node, len(out)); err != nil {
				return err
			}
			continue
		}
		n := min(len(out), int(f.mu.first+have-node))
		x := f.mu.x[int(node-f.mu.first)*dim+at.Column:]
		for i := range out[:n] {
			out[i] = float64(x[i*dim])
		}
		out, node = out[n:], node+uint64(n)
	}
	return nil
}

// openLocked opens the features.
func (f *Features) openLocked(ctx context.Context, at kv.FeatureAt) (err error) {
	if f.mu.rows == nil {
		all := f.store.Meta().Features
		i := slices.IndexFunc(all, func(m kv.RowsMeta) bool { return m.Path == at.Path })
		if i < 0 {
			return fmt.Errorf("layout: a column has its values in %s, which the store does not "+
				"have: ingest it anew", at.Path)
		}
		if f.mu.rows, err = rowfile.Open(ctx, f.store, f.dev, all[i], f.budget); err != nil {
			return err
		}
	}
	if m := f.mu.rows.Meta(); m.Path != at.Path || m.DType != rowfile.F32 || at.Column >= m.Dim {
		return fmt.Errorf("layout: value %d of rows of %s, but %s has %d of %s: %w", at.Column,
			at.Path, m.Path, m.Dim, m.DType, layout.ErrCorrupt)
	}
	return nil
}

// loadLocked reads rows from a node on: of a scan all of the window that it is in.
func (f *Features) loadLocked(ctx context.Context, at kv.FeatureAt, node uint64, n int) error {
	dim, window := f.mu.rows.Meta().Dim, uint64(RowsTogether)
	for ; 4*window*uint64(dim) > windowBytes && window > 1; window /= 2 {
	}
	first, rows := node, min(uint64(n), window)
	if n >= min(windowLeast, int(window)) {
		first, rows = node-(node-at.First)%window, window
	}
	nodes := f.store.Meta().Nodes
	if node >= nodes {
		return fmt.Errorf("layout: node %d of %s: it has %d: %w", node, at.Path, nodes,
			layout.ErrCorrupt)
	}
	rows = min(rows, nodes-first)
	x := mem.Resized(f.mu.x, int(rows)*dim)
	f.mu.x = x[:0]
	if err := f.mu.held.AtLeast(4 * int64(cap(x))); err != nil {
		return err
	}
	if err := f.mu.rows.Scan(ctx, layout.NodeID(first), int(rows), x); err != nil {
		return err
	}
	f.mu.first, f.mu.x = first, x
	return nil
}

// asFeature says that the values of a block equal the feature; it stands where other blocks have a
// power of ten.
const asFeature = math.MaxUint8

// sharedMost bounds the numbers that, divided by a power of ten, are found again from a float32
// next to them: the difference times the power is below a half.
const sharedMost = 1 << 22

// shared returns how the rows of a block follow from a feature that was read from the same source,
// and whether they do.
func shared(v *Values) (how byte, ok bool) {
	rows := v.Floats[:v.Rows]
	if !slices.ContainsFunc(rows, func(x float64) bool {
		return x != float64(float32(x)) || math.IsInf(x, 0)
	}) {
		return asFeature, true
	}
	for digits, power := range powers {
		if !slices.ContainsFunc(rows, func(x float64) bool {
			k := math.RoundToEven(x * power)
			return !(math.Abs(k) <= sharedMost) || k/power != x
		}) {
			return byte(digits), true
		}
	}
	return 0, false
}

// sharedError is an error of the features, not of the column.
type sharedError struct{ error }

// Unwrap returns the error of the features.
func (e sharedError) Unwrap() error { return e.error }
