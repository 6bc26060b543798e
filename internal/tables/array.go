package tables

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readBytes is the size of a sequential read: past the knee of every disk we measured.
const readBytes = 1 << 20

// Array is an array in a file or an archive. It may be streamed any number of times, from several
// goroutines.
type Array struct {
	Header
	// Name is the path of the file, or "file.npz:member".
	Name string
	// Stem is the last part of the name without its extension: "edges", "train_idx".
	Stem string
	// StoredBytes is how many bytes are read from disk when it is read.
	StoredBytes int64

	open func(offset int64) (io.ReadCloser, error) // starts at a byte of the elements
}

// OpenArray reads the header of an array file and checks that the file has the size it says.
func OpenArray(fs vfs.FS, name string) (*Array, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("npy: open: %w", err)
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("npy: open: %w", err)
	}
	if stat.IsDir() {
		return nil, &FormatError{File: name, What: "is a directory, not an array file"}
	}
	a := &Array{Name: name, Stem: stem(fs.PathBase(name)), StoredBytes: stat.Size()}
	start, err := a.readHeader(f, stat.Size())
	if err != nil {
		return nil, err
	}
	a.open = func(offset int64) (io.ReadCloser, error) {
		f, err := fs.Open(name, vfs.SequentialReadsOption)
		if err != nil {
			return nil, fmt.Errorf("npy: open: %w", err)
		}
		return &fileAt{f: f, at: start + offset}, nil
	}
	return a, nil
}

// readHeader reads the header and returns where the elements begin, in bytes.
func (a *Array) readHeader(r io.Reader, size int64) (start int64, err error) {
	h, start, err := readHeader(r)
	if err != nil {
		e := &FormatError{File: a.Name, What: err.Error()}
		if strings.Contains(e.What, "no npy header") {
			e.Do = "save the array with numpy.save"
		}
		return 0, e
	}
	a.Header = *h
	if have, want := size-start, h.Bytes(); have != want {
		what := "is truncated"
		if have > want {
			what = "has trailing bytes"
		}
		return 0, &FormatError{File: a.Name, What: fmt.Sprintf("%s: %d bytes after the header, "+
			"but shape %s of %s needs %d", what, have, h.ShapeString(), h.DType, want)}
	}
	return start, nil
}

func stem(base string) string { return strings.TrimSuffix(base, path.Ext(base)) }

// Stream starts to read the elements from number first on.
func (a *Array) Stream(first int64) (*Stream, error) {
	r, err := a.open(first * int64(a.DType.Size))
	if err != nil {
		return nil, err
	}
	return &Stream{array: a, r: r, at: first, end: a.Elements()}, nil
}

// Stream reads elements in order.
type Stream struct {
	array   *Array
	r       io.ReadCloser
	at, end int64 // next element, number of elements
	buf     []byte
}

// Left returns the number of elements that were not read yet.
func (s *Stream) Left() int64 { return s.end - s.at }

// Next returns the next n elements, little-endian, aligned to 8; valid until the next call.
func (s *Stream) Next(ctx context.Context, n int) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if int64(n) > s.Left() {
		return nil, fmt.Errorf("npy: read %s: %d elements wanted, %d left", s.array.Name, n,
			s.Left())
	}
	size := n * s.array.DType.Size
	if size > len(s.buf) {
		s.buf = alignedBytes(max(size, readBytes))
	}
	b := s.buf[:size]
	if _, err := io.ReadFull(s.r, b); err != nil {
		return nil, s.array.readError(err, s.at)
	}
	s.at += int64(n)
	s.array.DType.toLittle(b)
	if s.at == s.end {
		return b, s.finish()
	}
	return b, nil
}

// finish reads to the end, where an archive member's checksum is verified.
func (s *Stream) finish() error {
	var one [1]byte
	switch n, err := s.r.Read(one[:]); {
	case n > 0:
		return &FormatError{File: s.array.Name, What: "has trailing bytes"}
	case err == nil || err == io.EOF:
		return nil
	default:
		return s.array.readError(err, s.at)
	}
}

// readError returns the error of a failed read at an element: damage of the file, or an I/O error.
func (a *Array) readError(err error, at int64) error {
	if what := badStream(err); what != "" {
		return &FormatError{File: a.Name, What: fmt.Sprintf("%s (at element %d of %d)", what, at,
			a.Elements())}
	}
	return fmt.Errorf("npy: read %s at element %d: %w", a.Name, at, err)
}

// Close ends the reading.
func (s *Stream) Close() error {
	if err := s.r.Close(); err != nil {
		return s.array.readError(err, s.at)
	}
	return nil
}

// fileAt reads a file from an offset on.
type fileAt struct {
	f  vfs.File
	at int64
}

func (r *fileAt) Read(b []byte) (int, error) {
	n, err := r.f.ReadAt(b, r.at)
	r.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (r *fileAt) Close() error { return r.f.Close() }
