package blockdev

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// engine reads batches.
type engine interface {
	// submit takes b and returns at once. The engine reads the requests in any order until b.stop
	// is set, and accounts for each by b.finish.
	submit(b *batch)
	// attach and detach are called at the opening and the closing of a file, so that an engine can
	// prepare for its reads.
	attach(f *file)
	detach(f *file)
	// peak returns the largest number of reads that were in flight at once.
	peak() int
	// close ends the engine's goroutines. No batch is being read when it is called.
	close() error
}

// hook changes the raw answer (n, err) to one attempt to read buf at off, before the device looks
// at it. Tests inject short reads and error codes by it; otherwise it is nil.
type hook func(path string, off int64, buf []byte, n int, err error) (int, error)

// device is the Device of all backends. It checks requests, counts them, and hands batches to its
// engine.
type device struct {
	info   Info
	engine engine
	gate   gate
	hook   hook // set by tests before the first read

	side struct {
		sync.Once
		pool *pool // reads files without a descriptor beside a ring; made on demand
	}
	cached struct {
		sync.Mutex
		files int
		first string // path and reason of the first file that is not read directly
	}
	reads, bytes, errors atomic.Uint64
	wait                 atomic.Int64
}

// ReadBatch reads all requests and returns when no read is under way any more.
func (d *device) ReadBatch(ctx context.Context, reqs []Request) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("blockdev: read a batch of %d requests: %w", len(reqs), err)
	}
	if !d.gate.enter() {
		return fmt.Errorf("blockdev: read a batch of %d requests: device is %w",
			len(reqs), ErrClosed)
	}
	defer d.gate.leave()
	if len(reqs) == 0 {
		return nil
	}
	start := time.Now()
	b := batches.Get().(*batch)
	defer b.release()
	if err := b.hold(d, reqs); err != nil {
		d.errors.Add(1)
		return err
	}
	d.run(ctx, b)
	d.count(b, time.Since(start))
	return b.err(ctx)
}

// run reads the batch in the engine. If the engine is a ring and some files have no descriptor, it
// reads those in the side pool afterwards.
func (d *device) run(ctx context.Context, b *batch) {
	_, isPool := d.engine.(*pool)
	switch {
	case isPool || b.onFS == 0:
		b.run(ctx, d.engine, whole)
	case b.onFS == len(b.reqs):
		b.run(ctx, d.sidePool(), whole)
	default:
		b.run(ctx, d.engine, onDescriptor)
		b.run(ctx, d.sidePool(), onFileSystem) // drops its part if the first one failed
	}
	if d.info.Backend == MMap {
		b.recheckMapped()
	}
}

func (d *device) sidePool() *pool {
	d.side.Do(func() {
		d.side.pool = newPool(d, min(d.info.QueueDepth, sideWorkers))
	})
	return d.side.pool
}

func (d *device) count(b *batch, took time.Duration) {
	d.reads.Add(uint64(int64(len(b.reqs)) - b.lost.Load()))
	d.bytes.Add(uint64(b.bytes - b.lostBytes.Load()))
	d.errors.Add(uint64(b.mu.failed))
	d.wait.Add(int64(took))
}

// noteCached notes, for Info, that a file is read through the page cache, and why.
func (d *device) noteCached(path, reason string) {
	d.cached.Lock()
	defer d.cached.Unlock()
	if d.cached.files++; d.cached.files == 1 {
		d.cached.first = path + ": " + reason
	}
}

// Info returns which backend this is, why, and which files are read in another way.
func (d *device) Info() Info {
	info := d.info
	d.cached.Lock()
	defer d.cached.Unlock()
	if n := d.cached.files; n > 0 {
		info.Why += fmt.Sprintf("; %d opened without O_DIRECT and read through the page cache, "+
			"first %s", n, d.cached.first)
	}
	return info
}

// Stats returns the counters.
func (d *device) Stats() Stats {
	return Stats{Reads: d.reads.Load(), Bytes: d.bytes.Load(), Errors: d.errors.Load(),
		Wait: time.Duration(d.wait.Load()), Peak: d.engine.peak()}
}

// Close waits for the batches that are being read and ends the engine.
func (d *device) Close() error {
	if !d.gate.shut() {
		return fmt.Errorf("blockdev: close device: %w", ErrClosed)
	}
	d.side.Do(func() {})
	if d.side.pool != nil {
		d.side.pool.end()
	}
	if err := d.engine.close(); err != nil {
		return fmt.Errorf("blockdev: close device: %w", err)
	}
	return nil
}

const (
	// poolDepth is the default depth of a pool. 32 reads are as fast as fio; 64 gain 3 % and double
	// the latency.
	poolDepth = 32
	// ringDepth is the default depth of a ring. Depth costs a ring nothing, and completions can be
	// awaited 16 at a time.
	ringDepth = 128
	// depthMax keeps a typing mistake from starting a million workers.
	depthMax = 4096
)

// Open returns a device. Auto tries io_uring with a real read, and takes the pread pool if that
// fails; asking for URing where it does not work is an error.
func Open(opt Options) (Device, error) {
	if opt.QueueDepth < 0 || opt.QueueDepth > depthMax {
		return nil, fmt.Errorf("blockdev: queue depth %d is not between 1 and %d",
			opt.QueueDepth, depthMax)
	}
	opt.Backend = cmp.Or(opt.Backend, Auto)
	d := &device{info: Info{Backend: opt.Backend, QueueDepth: opt.QueueDepth}}
	switch opt.Backend {
	case Auto, URing:
		return d.openRing()
	case Pread:
		return d.openPool("chosen: a pool of direct reads; io_uring was not tried"), nil
	case Buffered:
		return d.openPool("chosen: reads through the page cache"), nil
	case MMap:
		if !hasDescriptors {
			return nil, fmt.Errorf("blockdev: backend mmap: only on Linux; use %s", Buffered)
		}
		return d.openPool("chosen: copies out of memory maps advised for random access"), nil
	case Memory:
		return d.openPool("chosen: reads by each file system's own ReadAt"), nil
	}
	return nil, fmt.Errorf("blockdev: backend %q is none of %s, %s, %s, %s, %s and %s",
		opt.Backend, Auto, URing, Pread, Buffered, MMap, Memory)
}

// openPool starts as many workers as the queue is deep. why is the reason that Info reports.
func (d *device) openPool(why string) Device {
	d.info.QueueDepth = cmp.Or(d.info.QueueDepth, poolDepth)
	if !hasDescriptors {
		why += "; without O_DIRECT on this operating system"
	}
	d.info.Why = why
	d.engine = newPool(d, d.info.QueueDepth)
	return d
}

func (d *device) openRing() (Device, error) {
	depth := d.info.QueueDepth
	depth = cmp.Or(depth, ringDepth)
	ring, how, err := newURing(d, depth)
	if err == nil {
		d.engine, d.info = ring, Info{Backend: URing, QueueDepth: depth, Why: how}
		return d, nil
	}
	if d.info.Backend == URing {
		return nil, fmt.Errorf("blockdev: backend %s: %s; use %s or %s: %w",
			URing, ringRefusal(err), Auto, Pread, err)
	}
	d.info.Backend = Pread
	return d.openPool(ringRefusal(err) + ": a pool of direct reads instead"), nil
}

// gate counts who is inside and can be closed once: after shut returns, nobody is inside and nobody
// can enter. Unlike with a RWMutex, one goroutine may enter twice.
type gate struct {
	mu struct {
		sync.Mutex
		inside int
		closed bool
		empty  *sync.Cond // set by shut
	}
}

// enter reports whether the gate is still open. If it is, the caller must call leave later.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return false
	}
	g.mu.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	g.mu.inside--
	if g.mu.inside == 0 && g.mu.empty != nil {
		g.mu.empty.Broadcast()
	}
	g.mu.Unlock()
}

// shut closes the gate and waits until nobody is inside. It returns false if the gate was closed
// before.
func (g *gate) shut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return false
	}
	g.mu.closed = true
	g.mu.empty = sync.NewCond(&g.mu)
	for g.mu.inside > 0 {
		g.mu.empty.Wait()
	}
	return true
}
