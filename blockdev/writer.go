package blockdev

import (
	"errors"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// WriteBytes is the size of the pieces in which a Writer writes, and its memory.
const WriteBytes = 1 << 20

// Writer writes a new file from start to end, past the page cache where the file system allows it:
// a copy of each page, its place in the cache, and the search for pages to give up where a memory
// cgroup is full take several times the processor that the write itself does, and a direct read
// need not wait for what is not on the disk yet. One goroutine uses it.
type Writer struct {
	file   vfs.File
	buf    []byte // begins at a multiple of bufferAlign
	direct bool
	err    error // the first; all later writes fail with it
}

// NewWriter writes to a file that is empty, which its caller closes.
func NewWriter(f vfs.File) *Writer {
	return &Writer{file: f, buf: AlignedBuffer(WriteBytes)[:0], direct: setDirect(f, true) == nil}
}

// Write appends p to the file, by way of a buffer.
func (w *Writer) Write(p []byte) (n int, err error) {
	for len(p) > 0 && w.err == nil {
		k := copy(w.buf[len(w.buf):cap(w.buf)], p)
		w.buf, p, n = w.buf[:len(w.buf)+k], p[k:], n+k
		if len(w.buf) == cap(w.buf) {
			w.flush()
		}
	}
	return n, w.err
}

// Finish writes what is left in the buffer; nothing can be written after it.
func (w *Writer) Finish() error {
	if w.direct && len(w.buf)%bufferAlign != 0 {
		w.cached()
	}
	w.flush()
	if w.err != nil {
		return w.err
	}
	w.err = errors.New("the file is finished")
	return nil
}

// flush writes what is in the buffer. Some file systems take O_DIRECT and no write with it: there,
// what follows goes through the page cache.
func (w *Writer) flush() {
	for left := w.buf; len(left) > 0 && w.err == nil; {
		n, err := w.file.Write(left)
		left = left[max(0, n):]
		if w.err = err; w.direct && errors.Is(err, syscall.EINVAL) {
			w.err = nil
			w.cached()
		}
	}
	w.buf = w.buf[:0]
}

// cached makes all writes from here on go through the page cache.
func (w *Writer) cached() {
	w.direct = false
	w.err = errors.Join(w.err, setDirect(w.file, false))
}
