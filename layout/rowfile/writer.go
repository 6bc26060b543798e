package rowfile

import (
	"encoding/binary"
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
}

// Writer writes rows in node order. It takes a page and two write buffers of 1 MiB.
type Writer struct {
	shape Shape
	uuid  kv.UUID
	rows  *layout.FileWriter
	sums  *layout.FileWriter
	seed  uint32
	added uint64

	page    []byte // rows so far of the page being filled
	sumPage []byte
	pages   uint64 // number of pages of checksums
	row     []byte
}

// NewWriter creates PREFIX.rows and PREFIX.crc. The caller calls Finish or Abort.
func NewWriter(fs vfs.FS, prefix string, spec Spec) (*Writer, error) {
	m, err := NewMeta(spec.Name, spec.Path, spec.DType, spec.Dim)
	if err != nil {
		return nil, fmt.Errorf("layout: write %s: %w", prefix, err)
	}
	w := &Writer{uuid: spec.UUID, seed: layout.SumSeed(layout.KindRows, spec.UUID),
		page: make([]byte, 0, m.PageBytes), sumPage: make([]byte, 4, layout.PageBytes)}
	if w.shape, err = NewShape(m, spec.Nodes); err != nil {
		return nil, fmt.Errorf("layout: write %s: %w", prefix, err)
	}
	if w.rows, err = layout.CreateFile(fs, prefix+".rows"); err == nil {
		w.sums, err = layout.CreateFile(fs, prefix+".crc")
	}
	if err == nil {
		err = errors.Join(w.header(w.rows, layout.KindRows), w.header(w.sums, layout.KindSums))
	}
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

func (w *Writer) header(f *layout.FileWriter, kind string) error {
	return f.Write(codec.Header{Kind: kind, UUID: w.uuid, Fields: w.shape.fields()}.Encode())
}

// Add appends one row of RowBytes bytes, encoded as DType.
func (w *Writer) Add(row []byte) error {
	if len(row) != w.shape.RowBytes {
		return fmt.Errorf("layout: write %s: row %d has %d bytes, want %d", w.rows.Path, w.added,
			len(row), w.shape.RowBytes)
	}
	if w.added == w.shape.Nodes {
		return fmt.Errorf("layout: write %s: more than the %d rows announced", w.rows.Path,
			w.added)
	}
	w.page = append(w.page, row...)
	w.added++
	if w.added%uint64(w.shape.PerPage) == 0 {
		return w.endPage()
	}
	return nil
}

// AddF32 appends one row, converted to DType: to the nearest values, ties to even. A value that is
// too large for the type is an error.
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
		sum := UnitSum(w.seed, w.page[i:i+w.shape.SumBytes])
		w.sumPage = binary.LittleEndian.AppendUint32(w.sumPage, sum)
		if len(w.sumPage) == layout.PageBytes {
			if err := w.endSums(); err != nil {
				return err
			}
		}
	}
	err := w.rows.Write(w.page)
	w.page = w.page[:0]
	return err
}

func (w *Writer) endSums() error {
	n := len(w.sumPage)
	w.sumPage = w.sumPage[:layout.PageBytes]
	clear(w.sumPage[n:])
	w.pages++
	sum := codec.BlockSum(layout.KindSums, w.uuid, w.pages, w.sumPage[4:])
	binary.LittleEndian.PutUint32(w.sumPage, sum)
	err := w.sums.Write(w.sumPage)
	w.sumPage = w.sumPage[:4]
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
	if err == nil && len(w.sumPage) > 4 {
		err = w.endSums()
	}
	if err != nil {
		return m, nil, errors.Join(err, w.Abort())
	}
	rows, err := w.rows.Finish(m.Path, layout.KindRows)
	if err != nil {
		return m, nil, errors.Join(err, w.Abort())
	}
	sums, err := w.sums.Finish(layout.SumsPath(m.Path), layout.KindSums)
	return m, []kv.FileMeta{rows, sums}, err
}

// Abort closes the files without finishing them.
func (w *Writer) Abort() error {
	var err error
	for _, f := range []*layout.FileWriter{w.rows, w.sums} {
		if f != nil {
			err = errors.Join(err, f.Abort())
		}
	}
	return err
}
