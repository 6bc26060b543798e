package exact

import (
	"context"
	"errors"
	"fmt"

	"gdb/compute/kernel/bf16"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/rowfile"
	"gdb/sample"
)

// table is a matrix with one row for each node of some set, in ascending order, read by layer-wise
// inference: the features, or the hidden states of a layer, in memory or in a file.
type table interface {
	dim() int
	// whole returns all rows if they are in memory, else nil.
	whole() []float32
	// read writes rows, given by ascending numbers, to out. (A file of rows calls them nodes.)
	read(ctx context.Context, rows []sample.NodeID, out []float32) error
	// scan writes n rows from first on to out.
	scan(ctx context.Context, first sample.NodeID, n int, out []float32) error
	Close() error
}

// inWindows is a table in memory that is read as one in a file is.
type inWindows struct{ table }

func (t inWindows) whole() []float32 { return nil }

// memoryTable holds all rows in memory, of its own or of another owner.
type memoryTable struct {
	width int
	rows  []float32
	arena *mem.Arena // nil if the memory has another owner
}

func (t *memoryTable) dim() int { return t.width }

func (t *memoryTable) whole() []float32 { return t.rows }

func (t *memoryTable) read(ctx context.Context, nodes []sample.NodeID, out []float32) error {
	for i, v := range nodes {
		copy(out[i*t.width:(i+1)*t.width], t.rows[int(v)*t.width:])
	}
	return ctx.Err()
}

func (t *memoryTable) scan(ctx context.Context, first sample.NodeID, n int, out []float32) error {
	copy(out[:n*t.width], t.rows[int(first)*t.width:])
	return ctx.Err()
}

// Close frees the arena.
func (t *memoryTable) Close() error {
	if t.arena == nil {
		return nil
	}
	return t.arena.Free()
}

// fileTable reads rows from a file of the store.
type fileTable struct {
	rows *rowfile.Reader
	drop func() error // closes and removes the file; nil if it has another owner
}

func (t *fileTable) dim() int { return t.rows.Meta().Dim }

func (t *fileTable) whole() []float32 { return nil }

func (t *fileTable) read(ctx context.Context, nodes []sample.NodeID, out []float32) error {
	if n := len(nodes); n > 0 && int(nodes[n-1]-nodes[0]) == n-1 {
		return t.rows.Scan(ctx, nodes[0], n, out)
	}
	return t.rows.Gather(ctx, nodes, nil, out)
}

func (t *fileTable) scan(ctx context.Context, first sample.NodeID, n int, out []float32) error {
	return t.rows.Scan(ctx, first, n, out)
}

// Close removes a file that was made for inference.
func (t *fileTable) Close() error {
	if t.drop == nil {
		return nil
	}
	return t.drop()
}

// tableWriter makes a table from rows that are added in the order of nodes.
type tableWriter struct {
	f     *Inference
	count int // rows in all
	width int
	next  int  // floats written
	half  bool // rows are rounded to bfloat16

	mem  *memoryTable
	file *rowfile.Writer
	path []string // of the file, without its extension
}

// tableIn starts a table of the given number of rows and columns. It is in memory if the budget has
// room for it with keep bytes to spare, else in a file of the directory f.Dir of the store.
func (f *Inference) tableIn(name string, rows, width int, keep int64) (*tableWriter, error) {
	w := &tableWriter{f: f, count: rows, width: width, path: []string{f.Dir, name}}
	size := int64(rows) * int64(width) * 4
	if size+keep <= f.room() {
		a, err := mem.NewArena(f.Source.Budget, "hidden states", size)
		if err != nil {
			return nil, err
		}
		rows := mem.View[float32](a.Bytes())
		w.mem = &memoryTable{width: width, rows: rows, arena: a}
		return w, nil
	}
	if f.Claim != nil {
		if err := f.Claim(); err != nil {
			return nil, err
		}
	}
	if err := f.Source.Store.FS().MkdirAll(f.Source.Store.Path(f.Dir), 0o755); err != nil {
		return nil, fmt.Errorf("exact: make %s: %w", f.Source.Store.Path(f.Dir), err)
	}
	var err error
	store := f.Source.Store
	w.file, err = rowfile.NewWriter(store.FS(), store.Path(f.Dir, name), rowfile.Spec{
		UUID: f.Source.Meta.UUID, Name: name, Path: f.Dir + "/" + name + ".rows", DType: "f32",
		Dim: width, Nodes: uint64(rows)})
	if err != nil {
		return nil, fmt.Errorf("exact: write hidden states: %w", err)
	}
	return w, nil
}

// room returns how many bytes of the budget are free.
func (f *Inference) room() int64 { return f.Source.Budget.Limit() - f.Source.Budget.Used() }

// add appends rows. It may change them: where w.half is set, values are rounded to bfloat16.
func (w *tableWriter) add(rows []float32) error {
	if w.half {
		bf16.Round(rows)
	}
	if w.mem != nil {
		w.next += copy(w.mem.rows[w.next:], rows)
		return nil
	}
	for ; len(rows) > 0; rows = rows[w.width:] {
		if err := w.file.AddF32(rows[:w.width]); err != nil {
			return fmt.Errorf("exact: write hidden states: %w", err)
		}
	}
	return nil
}

// finish returns the table.
func (w *tableWriter) finish(ctx context.Context) (table, error) {
	if w.mem != nil {
		return w.mem, nil
	}
	meta, _, err := w.file.Finish()
	w.file = nil
	if err != nil {
		return nil, fmt.Errorf("exact: write hidden states: %w", err)
	}
	// A file of rows has as many as its store has nodes.
	of := *w.f.Source.Meta
	of.Nodes = uint64(w.count)
	store := layout.NewStore(w.f.Source.Store.FS(), w.f.Source.Store.Path(), &of)
	rows, err := rowfile.Open(ctx, store, w.f.Source.Device, meta, w.f.Source.Budget)
	if err != nil {
		return nil, fmt.Errorf("exact: open hidden states: %w", err)
	}
	return &fileTable{rows: rows, drop: func() error {
		return errors.Join(rows.Close(), w.remove())
	}}, nil
}

// abort frees what was written. After finish it does nothing.
func (w *tableWriter) abort() error {
	if w.mem != nil {
		return w.mem.Close()
	}
	if w.file == nil {
		return nil
	}
	err := w.file.Abort()
	return errors.Join(err, w.remove())
}

func (w *tableWriter) remove() error {
	fs, prefix := w.f.Source.Store.FS(), w.f.Source.Store.Path(w.path...)
	return errors.Join(fs.Remove(prefix+".rows"), fs.Remove(prefix+".crc"))
}

// inputTable returns the table that the first layer reads.
func (f *Inference) inputTable() table {
	if f.Vectors == nil {
		return f.featureTable()
	}
	width := len(f.Vectors) / int(f.Source.Meta.Nodes)
	vectors := &memoryTable{width: width, rows: f.Vectors}
	if f.Source.Features == nil {
		return vectors
	}
	return &joinedTable{left: f.featureTable(), right: vectors}
}

// joinedTable joins the rows of two tables, left before right.
type joinedTable struct {
	left  table
	right *memoryTable
	buf   []float32 // some rows of left
}

func (t *joinedTable) dim() int { return t.left.dim() + t.right.dim() }

func (t *joinedTable) whole() []float32 { return nil }

func (t *joinedTable) read(ctx context.Context, rows []sample.NodeID, out []float32) error {
	return t.join(len(rows), out, func(at, n int, left []float32) error {
		return t.left.read(ctx, rows[at:at+n], left)
	}, func(i int) int { return int(rows[i]) })
}

func (t *joinedTable) scan(ctx context.Context, first sample.NodeID, n int, out []float32) error {
	return t.join(n, out, func(at, n int, left []float32) error {
		return t.left.scan(ctx, first+sample.NodeID(at), n, left)
	}, func(i int) int { return int(first) + i })
}

// join writes n joined rows to out. read reads n rows of left, from the at-th on, and row returns
// the number of the i-th row.
func (t *joinedTable) join(n int, out []float32, read func(at, n int, left []float32) error,
	row func(i int) int) error {
	const bufFloats = 1 << 18
	l, r := t.left.dim(), t.right.dim()
	if t.buf == nil {
		t.buf = make([]float32, max(1, bufFloats/l)*l)
	}
	for at := 0; at < n; at += len(t.buf) / l {
		part := min(n-at, len(t.buf)/l)
		if err := read(at, part, t.buf[:part*l]); err != nil {
			return err
		}
		for i := range part {
			to := out[(at+i)*(l+r) : (at+i+1)*(l+r)]
			copy(to, t.buf[i*l:(i+1)*l])
			copy(to[l:], t.right.rows[row(at+i)*r:(row(at+i)+1)*r])
		}
	}
	return nil
}

// Close closes both tables.
func (t *joinedTable) Close() error { return errors.Join(t.left.Close(), t.right.Close()) }

// featureTable returns the table of the features, with unpacked values.
func (f *Inference) featureTable() table {
	if r := f.Source.Rows; r != nil && r.Packed() {
		return &packedTable{table: f.featuresAsKept(), width: f.Source.Rows.Width()}
	}
	return f.featuresAsKept()
}

// featuresAsKept returns the table of the features as they are stored, packed or not. Where pieces
// of rows are in memory, whole rows are read from the file.
func (f *Inference) featuresAsKept() table {
	if r := f.Source.Resident; r != nil && f.Source.Split == nil {
		return &memoryTable{width: r.Dim(), rows: r.Table()}
	}
	return &fileTable{rows: f.Source.WholeRows()}
}

// packedTable is a table whose rows are bfloat16 values, packed as rowfile.Reader.Pack describes.
type packedTable struct {
	table
	width int       // number of values in a row
	buf   []float32 // some packed rows
}

func (t *packedTable) dim() int { return t.width }

// whole returns the packed rows if operations can read them. They cannot read rows of an odd width,
// which have gaps.
func (t *packedTable) whole() []float32 {
	if t.width%2 != 0 {
		return nil
	}
	return t.table.whole()
}

// isPacked reports whether the whole method of a table returns packed rows.
func isPacked(t table) bool {
	_, ok := t.(*packedTable)
	return ok
}

func (t *packedTable) read(ctx context.Context, rows []sample.NodeID, out []float32) error {
	return t.unpack(len(rows), out, func(at int, packed []float32, n int) error {
		return t.table.read(ctx, rows[at:at+n], packed)
	})
}

func (t *packedTable) scan(ctx context.Context, first sample.NodeID, n int, out []float32) error {
	return t.unpack(n, out, func(at int, packed []float32, n int) error {
		return t.table.scan(ctx, first+sample.NodeID(at), n, packed)
	})
}

// unpack writes the values of n rows to out; read reads n packed rows, from the at-th on.
func (t *packedTable) unpack(n int, out []float32,
	read func(at int, packed []float32, n int) error) error {
	const bufFloats = 1 << 18
	words := t.table.dim()
	if t.buf == nil {
		t.buf = make([]float32, max(1, bufFloats/words)*words)
	}
	for at := 0; at < n; at += len(t.buf) / words {
		part := min(n-at, len(t.buf)/words)
		if err := read(at, t.buf[:part*words], part); err != nil {
			return err
		}
		rowfile.Unpack(out[at*t.width:(at+part)*t.width], t.buf, t.width)
	}
	return nil
}
