package blockdev

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
)

// copyMapped copies the bytes at off of a mapped file. If the file was cut off after it was mapped,
// or the disk fails, the access faults: workers turn faults into panics (SetPanicOnFault), and
// copyMapped turns such a panic into an answer like pread's, a short read or EIO.
func copyMapped(buf, m []byte, off int64) (n int, err error) {
	src := m[off : off+int64(len(buf))]
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			first := addressOf(src)
			if fault.Addr() < first || fault.Addr() >= first+uintptr(len(src)) {
				panic(fault)
			}
			n, err = 0, fmt.Errorf("memory map: fault at byte %d of the range: %w",
				fault.Addr()-first, syscall.EIO)
		default:
			panic(fault)
		}
	}()
	return copy(buf, src), nil
}

// recheckMapped compares the lengths of the files after the copies were made. It is needed because
// the page that holds the new end of a truncated file does not fault: the bytes after the end read
// as zeros.
func (b *batch) recheckMapped() {
	for _, f := range b.held {
		if f.how != mapped {
			continue
		}
		size, err := f.sizeNow()
		if err == nil && size >= f.size {
			continue
		}
		for i := range b.reqs {
			r := &b.reqs[i]
			if r.File.(*file) != f || err == nil && r.Off+int64(len(r.Buf)) <= size {
				continue
			}
			failure := ErrTruncated
			if err != nil {
				failure = err
			}
			got := min(max(0, size-r.Off), int64(len(r.Buf)))
			b.replaceFailure(i, readError(r, f, int(got), failure))
		}
	}
}

// replaceFailure records the truncation as the failure of request i. It replaces a fault that was
// reported for the same request, since the short file caused it.
func (b *batch) replaceFailure(i int, failure error) {
	r := &b.reqs[i]
	for k, old := range b.mu.failures {
		var re *ReadError
		if errors.As(old, &re) && re.Path == r.File.Path() && re.Off == r.Off &&
			re.Len == len(r.Buf) {
			b.mu.failures[k] = failure
			return
		}
	}
	b.fail(i, failure)
}
