package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"gdb/internal/tables"
	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fileBytes bounds what writing a file takes: its row group, pages, rows that wait, and as much of
// what is not in use any more.
const fileBytes = 64 << 20

// rowsOnce is how many rows are read and written together.
const rowsOnce = 4096

// file is a file of Parquet that is written.
type file struct {
	path string // for messages
	file vfs.File
	buf  *bufio.Writer
	tables.NullWriter
}

// plainName matches names of types and relations that files may have.
var plainName = regexp.MustCompile(`^[A-Za-z][\w.-]{0,199}$`)

// pathOf returns the path of the file of a type or a relation, relative to the directory.
func pathOf(folder, name string, number int) string {
	if name = strings.ReplaceAll(name, source.TypeSep, "."); !plainName.MatchString(name) {
		name = strconv.Itoa(number)
	}
	return folder + "/" + name + ".parquet"
}

func (e *exporter) create(path string, columns []tables.Column) (*file, error) {
	f := &file{path: path}
	var err error
	path = e.fs.PathJoin(e.part, path)
	if f.file, err = e.fs.Create(path, vfs.WriteCategoryUnspecified); err != nil {
		return nil, err
	}
	f.buf = bufio.NewWriterSize(f.file, 1<<20)
	if f.NullWriter, err = tables.NewParquet(f.buf, columns); err != nil {
		return nil, errors.Join(err, f.file.Close())
	}
	return f, nil
}

// finish ends the file, which is durable then.
func (f *file) finish() error {
	err := f.NullWriter.Close()
	if err == nil {
		err = f.buf.Flush()
	}
	if err == nil {
		err = f.file.Sync()
	}
	err = errors.Join(err, f.file.Close())
	f.file = nil
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

// abort closes the file. After finish it does nothing.
func (f *file) abort() error {
	if f == nil || f.file == nil {
		return nil
	}
	return f.file.Close()
}

// kindOf returns how a column is written.
func kindOf(c *kv.TableColumn) tables.Column {
	kind := map[string]tables.Kind{columnfile.Int64: tables.Int64,
		columnfile.Float64: tables.Float64, columnfile.Bool: tables.Bool,
		columnfile.Date: tables.Date, columnfile.Timestamp: tables.Timestamp,
		columnfile.String: tables.String}[c.Type]
	return tables.Column{Name: c.Name, Kind: kind, Optional: true}
}

// value writes row i of a column.
func (f *file) value(v *columnfile.Values, i int) {
	switch {
	case v.Null(i):
		f.Null()
	case len(v.Ints) > 0:
		f.Int64(v.Ints[i])
	case len(v.Floats) > 0:
		f.Float64(v.Floats[i])
	default:
		f.String(string(v.Strings.At(i)))
	}
}

// idKind returns how ids are written.
func idKind(numbers bool) tables.Kind {
	if numbers {
		return tables.Int64
	}
	return tables.String
}

// id writes an id. In a typed store it is without the type.
func (e *exporter) id(f *file, id string, numbers bool) error {
	if e.meta.Typed() {
		_, id, _ = strings.Cut(id, source.TypeSep)
	}
	if !numbers {
		f.String(id)
		return nil
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return fmt.Errorf("%s: id %q is no integer of 64 bits: %w", f.path, id, err)
	}
	f.Int64(n)
	return nil
}

// scanner reads rows of a column.
type scanner func(ctx context.Context, first, n uint64,
	fn func(at uint64, v *columnfile.Values) error) error

// read sets out to rows of a column.
func (s scanner) read(ctx context.Context, first, n uint64, out *columnfile.Values) error {
	out.Reset()
	return s(ctx, first, n, func(_ uint64, v *columnfile.Values) error {
		out.Append(v, 0, v.Rows)
		return nil
	})
}
