package blockdev

import (
	"errors"
	"slices"
	"syscall"

	"gdb/internal/bug"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// writePiece is the size of the pieces in which a Writer writes.
	writePiece = 1 << 20
	// WriteBytes is the memory of a Writer: a piece is filled while one is written.
	WriteBytes = 2 * writePiece
)

// Writer writes a new file from start to end, past the page cache where the file system allows it:
// a copy of each page, its place in the cache, and the search for pages to give up where a memory
// cgroup is full take several times the processor that the write itself does, and a direct read
// need not wait for what is not on the disk yet. One goroutine uses it; another writes what it
// was given.
type Writer struct {
	file    vfs.File
	buf     []byte // begins at a multiple of bufferAlign
	other   []byte // empty, or what is being written
	writing chan struct{}
	direct  bool
	err     error // the first; all later writes fail with it
}

// NewWriter writes to a file that is empty, which its caller closes after Finish or Stop.
func NewWriter(f vfs.File) *Writer {
	idle := make(chan struct{})
	close(idle)
	both := AlignedBuffer(WriteBytes)
	return &Writer{file: f, buf: both[:0:writePiece], other: both[writePiece:writePiece],
		writing: idle, direct: setDirect(f, true) == nil}
}

// Write appends p to the file, by way of a buffer. What goes wrong may be reported by a later call.
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

// Finish writes what is left in the buffer; nothing can be written after it.
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

// Stop waits for a write that is under way; nothing can be written after it.
func (w *Writer) Stop() {
	w.wait()
	_ = w.end()
}

// end makes all further calls fail, with the first error that there was.
func (w *Writer) end() error {
	w.buf = w.buf[:0:0]
	if w.err != nil {
		return w.err
	}
	w.err = errors.New("the file is finished")
	return nil
}

// begin writes the full buffer, beside what its owner does, who goes on with the other one.
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

// wait returns when nothing is being written: its goroutine has err and direct until then.
func (w *Writer) wait() { <-w.writing }

// flush writes a piece. Some file systems take O_DIRECT and no write with it: there, what follows
// goes through the page cache.
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

// cached makes all writes from here on go through the page cache.
func (w *Writer) cached() {
	w.direct = false
	w.err = errors.Join(w.err, setDirect(w.file, false))
}

// WritePages writes pieces of memory to a file one after the other, from where it stands, past the
// page cache where the file system allows it: without a copy of them, and without a goroutine. Each
// begins at a multiple of 4096 and has a multiple of 4096 bytes.
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

// writable is a piece that the file may be given: files that are not the system's may change what
// is written to them.
func (w *Writer) writable(p []byte) []byte {
	if w.file.Fd() == vfs.InvalidFd {
		return slices.Clone(p)
	}
	return p
}
