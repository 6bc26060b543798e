package result

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync/atomic"

	"gdb/internal/files"
	"gdb/internal/tables"
	"gdb/layout"
	"gdb/shell/words"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// intoFormats lists the extensions that INTO accepts.
var intoFormats = []string{".csv", ".jsonl", ".parquet", ".npy"}

// bufferBytes is how many bytes of a file are written or read at once.
const bufferBytes = 64 << 10

// File is a result that goes to a file. Parquet and npy need the types of all values and the number
// of rows first, so for these formats the rows go to a temporary file before. It takes the memory
// of buffers, and of a row group of Parquet.
type File struct {
	Renderer
	fs   vfs.FS
	path string
	file *files.Atomic // for parquet and npy it is begun when all rows have come
	buf  *bufio.Writer
	rows *spool   // for parquet and npy
	kept vfs.File // the temporary file that rows are spooled to
	wait string   // the name of the temporary file
}

// CheckFile returns an error if the format of a file's name is not known.
func CheckFile(name string) error {
	for _, f := range intoFormats {
		if path.Ext(name) == f {
			return nil
		}
	}
	return fmt.Errorf("INTO %s: want a name that ends in %s%s", words.Quoted(name),
		strings.Join(intoFormats, ", "), words.Near(path.Ext(name), intoFormats))
}

// NewFile begins a result that will be in the file of that name. The caller calls Finish.
func NewFile(fs vfs.FS, name string) (o *File, err error) {
	o = &File{fs: fs, path: name}
	ext := path.Ext(name)
	if ext == ".parquet" || ext == ".npy" {
		if o.kept, o.wait, err = createBeside(fs, name, ".rows"); err != nil {
			return nil, fmt.Errorf("INTO %w", err)
		}
		o.buf = bufio.NewWriterSize(o.kept, bufferBytes)
		o.rows = &spool{w: o.buf}
		o.Renderer = o.rows
		return o, nil
	}
	if o.file, err = CreateFile(fs, name); err != nil {
		return nil, fmt.Errorf("INTO %w", err)
	}
	o.buf = bufio.NewWriterSize(o.file, bufferBytes)
	if ext == ".csv" {
		o.Renderer = &csvRenderer{w: csv.NewWriter(o.buf)}
	} else {
		o.Renderer = &jsonRenderer{w: o.buf}
	}
	return o, nil
}

// Finish makes the file appear. After an error of the statement it leaves nothing behind.
func (o *File) Finish(ctx context.Context, failed error) error {
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
		_ = o.fs.Remove(o.wait) // a file that cannot be removed does no harm
	}
	switch {
	case err == nil:
		err = o.file.CommitContext(ctx)
	case o.file != nil:
		err = errors.Join(err, o.file.Abort())
	}
	if err != nil && failed == nil {
		return fmt.Errorf("INTO %s: %w", o.path, files.Cause(err))
	}
	return err
}

// convert writes the spooled rows in the format of the file.
func (o *File) convert(ctx context.Context) error {
	from, err := o.fs.Open(o.wait)
	if err != nil {
		return err
	}
	if o.file, err = CreateFile(o.fs, o.path); err != nil {
		return errors.Join(err, from.Close())
	}
	o.buf.Reset(o.file)
	to, err := tables.NewWriter(o.buf, path.Ext(o.path), tableColumns(o.rows.columns),
		uint64(o.rows.rows))
	if err == nil {
		err = o.rows.replay(ctx, bufio.NewReaderSize(from, bufferBytes), to)
	}
	if err = errors.Join(err, from.Close()); err != nil {
		return err
	}
	return o.buf.Flush()
}

// CreateFile begins a file that will be at path. If several processes write to one name at a time,
// the contents come from the one that finishes last. Errors name path, which the user knows, and
// say what to do.
func CreateFile(fs vfs.FS, path string) (*files.Atomic, error) {
	name, err := nameBeside(fs, path, ".part")
	if err != nil {
		return nil, err
	}
	f, err := files.CreateAtomicAs(fs, path, name)
	return f, explainCreate(fs, path, err)
}

// createBeside begins a file beside path. Its name is the name of path, a part that no one else
// has, and an ending.
func createBeside(fs vfs.FS, path, ending string) (f vfs.File, name string, err error) {
	if name, err = nameBeside(fs, path, ending); err != nil {
		return nil, "", err
	}
	f, err = fs.Create(name, vfs.WriteCategoryUnspecified)
	return f, name, explainCreate(fs, path, err)
}

// begun counts the files that this process has begun.
var begun atomic.Uint64

// nameBeside returns a name in the folder of path that no one else has. It fails if path is a
// folder or lies in a store.
func nameBeside(fs vfs.FS, path, ending string) (string, error) {
	if err := layout.CheckOutside(fs, path); err != nil {
		return "", err
	}
	if info, err := fs.Stat(path); err == nil && info.IsDir() {
		return "", fmt.Errorf("%s is a folder: name a file", path)
	}
	return fmt.Sprintf("%s.%d-%d%s", path, os.Getpid(), begun.Add(1), ending), nil
}

// explainCreate adds to an error what to do about a file that cannot be made beside path. It
// returns nil if err is nil.
func explainCreate(fs vfs.FS, path string, err error) error {
	if err == nil {
		return nil
	}
	if of := errors.Unwrap(err); of != nil {
		err = of // without the temporary name, which means nothing to the user
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w: no file can be made in the folder %s: name one that exists and that "+
			"you may write to", err, fs.PathDir(path))
	}
	return fmt.Errorf("%s: %w", path, err)
}
