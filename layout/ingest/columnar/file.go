// Package columnar reads Parquet files as the batches of rows that layout/ingest/text reads text
// as: only the columns that are wanted, several at a time.
//
// A Reader is one batch ahead of its caller. Memory: a page of each wanted column and two batches.
package columnar

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"gdb/internal/mem"
	"gdb/layout/ingest/text"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"
)

// Is says whether a file's name is that of a Parquet file.
func Is(name string) bool {
	return strings.HasSuffix(name, ".parquet") || strings.HasSuffix(name, ".pq")
}

// File is an opened Parquet file.
type File struct {
	name    string
	disk    *disk
	parquet *parquet.File
	columns []column
}

// disk reads a file, and remembers that reading failed: that is not the fault of the contents.
type disk struct {
	vfs.File
	size   int64
	failed atomic.Pointer[error]
}

// ReadAt reads at an offset.
func (d *disk) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 || off > d.size {
		return 0, fmt.Errorf("it points to byte %d, and has %d", off, d.size)
	}
	n, err := d.File.ReadAt(b, off)
	if err != nil && err != io.EOF {
		d.failed.Store(&err)
	}
	return n, err
}

// Open reads the description of a file. It must be closed.
func Open(fs vfs.FS, name string) (*File, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("columnar: open: %w", err)
	}
	t := &File{name: name, disk: &disk{File: f}}
	if err := t.guard(t.start); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *File) start() error {
	stat, err := t.disk.Stat()
	if err != nil {
		return fmt.Errorf("columnar: open %s: %w", t.name, err)
	}
	if stat.Size() == 0 {
		return &text.Error{File: t.name, What: "the file is empty"}
	}
	t.disk.size = stat.Size()
	t.parquet, err = parquet.OpenFile(t.disk, stat.Size(), parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true), parquet.ReadBufferSize(64<<10))
	if err != nil {
		return err
	}
	t.columns = columnsOf(t.parquet.Root())
	return nil
}

// guard calls fn and says what its failure means: the disk's, or damage. The decoder of the format
// may panic when a file is damaged.
func (t *File) guard(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = t.damaged(fmt.Errorf("%v", p))
		}
	}()
	err = fn()
	var e *text.Error
	switch failed := t.disk.failed.Load(); {
	case err == nil, errors.Is(err, io.EOF) && failed == nil, errors.As(err, &e):
		return err
	case failed != nil:
		return fmt.Errorf("columnar: read %s: %w", t.name, *failed)
	}
	return t.damaged(err)
}

func (t *File) damaged(err error) error {
	return &text.Error{File: t.name, What: "is damaged, or no Parquet file: " + err.Error(),
		Do: "copy it again"}
}

// Close closes the file.
func (t *File) Close() error {
	if err := t.disk.Close(); err != nil {
		return fmt.Errorf("columnar: close %s: %w", t.name, err)
	}
	return nil
}

// Rows is the number of rows.
func (t *File) Rows() int64 { return t.parquet.NumRows() }

// Bytes is the size of some columns, as they are stored.
func (t *File) Bytes(columns []int) (bytes int64) {
	for _, g := range t.parquet.Metadata().RowGroups {
		for _, c := range columns {
			if leaf := t.columns[c].leaf; leaf < len(g.Columns) {
				bytes += g.Columns[leaf].MetaData.TotalCompressedSize
			}
		}
	}
	return bytes
}

// Names are those of the columns.
func (t *File) Names() (names []string) {
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	return names
}

// Lists says of each column whether its values are lists of numbers or texts.
func (t *File) Lists() (lists []bool) {
	for _, c := range t.columns {
		lists = append(lists, c.list && c.form != others)
	}
	return lists
}

// pageBytes is how much of a column is in memory while it is read, at most: writers make pages of
// up to 1 MiB, and dictionaries of as much.
const pageBytes = 2 << 20

// CheckMemory is an error if reading some columns at a time takes more than bound.
func (t *File) CheckMemory(columns []int, bound int64) error {
	most, rows := int64(0), int64(0)
	for _, g := range t.parquet.Metadata().RowGroups {
		sum := int64(0)
		for _, c := range columns {
			if leaf := t.columns[c].leaf; leaf < len(g.Columns) {
				sum += min(g.Columns[leaf].MetaData.TotalUncompressedSize, pageBytes)
			}
		}
		if sum > most {
			most, rows = sum, g.NumRows
		}
	}
	if bound <= 0 || most <= bound {
		return nil
	}
	return &text.Error{File: t.name, What: fmt.Sprintf("reading a page of each of %d columns "+
		"takes %s, and %s may be used", len(columns), mem.FormatSize(most),
		mem.FormatSize(bound)), Do: fmt.Sprintf("give more --memory, or write row groups of "+
		"fewer than %d rows, or one column of lists", rows)}
}

// Head returns the first rows as text, and of columns of lists the number of elements in [].
func (t *File) Head(rows int) (head [][]string, err error) {
	var all []text.Column
	spec := text.Spec{Width: len(t.columns), Names: t.Names()}
	for i := range t.columns {
		all = append(all, text.Column{Field: i, Kind: text.Text})
	}
	spec.Columns = all
	r, err := t.read(spec, nil, rows)
	if err != nil {
		return nil, err
	}
	r.head = true
	b := &batch{}
	err = t.guard(func() error { return r.fill(b) })
	if err != nil && err != io.EOF {
		return nil, errors.Join(err, r.closePages())
	}
	for i := range min(rows, b.Rows) {
		row := make([]string, len(all))
		for c := range all {
			row[c] = string(b.Columns[c].Texts[i])
		}
		head = append(head, row)
	}
	return head, r.closePages()
}
