package shell

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"

	"gdb/internal/tablefile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// intoFormats are the extensions that INTO takes.
var intoFormats = []string{".csv", ".jsonl", ".parquet", ".npy"}

// fileOutput is a result that goes to a file. Parquet and npy need the types of all values and the
// number of rows first, so their rows go to a temporary file before. Memory: buffers, and a row
// group of Parquet.
type fileOutput struct {
	renderer
	fs   vfs.FS
	path string
	file *newFile // of parquet and npy it begins when all rows have come
	buf  *bufio.Writer
	rows *spool   // of parquet and npy
	kept vfs.File // where rows are spooled
	wait string   // its name
}

// checkInto reports a name whose format is not known.
func checkInto(name string) error {
	for _, f := range intoFormats {
		if path.Ext(name) == f {
			return nil
		}
	}
	return fmt.Errorf("INTO %s: want a name that ends in %s%s", named(name),
		strings.Join(intoFormats, ", "), near(path.Ext(name), intoFormats))
}

func newFileOutput(fs vfs.FS, name string) (o *fileOutput, err error) {
	o = &fileOutput{fs: fs, path: name}
	ext := path.Ext(name)
	if ext == ".parquet" || ext == ".npy" {
		if o.kept, o.wait, err = createBeside(fs, name, ".rows"); err != nil {
			return nil, fmt.Errorf("INTO %w", err)
		}
		o.buf = bufio.NewWriterSize(o.kept, outBytes)
		o.rows = &spool{w: o.buf}
		o.renderer = o.rows
		return o, nil
	}
	if o.file, err = createNewFile(fs, name); err != nil {
		return nil, fmt.Errorf("INTO %w", err)
	}
	o.buf = bufio.NewWriterSize(o.file, outBytes)
	if ext == ".csv" {
		o.renderer = &csvRenderer{w: csv.NewWriter(o.buf)}
	} else {
		o.renderer = &jsonRenderer{w: o.buf}
	}
	return o, nil
}

// finish makes the file appear, or after an error of the statement leaves nothing behind.
func (o *fileOutput) finish(ctx context.Context, failed error) error {
	err := failed
	if err == nil {
		err = o.buf.Flush()
	}
	if o.rows != nil {
		if e := o.kept.Close(); err == nil {
			err = e
		}
		if err == nil {
			err = o.convert(ctx)
		}
		_ = o.fs.Remove(o.wait) // what cannot be removed does no harm
	}
	switch {
	case err == nil:
		err = o.file.commit(ctx)
	case o.file != nil:
		err = errors.Join(err, o.file.discard())
	}
	if err != nil && failed == nil {
		return fmt.Errorf("INTO %s: %w", o.path, err)
	}
	return err
}

// convert writes the spooled rows in the file's format.
func (o *fileOutput) convert(ctx context.Context) error {
	from, err := o.fs.Open(o.wait)
	if err != nil {
		return err
	}
	if o.file, err = createNewFile(o.fs, o.path); err != nil {
		return errors.Join(err, from.Close())
	}
	o.buf.Reset(o.file)
	to, err := tablefile.New(o.buf, path.Ext(o.path), tableColumns(o.rows.columns),
		uint64(o.rows.rows))
	if err == nil {
		err = o.rows.replay(ctx, bufio.NewReaderSize(from, outBytes), to)
	}
	if err = errors.Join(err, from.Close()); err != nil {
		return err
	}
	return o.buf.Flush()
}

// cellKind is the type of a column, or of one value of it.
type cellKind uint8

const (
	cellEmpty cellKind = iota
	cellInt
	cellFloat
	cellString
)

// cell is a value of one of the kinds.
type cell struct {
	kind cellKind
	n    int64
	f    float64
	s    string
}

// cellOf converts what statements hand to row.
func cellOf(v any) cell {
	switch v := v.(type) {
	case nil:
		return cell{}
	case float32:
		return cell{kind: cellFloat, f: float64(v)}
	case float64:
		return cell{kind: cellFloat, f: v}
	case ratio:
		return cell{kind: cellFloat, f: float64(v)}
	case int:
		return cell{kind: cellInt, n: int64(v)}
	case int64:
		return cell{kind: cellInt, n: v}
	case uint32:
		return cell{kind: cellInt, n: int64(v)}
	case uint64:
		return cell{kind: cellInt, n: int64(v)}
	case count:
		return cell{kind: cellInt, n: int64(v)}
	case size:
		return cell{kind: cellInt, n: int64(v)}
	}
	return cell{kind: cellString, s: raw(v)}
}

// as converts a value to the kind of its column: empty cells are NaN or "".
func (c cell) as(kind cellKind) cell {
	switch {
	case c.kind == kind:
		return c
	case kind == cellString && c.kind == cellInt:
		return cell{kind: kind, s: raw(c.n)}
	case kind == cellString && c.kind == cellFloat:
		return cell{kind: kind, s: raw(c.f)}
	case kind == cellString:
		return cell{kind: kind}
	case c.kind == cellInt:
		return cell{kind: kind, f: float64(c.n)}
	}
	return cell{kind: kind, f: math.NaN()}
}

// column is what is known of a column once all rows were seen.
type column struct {
	name  string
	kind  cellKind
	empty bool // some cell is empty
	runes int  // of the longest string
}

// take widens the kind so that a value fits: strings take all, floats whole numbers and nothing.
func (c *column) take(v cell) {
	if v.kind == cellEmpty {
		c.empty = true
	}
	c.kind = max(c.kind, v.kind)
}

// final is the kind that all values of the column convert to.
func (c *column) final() cellKind {
	switch {
	case c.kind == cellEmpty:
		return cellString
	case c.kind == cellInt && c.empty:
		return cellFloat
	}
	return c.kind
}

// spool keeps rows in a file, and what kinds of values came.
type spool struct {
	w       io.Writer
	columns []column
	rows    int
	row     []byte
}

// Header keeps the names.
func (s *spool) Header(cols []string) error {
	for _, name := range cols {
		s.columns = append(s.columns, column{name: name})
	}
	return nil
}

// Row writes each value as its kind, and 8 bytes or a string with its length.
func (s *spool) Row(vals []any) error {
	s.row = s.row[:0]
	for i, v := range vals {
		c := cellOf(v)
		s.columns[i].take(c)
		text := c.as(cellString).s
		s.columns[i].runes = max(s.columns[i].runes, len([]rune(text)))
		s.row = append(s.row, byte(c.kind))
		switch c.kind {
		case cellInt:
			s.row = binary.LittleEndian.AppendUint64(s.row, uint64(c.n))
		case cellFloat:
			s.row = binary.LittleEndian.AppendUint64(s.row, math.Float64bits(c.f))
		case cellString:
			s.row = append(binary.AppendUvarint(s.row, uint64(len(c.s))), c.s...)
		}
	}
	s.rows++
	_, err := s.w.Write(s.row)
	return err
}

// Footer does nothing.
func (s *spool) Footer() error { return nil }

// replay reads the rows back.
func (s *spool) replay(ctx context.Context, r *bufio.Reader, to tablefile.Writer) error {
	cells := make([]cell, len(s.columns))
	for n := range s.rows {
		if n%max(cancelEvery/max(len(cells), 1), 1) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for i := range cells {
			c, err := readCell(r)
			if err != nil {
				return fmt.Errorf("read spooled rows: %w", err)
			}
			cells[i] = c.as(s.columns[i].final())
		}
		if err := writeRow(to, cells); err != nil {
			return err
		}
	}
	return to.Close()
}

func readCell(r *bufio.Reader) (c cell, err error) {
	kind, err := r.ReadByte()
	c.kind = cellKind(kind)
	if err != nil || c.kind == cellEmpty {
		return c, err
	}
	if c.kind == cellString {
		n, err := binary.ReadUvarint(r)
		if err != nil {
			return c, err
		}
		b := make([]byte, n)
		_, err = io.ReadFull(r, b)
		c.s = string(b)
		return c, err
	}
	var b [8]byte
	_, err = io.ReadFull(r, b[:])
	bits := binary.LittleEndian.Uint64(b[:])
	c.n, c.f = int64(bits), math.Float64frombits(bits)
	return c, err
}

// columnKinds are the types of columns in files.
var columnKinds = map[cellKind]tablefile.Kind{cellInt: tablefile.Int64,
	cellFloat: tablefile.Float64, cellString: tablefile.String}

// tableColumns are the columns of a file of typed columns.
func tableColumns(columns []column) (all []tablefile.Column) {
	for _, c := range columns {
		all = append(all, tablefile.Column{Name: c.name, Kind: columnKinds[c.final()],
			Width: c.runes})
	}
	return all
}

// writeRow writes the cells of a row, which are of the kinds of their columns.
func writeRow(to tablefile.Writer, cells []cell) error {
	for _, c := range cells {
		switch c.kind {
		case cellInt:
			to.Int64(c.n)
		case cellFloat:
			to.Float64(c.f)
		default:
			to.String(c.s)
		}
	}
	return to.EndRow()
}
