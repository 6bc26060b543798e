package tables

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/flate"
)

// Archive is an opened .npz file: a zip of npy files, stored or deflated. It holds the directory in
// memory.
type Archive struct {
	// Arrays are the members.
	Arrays []*Array
	file   vfs.File
}

// OpenArchive reads the directory of an archive and the headers of its members.
func OpenArchive(fs vfs.FS, name string) (_ *Archive, err error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("npy: open: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	stat, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("npy: open: %w", err)
	}
	z, err := zip.NewReader(readerAt{f}, stat.Size())
	if err != nil {
		if badStream(err) == "" {
			return nil, fmt.Errorf("npy: read %s: %w", name, err)
		}
		return nil, &FormatError{File: name, What: "is not a whole zip file: " + err.Error(),
			Do: "it may be truncated; copy it again"}
	}
	z.RegisterDecompressor(zip.Deflate, flate.NewReader)
	a := &Archive{file: f}
	for _, m := range z.File {
		if !strings.HasSuffix(m.Name, ".npy") {
			continue
		}
		array, err := openMember(readerAt{f}, name, m)
		if err != nil {
			return nil, err
		}
		a.Arrays = append(a.Arrays, array)
	}
	return a, nil
}

// Close closes the file; the arrays can then be streamed no more.
func (a *Archive) Close() error { return a.file.Close() }

// readerAt refuses negative offsets, to which a damaged directory leads: some files would panic.
type readerAt struct{ f io.ReaderAt }

func (r readerAt) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return r.f.ReadAt(b, at)
}

func openMember(f io.ReaderAt, archive string, m *zip.File) (*Array, error) {
	base := strings.TrimSuffix(m.Name, ".npy")
	a := &Array{Name: archive + ":" + base, Stem: base, StoredBytes: int64(m.CompressedSize64)}
	r, err := m.Open()
	if err != nil {
		return nil, &FormatError{File: a.Name, What: err.Error()}
	}
	start, err := a.readHeader(r, int64(m.UncompressedSize64))
	// A decompressor that has met damage ahead of what was read says so when it is closed.
	if cerr := r.Close(); err == nil && cerr != nil {
		err = a.readError(cerr, 0)
	}
	if err != nil {
		return nil, err
	}
	a.open = func(offset int64) (io.ReadCloser, error) {
		if offset > 0 && m.Method == zip.Store {
			return openStored(f, m, start+offset)
		}
		r, err := m.Open()
		if err != nil {
			return nil, &FormatError{File: a.Name, What: err.Error()}
		}
		b := &memberReader{Reader: bufio.NewReaderSize(r, 1<<16), Closer: r}
		if _, err := io.CopyN(io.Discard, b, start+offset); err != nil {
			return nil, errors.Join(a.readError(err, 0), r.Close())
		}
		return b, nil
	}
	return a, nil
}

// memberReader reads a member from its beginning; its checksum is verified at the end.
type memberReader struct {
	*bufio.Reader
	io.Closer
}

// openStored reads an uncompressed member from the middle, without reading what is before.
func openStored(f io.ReaderAt, m *zip.File, at int64) (io.ReadCloser, error) {
	start, err := m.DataOffset()
	if err != nil {
		return nil, &FormatError{File: m.Name, What: err.Error()}
	}
	size := int64(m.UncompressedSize64)
	return io.NopCloser(io.NewSectionReader(f, start+at, size-at)), nil
}

// badStream returns what is wrong with a file, given the error of reading it, or "" if the contents
// are not at fault.
func badStream(err error) string {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "is truncated"
	case errors.Is(err, zip.ErrChecksum):
		return "is damaged: its checksum is wrong"
	case errors.As(err, &corrupt):
		return "is damaged: its compressed data is wrong"
	case errors.Is(err, zip.ErrFormat), errors.Is(err, zip.ErrAlgorithm):
		return err.Error()
	}
	return ""
}
