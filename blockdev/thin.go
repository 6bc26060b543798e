package blockdev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"
)

// RaiseGOMAXPROCS lets blocking reads keep their processors while compute goes on: a goroutine in
// pread holds one until the runtime takes it back. Call once, at the start of a process.
func RaiseGOMAXPROCS() { runtime.GOMAXPROCS(runtime.NumCPU() + 14) }

// AlignedBuffer returns n zeroed bytes on the Go heap that begin at a multiple of 4096.
func AlignedBuffer(n int) []byte {
	b := make([]byte, n+4096)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 4095)
	return b[skip : skip+n : skip+n]
}

// Open opens a device that reads through the file system.
func Open(opt Options) (Device, error) {
	if opt.QueueDepth == 0 {
		opt.QueueDepth = 32
	}
	return &thinDevice{opt: opt}, nil
}

type thinDevice struct {
	opt                  Options
	reads, bytes, failed atomic.Uint64
	wait                 atomic.Int64
}

type thinFile struct {
	vfs.File
	path string
	size int64
}

// Path is the name the file was opened with.
func (f *thinFile) Path() string { return f.path }

// Size is the length when the file was opened.
func (f *thinFile) Size() int64 { return f.size }

// OpenFile opens path of fs.
func (d *thinDevice) OpenFile(fs vfs.FS, path string) (File, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &thinFile{File: f, path: path, size: info.Size()}, nil
}

// ReadBatch reads all requests.
func (d *thinDevice) ReadBatch(ctx context.Context, reqs []Request) error {
	start := time.Now()
	defer func() { d.wait.Add(int64(time.Since(start))) }()
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range min(d.opt.QueueDepth, len(reqs)) {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(reqs) || ctx.Err() != nil {
					return ctx.Err()
				}
				if err := d.read(&reqs[i]); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

func (d *thinDevice) read(r *Request) error {
	f, ok := r.File.(*thinFile)
	if !ok {
		return fmt.Errorf("blockdev: file %v is not of this device", r.File)
	}
	n, err := f.ReadAt(r.Buf, r.Off)
	if n < len(r.Buf) {
		if errors.Is(err, io.EOF) {
			err = ErrTruncated
		}
		d.failed.Add(1)
		return &ReadError{Path: f.path, Off: r.Off, Len: len(r.Buf), Got: n, Err: err}
	}
	d.reads.Add(1)
	d.bytes.Add(uint64(n))
	return nil
}

// Info says which backend this is.
func (d *thinDevice) Info() Info {
	return Info{Backend: Buffered, QueueDepth: d.opt.QueueDepth, Why: "through the file system"}
}

// Stats returns the counters.
func (d *thinDevice) Stats() Stats {
	return Stats{Reads: d.reads.Load(), Bytes: d.bytes.Load(), Errors: d.failed.Load(),
		Wait: time.Duration(d.wait.Load())}
}

// Close does nothing.
func (d *thinDevice) Close() error { return nil }
