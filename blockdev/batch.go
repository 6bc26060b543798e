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
	// triesMax bounds the attempts that make no progress at all, so that a kernel that always
	// answers EAGAIN leads to an error and not to a hang.
	triesMax = 500
	// failuresKept is how many failed requests of a batch its error lists.
	failuresKept = 8
	// heldScan bounds the search for a file among the files whose gates a batch holds. Most batches
	// use a few files, and holding one twice does no harm.
	heldScan = 8
)

// batch is one call of ReadBatch on its way through an engine. An engine takes requests by their
// index, from next on, and counts left down to 0; it allocates nothing for a request.
type batch struct {
	reqs  []Request
	held  []*file // files whose gates are held; a file may occur twice
	bytes int64
	onFS  int // counts the requests to files that are read through their file system

	part part         // the requests that the engine reads now
	next int          // the first request that was not taken; only the engine uses it
	left atomic.Int64 // requests that are not accounted for yet
	done chan struct{}

	stop      atomic.Bool // the batch was cancelled or has failed: no more requests are taken
	lost      atomic.Int64
	lostBytes atomic.Int64

	mu struct {
		sync.Mutex
		failed   int
		failures []error
	}
}

// part names a share of a batch. Where a batch holds files with and without a descriptor, a ring
// and a pool read one share after the other.
type part uint8

const (
	whole part = iota
	onDescriptor
	onFileSystem
)

var batches = sync.Pool{New: func() any { return &batch{done: make(chan struct{}, 1)} }}

// hold checks every request and enters the gates of their files. The caller calls release
// afterwards, also after an error.
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

// flaw returns what is wrong with a request to a file of size bytes, or "".
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

// run gives a part of the batch to an engine and waits until all its reads have ended.
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

// finish accounts for n requests. The last one wakes the caller, who may then use the batch again.
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

// dropRest drops the requests that no engine has taken yet, and returns how many they are.
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
// further reads would only wait for a broken disk.
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

// err returns the result of the whole batch once it is done.
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

// progress says how much of one request was read.
type progress struct {
	got   int // bytes that are in the buffer; a multiple of Align
	tries int // attempts since the last byte came
}

// advance evaluates the answer (n, err) to an attempt to read r.Buf[got:]. It returns whether the
// request is over, and its failure. After a short read it goes on at the last multiple of Align,
// which keeps file offset, memory address and length aligned; that reads fewer than Align bytes
// twice.
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
