package blockdev

import (
	"errors"
	"slices"
	"syscall"

	"gdb/internal/bug"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// writePiece is the size of the pieces in which a Writer writes, in bytes.
	writePiece = 1 << 20
	// WriteBytes is the memory of a Writer, which fills one piece while it writes another.
	WriteBytes = 2 * writePiece
)

// Writer writes a new file from start to end. It bypasses the page cache where the file system
// allows it: copying each page, placing it in the cache, and looking for pages to evict where a
// memory cgroup is full take several times the processor time of the write itself, and a direct
// read need not wait until the data is on the disk. Only one goroutine may use it; another
// goroutine writes the pieces.
type Writer struct {
	file    vfs.File
	buf     []byte // begins at a multiple of bufferAlign
	other   []byte // empty, or the piece that is being written
	writing chan struct{}
	direct  bool
	err     error // the first error; all later writes fail with it
}

// NewWriter returns a Writer to an empty file. The caller closes the file after Finish or Stop.
func NewWriter(f vfs.File) *Writer {
	idle := make(chan struct{})
	close(idle)
	both := AlignedBuffer(WriteBytes)
	return &Writer{file: f, buf: both[:0:writePiece], other: both[writePiece:writePiece],
		writing: idle, direct: setDirect(f, true) == nil}
}

// Write appends p to the file through a buffer. A later call may report its failure.
func (w *Writer) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		k := copy(w.buf[len(w.buf):cap(w.buf)], p)
		w.buf, p, n = w.buf[:len(w.buf)+k], p[k:], n+k
		if len(w.buf) < cap(w.buf) {
			continue
		}
		if w.wait(); w.err != nil {
			return n, w.err
		}
		w.begin()
	}
	return n, nil
}

// Finish writes what is left in the buffer. Nothing can be written after it.
func (w *Writer) Finish() error {
	if w.wait(); w.err != nil {
		return w.err
	}
	if w.direct && len(w.buf)%bufferAlign != 0 {
		w.cached()
	}
	w.flush(w.buf)
	return w.end()
}

// Stop waits for a write that is in progress. Nothing can be written after it.
func (w *Writer) Stop() {
	w.wait()
	_ = w.end()
}

// end makes all further calls fail, with the first error if there was one.
func (w *Writer) end() error {
	w.buf, w.other = nil, nil
	if w.err != nil {
		return w.err
	}
	w.err = errors.New("the file is finished")
	return nil
}

// begin writes the full buffer in another goroutine. The caller goes on with the other buffer.
func (w *Writer) begin() {
	piece := w.buf
	w.buf, w.other = w.other[:0], piece
	done := make(chan struct{})
	w.writing = done
	go func() {
		defer bug.Catch()
		defer close(done)
		w.flush(piece)
	}()
}

// wait waits until nothing is being written. Until then the writing goroutine owns err and direct.
func (w *Writer) wait() { <-w.writing }

// flush writes a piece. Some file systems accept O_DIRECT and then refuse to write with it: there,
// this and all further writes go through the page cache.
func (w *Writer) flush(left []byte) {
	for len(left) > 0 && w.err == nil {
		n, err := w.file.Write(left)
		left = left[max(0, n):]
		if w.err = err; w.direct && errors.Is(err, syscall.EINVAL) {
			w.err = nil
			w.cached()
		}
	}
}

// cached makes all further writes go through the page cache.
func (w *Writer) cached() {
	w.direct = false
	w.err = errors.Join(w.err, setDirect(w.file, false))
}

// WritePages appends pieces of memory to a file at its current position. It bypasses the page cache
// where the file system allows it, without a copy and without a goroutine. Each piece begins at a
// multiple of 4096 and has a multiple of 4096 bytes.
func WritePages(f vfs.File, pieces ...[]byte) error {
	w := Writer{file: f, direct: setDirect(f, true) == nil}
	for _, p := range pieces {
		for len(p) > 0 && w.err == nil {
			n := min(len(p), writePiece)
			w.flush(w.writable(p[:n]))
			p = p[n:]
		}
	}
	return w.err
}

// writable returns a piece that the file may be given: a copy if the file is not the operating
// system's, since such a file may change the bytes that are written to it.
func (w *Writer) writable(p []byte) []byte {
	if w.file.Fd() == vfs.InvalidFd {
		return slices.Clone(p)
	}
	return p
}
