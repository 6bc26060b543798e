// Package blockdev reads batches of aligned blocks from files: by io_uring, by a pool of pread
// calls, through the page cache, through a memory map, or from an in-memory file system. Its Writer
// writes new files past the page cache.
//
// All backends keep one contract, which package devtest checks: ReadBatch returns when every
// request of the batch is done, each buffer then holds exactly the bytes of the file, and any
// error, short read or cancellation is reported with file, offset and length. Nothing is retried
// silently but EINTR and EAGAIN, and a short read inside the file is continued.
package blockdev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Align is the unit of offsets, lengths and buffer addresses of every request: what O_DIRECT needs
// on the disks that are made now. Opened files must be a whole number of Align bytes long.
const Align = 512

// Request asks for len(Buf) bytes of File at Off. Off and len(Buf) are multiples of Align and Buf
// begins at a multiple of Align (see AlignedBuffer). The range lies inside the file.
type Request struct {
	File File
	Off  int64
	Buf  []byte
}

// File is a file opened by a Device, for reading.
type File interface {
	// Path is the name the file was opened with, for messages.
	Path() string
	// Size is the length of the file in bytes when it was opened.
	Size() int64
	io.Closer
}

// Device reads batches. All methods may be called from any goroutine; batches of several
// goroutines share the queue depth.
type Device interface {
	// OpenFile opens path of fs for reading.
	OpenFile(fs vfs.FS, path string) (File, error)
	// ReadBatch reads all requests, in any order, and returns when all are done. After an error
	// the buffers' contents are undefined, but no read is under way any more: they can be reused.
	// The error is a *ReadError, joined with others if several failed, or the context's.
	ReadBatch(ctx context.Context, reqs []Request) error
	// Info says which backend this is and why.
	Info() Info
	// Stats returns counters since the device was opened.
	Stats() Stats
	// Close waits for reads under way and frees the queue. Files are closed by their owners,
	// before.
	Close() error
}

// Backend names a way to read.
type Backend string

// The backends. Auto probes: io_uring if allowed, else the pread pool; the memory backend is
// chosen by itself for files of a file system that is not the operating system's.
const (
	Auto     Backend = "auto"
	URing    Backend = "uring"
	Pread    Backend = "pread"
	Buffered Backend = "buffered"
	MMap     Backend = "mmap"
	Memory   Backend = "memory"
)

// Backends are those that a user may choose; the memory backend is for file systems in memory.
func Backends() []Backend { return []Backend{Auto, URing, Pread, Buffered, MMap} }

// Options configure a Device. The zero value is ready to use.
type Options struct {
	// Backend is how to read. Default Auto.
	Backend Backend

	// QueueDepth bounds the reads in flight, over all callers. More does not help once the disk
	// is saturated; measure with "gdb bench io". Default 32 for pread, buffered and mmap, 128 for
	// uring.
	QueueDepth int
}

// Info describes an opened device.
type Info struct {
	Backend    Backend
	QueueDepth int
	// Why tells what was probed and what spoke against the backends not chosen, in one line.
	Why string
}

// Stats are monotonic counters of a device.
type Stats struct {
	Reads  uint64        // requests done
	Bytes  uint64        // bytes read
	Errors uint64        // requests failed
	Wait   time.Duration // time callers spent inside ReadBatch, summed
	Peak   int           // most reads that were in flight at once; at most the queue depth
}

// Errors that ReadError wraps, besides those of the operating system.
var (
	// ErrTruncated says that the file ended inside the range: it is shorter than it was written.
	ErrTruncated = errors.New("file ends inside the range")
	// ErrClosed says that the device or file is closed.
	ErrClosed = errors.New("closed")
	// ErrInvalid says that a request is not aligned, lies outside its file, or names a file of
	// another device; nothing of its batch was read.
	ErrInvalid = errors.New("invalid request")
	// ErrLength says that a file is not a whole number of Align bytes long, as all of gdb's are.
	ErrLength = errors.New("the file is cut off or is not one of gdb's")
)

// ReadError is a failed request.
type ReadError struct {
	Path string
	Off  int64
	Len  int
	Got  int // bytes read before the failure
	Err  error
}

// Error names file, range and cause.
func (e *ReadError) Error() string {
	return fmt.Sprintf("blockdev: read %s at offset %d, %d bytes (got %d): %v",
		e.Path, e.Off, e.Len, e.Got, e.Err)
}

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }
