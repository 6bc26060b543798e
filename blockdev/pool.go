package blockdev

import (
	"runtime/debug"
	"sync"

	"gdb/internal/bug"
)

const (
	// sideWorkers is the number of workers that read files without a descriptor beside a ring. They
	// copy memory, so few are enough.
	sideWorkers = 4
	// chunkMax bounds the requests that are taken at once: enough to make the lock cheap, few
	// enough that callers take turns and a stopped batch ends soon.
	chunkMax = 16
)

// pool is the engine of blocking reads. It has depth workers, each with one read in flight. Workers
// take chunks of requests from the batches in turn, so that a small batch does not wait for a large
// one.
type pool struct {
	dev   *device
	depth int

	mu struct {
		sync.Mutex
		work    sync.Cond
		active  []*batch // batches that have requests left to take
		busy    int
		busyMax int
		closing bool
	}
	workers sync.WaitGroup
}

func newPool(d *device, depth int) *pool {
	p := &pool{dev: d, depth: depth}
	p.mu.work.L = &p.mu
	for range depth {
		p.workers.Go(p.work)
	}
	return p
}

func (p *pool) attach(*file) {}
func (p *pool) detach(*file) {}

func (p *pool) submit(b *batch) {
	p.mu.Lock()
	p.mu.active = append(p.mu.active, b)
	p.mu.Unlock()
	for range min(len(b.reqs), p.depth) {
		p.mu.work.Signal()
	}
}

// work is the loop of one worker.
func (p *pool) work() {
	defer bug.Catch()
	debug.SetPanicOnFault(true) // a fault in a memory map is a read error: see copyMapped
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for len(p.mu.active) == 0 {
			if p.mu.closing {
				return
			}
			p.mu.work.Wait()
		}
		b, lo, hi, dropped := p.takeLocked()
		p.mu.busy++
		p.mu.busyMax = max(p.mu.busyMax, p.mu.busy)
		p.mu.Unlock()
		p.readRange(b, lo, hi)
		p.mu.Lock()
		p.mu.busy--
		b.finish(hi - lo + dropped)
	}
}

// takeLocked takes requests lo to hi of the first batch and moves that batch to the end of the
// line. If the batch has stopped, it drops all requests that are left.
func (p *pool) takeLocked() (b *batch, lo, hi, dropped int) {
	line := p.mu.active
	b = line[0]
	if b.stop.Load() {
		dropped = b.dropRest()
	}
	rest := len(b.reqs) - b.next
	chunk := min(rest, max(1, min(rest/(4*p.depth), chunkMax)))
	lo, hi = b.next, b.next+chunk
	b.next = hi
	copy(line, line[1:])
	if hi < len(b.reqs) {
		line[len(line)-1] = b
	} else {
		line[len(line)-1] = nil
		p.mu.active = line[:len(line)-1]
	}
	return b, lo, hi, dropped
}

func (p *pool) readRange(b *batch, lo, hi int) {
	for i := lo; i < hi; i++ {
		r := &b.reqs[i]
		f := r.File.(*file)
		if !b.mine(f) {
			continue
		}
		if b.stop.Load() {
			b.drop(i)
			continue
		}
		p.readOne(b, i, r, f)
	}
}

// readOne reads one request and repeats attempts until the request is over or its batch has
// stopped.
func (p *pool) readOne(b *batch, i int, r *Request, f *file) {
	var at progress
	for {
		rest, off := r.Buf[at.got:], r.Off+int64(at.got)
		n, err := f.readAt(rest, off)
		if p.dev.hook != nil {
			n, err = p.dev.hook(f.path, off, rest, n, err)
		}
		over, failure := at.advance(r, n, err)
		if failure != nil {
			b.fail(i, failure)
		}
		if over {
			return
		}
		if b.stop.Load() {
			b.drop(i)
			return
		}
	}
}

func (p *pool) peak() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.busyMax
}

// end stops the workers and waits until they have ended.
func (p *pool) end() {
	p.mu.Lock()
	p.mu.closing = true
	p.mu.Unlock()
	p.mu.work.Broadcast()
	p.workers.Wait()
}

func (p *pool) close() error {
	p.end()
	return nil
}
