// Package columnar reads Parquet and Arrow files as the batches of rows that layout/ingest/input
// reads text as: only the columns that are wanted, several at a time.
//
// A Reader is one batch ahead of its caller. Memory: two batches, and of each wanted column a page
// of Parquet, or what one batch of compressed Arrow unpacks to.
//
// Arrow's files and streams are parsed here (openIPC): the Arrow library reads all columns of a
// batch whole, and a batch may be the whole file. What a caller asks for is read, and of a
// compressed column one batch is unpacked. All that a file says is checked against its size before
// it is believed.
package columnar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/input"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Endings is a pattern of the endings that files have, and isName of their names.
const Endings = `(parquet|pq|arrow|arrows|feather|ipc)$`

var isName = regexp.MustCompile(`\.` + Endings)

// Is reports whether a file has the name of a Parquet or Arrow file.
func Is(name string) bool { return isName.MatchString(name) }

// Format returns the format that the name of a file tells.
func Format(name string) string {
	if strings.HasSuffix(name, ".parquet") || strings.HasSuffix(name, ".pq") {
		return "parquet"
	}
	return "arrow"
}

// File is an opened file.
type File struct {
	name    string
	disk    *disk
	format  fileFormat
	what    string // the format's name
	bound   int64  // bytes in memory at a time; 0 is any
	columns []column
}

// fileFormat reads the files of one format.
type fileFormat interface {
	rows() int64
	pandas() string // what pandas noted about the frame that was written; "" if nothing
	checkMemory(columns []int) error
	// openGroup begins row group i and sets the cursors to it, or returns io.EOF behind the last.
	openGroup(i int, cursors []*cursor) (rows int64, err error)
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

// Open reads the description of a file, of which at most bound bytes are to be in memory at a time;
// 0 is any. It must be closed.
func Open(fs vfs.FS, name string, bound int64) (*File, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("columnar: open: %w", err)
	}
	t := &File{name: name, disk: &disk{File: f}, bound: bound}
	err = t.guard(func() error {
		if err := t.start(); errors.Is(err, io.EOF) {
			return errCutOff
		} else {
			return err
		}
	})
	if err != nil {
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
		return input.Wrong(t.name, "", "the file is empty")
	}
	t.disk.size = stat.Size()
	head := make([]byte, min(8, stat.Size()))
	if _, err := t.disk.ReadAt(head, 0); err != nil {
		return err
	}
	switch {
	case bytes.HasPrefix(head, []byte("FEA1")):
		return input.Wrong(t.name,
			"write it anew with a newer library: pandas.read_feather(...).to_parquet(...)",
			"is a Feather file of version 1, which is not read")
	case isIPC(head):
		t.what = "Arrow"
		f, err := openArrow(t.name, t.disk, t.bound)
		if err == nil {
			t.format, t.columns = f, f.columns
		}
		return err
	}
	t.what = "Parquet"
	if Format(t.name) == "arrow" && !bytes.HasPrefix(head, []byte("PAR1")) {
		t.what = "Arrow"
		return errors.New("it begins as neither a file nor a stream of it does")
	}
	f, err := openParquet(t.name, t.disk, t.bound)
	if err == nil {
		t.format, t.columns = f, f.columns
	}
	return err
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
	var e *input.Error
	switch failed := t.disk.failed.Load(); {
	case err == nil, errors.Is(err, io.EOF) && failed == nil, errors.As(err, &e):
		return err
	case failed != nil:
		return fmt.Errorf("columnar: read %s: %w", t.name, *failed)
	}
	return t.damaged(err)
}

// errCutOff says that a file ends where more of it should stand.
var errCutOff = errors.New("it ends before it should")

func (t *File) damaged(err error) error {
	return input.Wrong(t.name, "copy it again", "is damaged, or no %s file: %v", t.what, err)
}

// Close closes the file.
func (t *File) Close() error {
	if err := t.disk.Close(); err != nil {
		return fmt.Errorf("columnar: close %s: %w", t.name, err)
	}
	return nil
}

// Rows returns the number of rows.
func (t *File) Rows() int64 { return t.format.rows() }

// Names returns the names of the columns.
func (t *File) Names() (names []string) {
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	return names
}

// Index returns the names of the columns that hold the index of a frame, as the notes of pandas in
// the file tell; none if there are no such notes.
func (t *File) Index() (names []string) {
	var notes struct {
		Columns []any `json:"index_columns"`
	}
	if json.Unmarshal([]byte(t.format.pandas()), &notes) != nil {
		return nil
	}
	for _, c := range notes.Columns { // a range of numbers, which is in no column, is an object
		if name, ok := c.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// Lists reports for each column whether its values are lists of numbers or texts.
func (t *File) Lists() (lists []bool) {
	for _, c := range t.columns {
		lists = append(lists, c.list && c.form != others)
	}
	return lists
}

// TimeForm returns how the values of a column are written if it has the type of a date or a time.
func (t *File) TimeForm(col int) kv.TimeForm {
	switch c := t.columns[col]; {
	case c.form != times:
		return kv.TimeNumber
	case c.unit == 24*time.Hour:
		return kv.TimeDate
	}
	return kv.TimeDatetime
}

// Kind returns the type of the values of a column as package columnfile calls it, "" where they are
// texts or lists, and Unread where they are not read.
func (t *File) Kind(col int) string {
	switch c := t.columns[col]; {
	case c.list, c.form == texts:
		return ""
	case c.form == integers, c.form == unsigned:
		return columnfile.Int64
	case c.form == float32s, c.form == float64s:
		return columnfile.Float64
	case c.form == truths:
		return columnfile.Bool
	case c.form == times && c.unit == 24*time.Hour:
		return columnfile.Date
	case c.form == times:
		return columnfile.Timestamp
	}
	return Unread
}

// Unread is the kind of a column whose values are not read.
const Unread = "unread"

// CheckMemory returns an error if reading some columns at a time takes more memory than it may.
func (t *File) CheckMemory(columns []int) error { return t.format.checkMemory(columns) }

// headBytes bounds the texts that Head returns, but for a row.
const headBytes = 8 << 20

// Head returns the first rows as text, and of columns of lists the number of elements in []. A
// column whose first page is too large for the memory is empty: it may be one that nobody needs.
func (t *File) Head(rows int) (head [][]string, err error) {
	// Columns are read after each other, since a page of all would take more memory than is
	// needed later. A batch of Arrow describes all its columns anew each time.
	step := 1
	if t.what == "Arrow" {
		const times = 64
		step += len(t.columns) / times
	}
	columns := make([][]string, len(t.columns))
	for first := 0; first < len(columns); first += step {
		some := columns[first:min(first+step, len(columns))]
		err := t.headOf(first, some, rows)
		var large *pageError
		switch tooLarge := errors.As(err, &large); {
		case err == nil:
			rows = min(rows, len(some[0]))
		case !tooLarge:
			return nil, err
		case step > 1: // all again, one by one
			clear(some)
			first, step = first-1, 1
		default:
			clear(some)
		}
	}
	for i := range rows {
		row := make([]string, len(columns))
		for c := range columns {
			if i < len(columns[c]) {
				row[c] = columns[c][i]
			}
		}
		head = append(head, row)
	}
	return head, nil
}

// headOf reads the first rows of some columns, the first of which is given.
func (t *File) headOf(first int, columns [][]string, rows int) (err error) {
	spec := input.Spec{Width: len(t.columns)}
	for i := range columns {
		spec.Columns = append(spec.Columns, input.Column{Field: first + i, Kind: input.Text})
	}
	r, err := t.read(spec, nil, rows)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.closePages()) }()
	r.head = true
	b, bytes := &input.Batch{}, 0
	for len(columns[0]) < rows && bytes < headBytes/len(t.columns)*len(columns) {
		err := t.guard(func() error { return r.fill(b) })
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for c := range columns {
			for _, v := range b.Columns[c].Texts {
				columns[c] = append(columns[c], string(v))
				bytes += len(v)
			}
		}
	}
	return nil
}
