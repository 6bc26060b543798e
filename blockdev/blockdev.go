// Package blockdev reads batches of aligned blocks from files: by io_uring, by a pool of pread
// calls, through the page cache, through a memory map, or from an in-memory file system. Its Writer
// writes new files past the page cache.
//
// All backends keep one contract, which TestContract checks: ReadBatch returns when every
// request of the batch is done, each buffer then holds exactly the bytes of the file, and any
// error, short read or cancellation is reported with file, offset and length. Nothing is retried
// silently but EINTR and EAGAIN, and a short read inside the file is continued.
package blockdev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"
	"unsafe"

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
	// Path returns the name by which the file was opened, for messages.
	Path() string
	// Size returns the length of the file in bytes when it was opened.
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
	// Info returns which backend this is and why it was chosen.
	Info() Info
	// Stats returns the counters since the device was opened.
	Stats() Stats
	// Close waits for reads that are in flight and frees the queue. The owners of files close them
	// before.
	Close() error
}

// Backend names a way to read.
type Backend string

// The backends. Auto tries io_uring and takes the pread pool where that is not allowed. The memory
// backend is used without being asked for, for files of a file system that is not the operating
// system's.
const (
	Auto     Backend = "auto"
	URing    Backend = "uring"
	Pread    Backend = "pread"
	Buffered Backend = "buffered"
	MMap     Backend = "mmap"
	Memory   Backend = "memory"
)

// Backends returns the backends that a user may choose. The memory backend is not among them.
func Backends() []Backend { return []Backend{Auto, URing, Pread, Buffered, MMap} }

// Options configure a Device. The zero value is ready to use.
type Options struct {
	// Backend is the way to read. The default is Auto.
	Backend Backend

	// QueueDepth bounds the reads in flight, over all callers. A deeper queue does not help once
	// the disk is saturated; "gdb bench io" measures that. The default is 32 for pread, buffered
	// and mmap, and 128 for uring.
	QueueDepth int
}

// Info describes an opened device.
type Info struct {
	Backend    Backend
	QueueDepth int
	// Why says in one line what was tried, and why other backends were not chosen.
	Why string
}

// Stats holds counters of a device, which only grow.
type Stats struct {
	Reads  uint64        // requests that were read
	Bytes  uint64        // bytes read
	Errors uint64        // requests failed
	Wait   time.Duration // time that callers spent inside ReadBatch, summed
	Peak   int           // the largest number of reads in flight at once; at most the queue depth
}

// The errors that ReadError wraps, besides errors of the operating system.
var (
	// ErrTruncated says that the file ends inside the range: it is shorter than when it was
	// written.
	ErrTruncated = errors.New("file ends inside the range")
	// ErrClosed says that the device or file is closed.
	ErrClosed = errors.New("closed")
	// ErrInvalid says that a request is not aligned, lies outside its file, or names a file of
	// another device; nothing of its batch was read.
	ErrInvalid = errors.New("invalid request")
	// ErrLength says that the length of a file is not a multiple of Align, as it is for all files
	// of gdb.
	ErrLength = errors.New("the file is cut off or is not one of gdb's")
)

// ReadError describes a failed request.
type ReadError struct {
	Path string
	Off  int64
	Len  int
	Got  int // bytes that were read before the failure
	Err  error
}

// Error names file, range and cause.
func (e *ReadError) Error() string {
	return fmt.Sprintf("blockdev: read %s at offset %d, %d bytes (got %d): %v",
		e.Path, e.Off, e.Len, e.Got, e.Err)
}

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }

// bufferAlign is the alignment of AlignedBuffer: a page, so that a read of 4 KiB touches one page
// of memory and not two.
const bufferAlign = 4096

const _ uint = -(bufferAlign % Align) // an aligned buffer satisfies every request

// AlignedBuffer returns n zeroed bytes that begin at a multiple of 4096. They lie on the Go heap,
// in an allocation 4 KiB larger, and are freed like any slice: Go's collector never moves heap
// memory, so the kernel may read into it. Large and long-lived buffers belong into a mem.Arena,
// which is page aligned too, outside the heap and counted against --memory.
func AlignedBuffer(n int) []byte {
	b := make([]byte, n+bufferAlign)
	skip := -int(addressOf(b)) & (bufferAlign - 1)
	return b[skip : skip+n : skip+n]
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// extraProcs is how many more threads may run Go code than there are cores. It makes 16 on 2 cores:
// from there on a pool of 32 blocking reads keeps the disk as busy as fio does.
const extraProcs = 14

// RaiseGOMAXPROCS lets the process run NumCPU+14 threads of Go code, and returns the number that
// now holds. The program calls it once, first thing in main; compute bounds its own parallelism by
// worker counts. Why: a goroutine that blocks in pread or in a page fault keeps its P until the
// runtime's monitor takes it away, 20 µs to 10 ms later. With as many Ps as cores few reads are
// ever in flight and the computing goroutines starve: on 2 cores, 59 K reads/s with 11 % of the
// compute left, against 102 K and 56 % with 16 Ps. A higher GOMAXPROCS in the environment stays.
func RaiseGOMAXPROCS() int {
	want := runtime.NumCPU() + extraProcs
	if now := runtime.GOMAXPROCS(0); now >= want {
		return now
	}
	runtime.GOMAXPROCS(want)
	return want
}
