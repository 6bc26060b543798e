package tables

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const writeBufferBytes = 1 << 20

// ArrayWriter writes an array of known shape, in C order.
type ArrayWriter struct {
	path string
	file vfs.File
	buf  *bufio.Writer
	left int64 // bytes still to come
}

// CreateArray creates the array file path. descr is the dtype of its elements as NumPy names it:
// "<f4", "<i8", "|b1". The caller calls Close.
func CreateArray(fs vfs.FS, path, descr string, shape ...uint64) (*ArrayWriter, error) {
	h := &Header{}
	var err error
	if h.DType, err = parseDType(descr); err != nil {
		return nil, fmt.Errorf("npy: create %s: %w", path, err)
	}
	for _, n := range shape {
		h.Shape = append(h.Shape, int64(n))
	}
	if err := checkShape(h); err != nil {
		return nil, fmt.Errorf("npy: create %s: %w", path, err)
	}
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("npy: create %s: %w", path, err)
	}
	w := &ArrayWriter{path: path, file: f, buf: bufio.NewWriterSize(f, writeBufferBytes)}
	w.left = h.Bytes()
	if _, err := w.buf.Write(appendHeader(nil, h)); err != nil {
		return nil, errors.Join(fmt.Errorf("npy: write %s: %w", path, err), f.Close())
	}
	return w, nil
}

// Write appends elements as bytes, in the byte order of the dtype.
func (w *ArrayWriter) Write(b []byte) (written int, err error) {
	if w.left -= int64(len(b)); w.left < 0 {
		return 0, fmt.Errorf("npy: write %s: %d bytes more than its shape has", w.path, -w.left)
	}
	// A vfs.File may change the slice it is given, so it gets the buffer and never b itself.
	for len(b) > 0 {
		if w.buf.Available() == 0 {
			if err := w.buf.Flush(); err != nil {
				return written, fmt.Errorf("npy: write %s: %w", w.path, err)
			}
		}
		n, err := w.buf.Write(b[:min(len(b), w.buf.Available())])
		written, b = written+n, b[n:]
		if err != nil {
			return written, fmt.Errorf("npy: write %s: %w", w.path, err)
		}
	}
	return written, nil
}

// Close writes what is buffered, syncs and closes the file. It fails if elements are missing.
func (w *ArrayWriter) Close() error {
	err := w.buf.Flush()
	if err == nil && w.left > 0 {
		err = fmt.Errorf("%d bytes are missing", w.left)
	}
	if err == nil {
		err = w.file.Sync()
	}
	if err = errors.Join(err, w.file.Close()); err != nil {
		return fmt.Errorf("npy: close %s: %w", w.path, err)
	}
	return nil
}
