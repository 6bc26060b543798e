package rowfile

import (
	"errors"
	"fmt"

	"gdb/internal/codec"
	"gdb/kv"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Spec says what a file of rows holds.
type Spec struct {
	UUID  kv.UUID
	Name  string
	Path  string // relative to the store, for the metadata: "features/NAME.rows"
	DType string
	Dim   int
	Nodes uint64
	Words int // of a row, if DType is Sparse
	// First and Dims are the first node and the width of each type of nodes, if these differ: see
	// NewSectionsMeta. Dim is not read then.
	First []uint64
	Dims  []int
}

// Writer writes rows in node order. It takes a page and two write buffers of 1 MiB.
type Writer struct {
	shape Shape
	rows  *layout.FileWriter
	sums  *layout.PageWriter
	seed  uint32
	added uint64
	page  []byte // rows so far of the page being filled
	row   []byte
}

// NewWriter creates PREFIX.rows and PREFIX.crc. The caller calls Finish or Abort.
func NewWriter(fs vfs.FS, prefix string, spec Spec) (*Writer, error) {
	m, err := NewMeta(spec.Name, spec.Path, spec.DType, spec.Dim)
	if spec.DType == Sparse {
		m, err = NewSparseMeta(spec.Name, spec.Path, spec.Dim, spec.Words)
	}
	if spec.Dims != nil {
		m, err = NewSectionsMeta(spec.Name, spec.Path, spec.DType, spec.First, spec.Dims)
	}
	if err != nil {
		return nil, fmt.Errorf("layout: write %s: %w", prefix, err)
	}
	w := &Writer{seed: layout.SumSeed(layout.KindRows, spec.UUID),
		page: make([]byte, 0, m.PageBytes)}
	if w.shape, err = NewShape(m, spec.Nodes); err != nil {
		return nil, fmt.Errorf("layout: write %s: %w", prefix, err)
	}
	h := codec.Header{Kind: layout.KindRows, UUID: spec.UUID, Fields: w.shape.fields()}
	if w.rows, err = layout.CreateFile(fs, prefix+".rows"); err == nil {
		err = w.rows.Write(h.Encode())
	}
	if err == nil {
		h.Kind = layout.KindSums
		w.sums, err = layout.CreatePages(fs, prefix+".crc", h)
	}
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

// Add appends one row, encoded as DType: RowBytes bytes, or those of its section.
func (w *Writer) Add(row []byte) error {
	if w.added == w.shape.Nodes {
		return fmt.Errorf("layout: write %s: more than the %d rows announced", w.rows.Path,
			w.added)
	}
	if want := w.shape.width(w.added); int64(len(row)) != want {
		return fmt.Errorf("layout: write %s: row %d has %d bytes, want %d", w.rows.Path, w.added,
			len(row), want)
	}
	w.page = append(w.page, row...)
	last := w.shape.run(w.added, 2) == 1 // of its page
	w.added++
	if last && len(w.page) > 0 {
		return w.endPage()
	}
	return nil
}

// AddF32 appends one row, converted to DType: to the nearest values, ties to even. A value that is
// too large for the type is an error. Of sparse rows, the values are their words.
func (w *Writer) AddF32(row []float32) error {
	var err error
	if w.row, err = encodeRow(w.row[:0], w.shape.DType, row); err != nil {
		return fmt.Errorf("layout: write %s: row %d: %w", w.rows.Path, w.added, err)
	}
	return w.Add(w.row)
}

func (w *Writer) endPage() error {
	n := len(w.page)
	w.page = w.page[:w.shape.PageBytes]
	clear(w.page[n:])
	for i := 0; i < len(w.page); i += w.shape.SumBytes {
		if err := w.sums.Add(UnitSum(w.seed, w.page[i:i+w.shape.SumBytes])); err != nil {
			return err
		}
	}
	err := w.rows.Write(w.page)
	w.page = w.page[:0]
	return err
}

// Finish writes the last page and the checksums, syncs both files, and returns the metadata and
// file records.
func (w *Writer) Finish() (kv.RowsMeta, []kv.FileMeta, error) {
	m := w.shape.RowsMeta
	var err error
	if w.added != w.shape.Nodes {
		err = fmt.Errorf("layout: write %s: %d rows, %d were announced", w.rows.Path, w.added,
			w.shape.Nodes)
	}
	if err == nil && len(w.page) > 0 {
		err = w.endPage()
	}
	if err != nil {
		return m, nil, errors.Join(err, w.Abort())
	}
	rows, err := w.rows.Finish(m.Path, layout.KindRows)
	if err != nil {
		return m, nil, errors.Join(err, w.Abort())
	}
	sums, err := w.sums.FinishPages(layout.SumsPath(m.Path))
	return m, []kv.FileMeta{rows, sums}, err
}

// Abort closes the files without finishing them.
func (w *Writer) Abort() error {
	var err error
	if w.rows != nil {
		err = w.rows.Abort()
	}
	if w.sums != nil {
		err = errors.Join(err, w.sums.Abort())
	}
	return err
}
