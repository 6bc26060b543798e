package layout

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gdb/internal/codec"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// RowsSpec says what a file of rows holds.
type RowsSpec struct {
	UUID  kv.UUID
	Name  string
	Path  string // relative to the store, for the metadata: "features/NAME.rows"
	DType string
	Dim   int
	Nodes uint64
}

// RowsWriter writes rows in node order. Memory: a page and two write buffers of 1 MiB.
type RowsWriter struct {
	shape rowsShape
	uuid  kv.UUID
	rows  *fileWriter
	sums  *fileWriter
	seed  uint32
	added uint64

	page    []byte // the rows so far of the page being filled
	sumPage []byte
	pages   uint64 // of checksums
	row     []byte
}

// NewRowsWriter starts PREFIX.rows and PREFIX.crc.
func NewRowsWriter(fs vfs.FS, prefix string, spec RowsSpec) (*RowsWriter, error) {
	m, err := NewRowsMeta(spec.Name, spec.Path, spec.DType, spec.Dim)
	if err != nil {
		return nil, fmt.Errorf("layout: write %s: %w", prefix, err)
	}
	w := &RowsWriter{uuid: spec.UUID, seed: sumSeed(KindRows, spec.UUID),
		page: make([]byte, 0, m.PageBytes), sumPage: make([]byte, 4, pageBytes)}
	if w.shape, err = newRowsShape(m, spec.Nodes); err != nil {
		return nil, fmt.Errorf("layout: write %s: %w", prefix, err)
	}
	if w.rows, err = createFile(fs, prefix+".rows"); err == nil {
		w.sums, err = createFile(fs, prefix+".crc")
	}
	if err == nil {
		err = errors.Join(w.header(w.rows, KindRows), w.header(w.sums, KindSums))
	}
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

func (w *RowsWriter) header(f *fileWriter, kind string) error {
	return f.write(codec.Header{Kind: kind, UUID: w.uuid, Fields: w.shape.fields()}.Encode())
}

// Add appends one row of RowBytes bytes, encoded as DType.
func (w *RowsWriter) Add(row []byte) error {
	if len(row) != w.shape.RowBytes {
		return fmt.Errorf("layout: write %s: row %d has %d bytes, want %d", w.rows.path, w.added,
			len(row), w.shape.RowBytes)
	}
	if w.added == w.shape.nodes {
		return fmt.Errorf("layout: write %s: more than the %d rows announced", w.rows.path,
			w.added)
	}
	w.page = append(w.page, row...)
	w.added++
	if w.added%uint64(w.shape.perPage) == 0 {
		return w.endPage()
	}
	return nil
}

// AddF32 appends one row, converted to DType: to the nearest value, ties to even. A value that is
// too large for the type is an error.
func (w *RowsWriter) AddF32(row []float32) error {
	var err error
	if w.row, err = encodeRow(w.row[:0], w.shape.DType, row); err != nil {
		return fmt.Errorf("layout: write %s: row %d: %w", w.rows.path, w.added, err)
	}
	return w.Add(w.row)
}

func (w *RowsWriter) endPage() error {
	n := len(w.page)
	w.page = w.page[:w.shape.PageBytes]
	clear(w.page[n:])
	for i := 0; i < len(w.page); i += w.shape.SumBytes {
		sum := unitSum(w.seed, w.page[i:i+w.shape.SumBytes])
		w.sumPage = binary.LittleEndian.AppendUint32(w.sumPage, sum)
		if len(w.sumPage) == pageBytes {
			if err := w.endSums(); err != nil {
				return err
			}
		}
	}
	err := w.rows.write(w.page)
	w.page = w.page[:0]
	return err
}

func (w *RowsWriter) endSums() error {
	n := len(w.sumPage)
	w.sumPage = w.sumPage[:pageBytes]
	clear(w.sumPage[n:])
	w.pages++
	sum := codec.BlockSum(KindSums, w.uuid, w.pages, w.sumPage[4:])
	binary.LittleEndian.PutUint32(w.sumPage, sum)
	err := w.sums.write(w.sumPage)
	w.sumPage = w.sumPage[:4]
	return err
}

// Finish pads, writes the checksums, syncs, and returns the metadata and file records.
func (w *RowsWriter) Finish() (kv.RowsMeta, []kv.FileMeta, error) {
	m := w.shape.RowsMeta
	var err error
	if w.added != w.shape.nodes {
		err = fmt.Errorf("layout: write %s: %d rows, %d were announced", w.rows.path, w.added,
			w.shape.nodes)
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
	rows, err := w.rows.finish(m.Path, KindRows)
	if err != nil {
		return m, nil, errors.Join(err, w.Abort())
	}
	sums, err := w.sums.finish(SumsPath(m.Path), KindSums)
	return m, []kv.FileMeta{rows, sums}, err
}

// Abort closes the files without finishing them.
func (w *RowsWriter) Abort() error {
	var err error
	for _, f := range []*fileWriter{w.rows, w.sums} {
		if f != nil {
			err = errors.Join(err, f.abort())
		}
	}
	return err
}
