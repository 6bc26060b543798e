package files

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrTooLarge is wrapped if a file, or a line of it, is larger than its kind can be.
var ErrTooLarge = errors.New("larger than such a file can be")

// ReadSmall reads a file of at most limit bytes. It reads as many bytes as the file is long, so
// that a read that ends early is an error and never a shorter file. The error wraps ErrTooLarge, or
// an error of the file system, and names the file.
func ReadSmall(fs vfs.FS, path string, limit int64) (b []byte, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if size := info.Size(); size > limit {
		return nil, fmt.Errorf("read %s: %d bytes, at most %d: %w", path, size, limit, ErrTooLarge)
	}
	b = make([]byte, info.Size())
	if n, err := io.ReadFull(f, b); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read %s: %d bytes at offset %d: %w", path, len(b)-n, n, err)
	}
	return b, nil
}

// ReadLines calls fn with each line of a file, without its end; the line is valid during the call.
// An error of fn ends it and is returned. A line of over limit bytes wraps ErrTooLarge. It takes
// the memory of one line.
func ReadLines(fs vfs.FS, path string, limit int, fn func(line []byte) error) (err error) {
	f, err := fs.Open(path)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	from := &counted{r: f}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, limit)
	n := 0
	for lines.Scan() {
		n++
		if err := fn(lines.Bytes()); err != nil {
			return err
		}
	}
	if err = lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("read %s: line %d, at most %d bytes: %w", path, n+1, limit, ErrTooLarge)
	}
	if err != nil {
		return fmt.Errorf("read %s at offset %d, after line %d: %w", path, from.n, n, err)
	}
	return nil
}

// counted counts the bytes that are read through it.
type counted struct {
	r io.Reader
	n int64
}

// Read reads from the reader behind, and counts.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}
