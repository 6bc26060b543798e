package blockdev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

const (
	// triesMax bounds attempts that make no progress at all, so that a kernel that always answers
	// EAGAIN is an error and not a hang.
	triesMax = 500
	// failuresKept is how many failed requests of a batch the error lists.
	failuresKept = 8
	// heldScan bounds the search for a file among those whose gates a batch holds: a few files make
	// up most batches, and holding one twice does no harm.
	heldScan = 8
)

// batch is one call of ReadBatch on its way through an engine. Nothing is allocated per request:
// an engine takes indices from next on, and counts left down to 0.
type batch struct {
	reqs  []Request
	held  []*file // files whose gates are held; one may be there twice
	bytes int64
	onFS  int // requests to files that are read through their file system

	part part         // which of the requests the engine is to read
	next int          // first request not yet taken; belongs to the engine
	left atomic.Int64 // requests not yet accounted for
	done chan struct{}

	stop      atomic.Bool // cancelled or failed: take no more requests
	lost      atomic.Int64
	lostBytes atomic.Int64

	mu struct {
		sync.Mutex
		failed   int
		failures []error
	}
}

// part is a share of a batch: a ring and a pool read one after the other where a batch holds files
// with and without a descriptor.
type part uint8

const (
	whole part = iota
	onDescriptor
	onFileSystem
)

var batches = sync.Pool{New: func() any { return &batch{done: make(chan struct{}, 1)} }}

// hold checks every request and enters the gates of their files. After an error release undoes
// what was done.
func (b *batch) hold(d *device, reqs []Request) error {
	b.reqs = reqs
	var last *file
	for i := range reqs {
		r := &reqs[i]
		f, ok := r.File.(*file)
		if !ok || f == nil || f.dev != d {
			return fmt.Errorf("blockdev: request %d: %w: its file was not opened by this device",
				i, ErrInvalid)
		}
		if f != last && !slices.Contains(b.held[:min(len(b.held), heldScan)], f) {
			if !f.gate.enter() {
				return &ReadError{Path: f.path, Off: r.Off, Len: len(r.Buf), Err: ErrClosed}
			}
			b.held = append(b.held, f)
		}
		last = f
		if msg := flaw(r, f.size); msg != "" {
			return &ReadError{Path: f.path, Off: r.Off, Len: len(r.Buf),
				Err: fmt.Errorf("%w: %s", ErrInvalid, msg)}
		}
		b.bytes += int64(len(r.Buf))
		if f.how == viaFS {
			b.onFS++
		}
	}
	return nil
}

// flaw says what is wrong with a request to a file of size bytes, if anything.
func flaw(r *Request, size int64) string {
	n := int64(len(r.Buf))
	switch {
	case r.Off < 0 || n > size || r.Off > size-n:
		return fmt.Sprintf("the range is not inside the file of %d bytes", size)
	case (r.Off|n)%Align != 0:
		return fmt.Sprintf("offset and length must be multiples of %d", Align)
	case n > 0 && addressOf(r.Buf)%Align != 0:
		return fmt.Sprintf("the buffer must begin at a multiple of %d: use AlignedBuffer", Align)
	}
	return ""
}

// release leaves the files and gives the batch back to the pool.
func (b *batch) release() {
	for i, f := range b.held {
		f.gate.leave()
		b.held[i] = nil
	}
	done, held := b.done, b.held[:0]
	*b = batch{done: done, held: held}
	batches.Put(b)
}

// run gives a part of the batch to an engine and waits until none of its reads is under way.
func (b *batch) run(ctx context.Context, e engine, p part) {
	b.part, b.next = p, 0
	b.left.Store(int64(len(b.reqs)))
	e.submit(b)
	if ctx.Done() != nil {
		select {
		case <-b.done:
			return
		case <-ctx.Done():
			b.stop.Store(true)
		}
	}
	<-b.done
}

// mine reports whether a request to f belongs to the part that is being read.
func (b *batch) mine(f *file) bool {
	return b.part == whole || (b.part == onFileSystem) == (f.how == viaFS)
}

// finish accounts for n requests; the last one wakes the caller, who may then reuse the batch.
func (b *batch) finish(n int) {
	if b.left.Add(-int64(n)) == 0 {
		b.done <- struct{}{}
	}
}

// drop counts request i as not read.
func (b *batch) drop(i int) {
	b.lost.Add(1)
	b.lostBytes.Add(int64(len(b.reqs[i].Buf)))
}

// dropRest drops what no engine has taken yet and returns how many requests that were.
func (b *batch) dropRest() int {
	n := len(b.reqs) - b.next
	for ; b.next < len(b.reqs); b.next++ {
		if b.mine(b.reqs[b.next].File.(*file)) {
			b.drop(b.next)
		}
	}
	return n
}

// fail records the failure of request i and stops the batch: its buffers are worthless now, and
// going on would only wait for a broken disk.
func (b *batch) fail(i int, err error) {
	b.drop(i)
	b.stop.Store(true)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.failed++
	if len(b.mu.failures) < failuresKept {
		b.mu.failures = append(b.mu.failures, err)
	}
}

// err is the result of the whole batch, once it is done.
func (b *batch) err(ctx context.Context) error {
	if b.lost.Load() == 0 {
		return nil
	}
	failures := b.mu.failures
	if more := b.mu.failed - len(failures); more > 0 {
		failures = append(failures, fmt.Errorf("blockdev: %d more reads of the batch failed", more))
	}
	if len(failures) == 1 {
		return failures[0]
	}
	if len(failures) > 1 {
		return errors.Join(failures...)
	}
	return fmt.Errorf("blockdev: read a batch of %d requests: %w", len(b.reqs), ctx.Err())
}

// progress is how far one request has come.
type progress struct {
	got   int // bytes that are in the buffer; a multiple of Align
	tries int // attempts since the last byte
}

// advance digests the answer (n, err) to an attempt to read r.Buf[got:]. It reports whether the
// request is over, and its failure. A short read goes on at the last multiple of Align, which
// keeps file offset, memory address and length aligned; it rereads less than Align bytes.
func (p *progress) advance(r *Request, n int, err error) (over bool, failure error) {
	if err == nil && n == len(r.Buf)-p.got {
		return true, nil
	}
	f := r.File.(*file)
	p.tries++
	switch got := p.got + max(n, 0); {
	case errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.EAGAIN):
	case err != nil:
		return true, readError(r, f, got, err)
	default:
		size, err := f.sizeNow()
		if err != nil {
			return true, readError(r, f, got, err)
		}
		if size < r.Off+int64(len(r.Buf)) {
			return true, readError(r, f, got, ErrTruncated)
		}
		if next := got &^ (Align - 1); next > p.got {
			p.got, p.tries = next, 0
		}
	}
	if p.tries < triesMax {
		return false, nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return true, readError(r, f, p.got, fmt.Errorf("no progress in %d attempts: %w", p.tries, err))
}

func readError(r *Request, f *file, got int, err error) error {
	return &ReadError{Path: f.path, Off: r.Off, Len: len(r.Buf), Got: got, Err: err}
}
