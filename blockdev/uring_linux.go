package blockdev

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gdb/internal/bug"
	"gdb/internal/mem"

	"golang.org/x/sys/unix"
)

const (
	// fileSlots is how many files at once are registered with the ring. Further files are read by
	// descriptor, which takes a few percent more CPU.
	fileSlots = 256
	// readMax is the largest read of one submission, whose length field has 32 bits. The rest of a
	// longer request is read like the rest of a short read.
	readMax = 1 << 30
	// waitMax bounds the completions that one system call waits for.
	waitMax = 16
	// roundsPerTurn is how many system calls the ring's goroutine makes before it yields. A
	// goroutine that never yields is overdue for the runtime's monitor, which then takes its P away
	// in every system call and itself wakes every 20 µs: a seventh of the CPU of a read.
	roundsPerTurn = 16
	// tryLimit is how long the test read may take. It reads from memory, so a kernel that takes
	// longer is taken not to answer.
	tryLimit = 5 * time.Second
)

// unanswered holds the buffers of test reads that were given up, since the kernel may still write
// to them.
var unanswered struct {
	sync.Mutex
	buffers [][]byte
}

// uring is the engine of one io_uring. A goroutine that is locked to its thread owns the ring and
// all fields except q; callers reach it only through q. It waits for several completions at a time:
// a system call for each would double the CPU time of a read.
type uring struct {
	dev   *device
	depth int
	ring  *ring
	files []bool // whether each slot of the ring's file table is taken

	active   []*batch // batches that have requests left to take
	slots    []inFlight
	free     []uint32 // slots without a read
	again    []uint32 // slots whose read goes on after a short or interrupted attempt
	inFlight int
	highest  atomic.Int64

	q struct {
		sync.Mutex
		work     sync.Cond
		batches  []*batch
		commands []func()
		closing  bool
	}
	ended chan error
}

// inFlight is a request of a batch that the kernel is reading.
type inFlight struct {
	b  *batch
	i  int
	at progress
}

// newURing starts the engine, and makes one read to prove that the kernel allows it.
func newURing(d *device, depth int) (engine, string, error) {
	u := &uring{dev: d, depth: depth, slots: make([]inFlight, depth), ended: make(chan error, 1)}
	u.q.work.L = &u.q
	for i := range depth {
		u.free = append(u.free, uint32(depth-1-i))
	}
	started := make(chan error)
	go u.run(started)
	if err := <-started; err != nil {
		return nil, "", err
	}
	how := fmt.Sprintf("io_uring works here (a test read, %s)", u.ring.mode)
	if limit := lockLimit(); limit >= 0 {
		how += "; buffers are not registered, so the limit of locked memory, " +
			mem.FormatSize(limit) + ", does not matter"
	}
	return u, how, nil
}

// ringRefusal says in words why no ring could be made.
func ringRefusal(err error) string {
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return "io_uring is forbidden here (" + errorText(err) +
			"; by a container's system call filter or kernel.io_uring_disabled)"
	case errors.Is(err, unix.ENOSYS):
		return "this kernel or sandbox has no io_uring (" + errorText(err) + ")"
	case errors.Is(err, unix.ENOMEM):
		return "io_uring may not lock enough memory (" + errorText(err) + "; the limit is " +
			mem.FormatSize(max(0, lockLimit())) + ": raise ulimit -l)"
	}
	if errors.Is(err, unix.ETIME) {
		return "io_uring does not answer here (a test read took over " + tryLimit.String() + ")"
	}
	return "io_uring does not work here (" + err.Error() + ")"
}

// lockLimit returns the limit of locked memory in bytes; -1 if there is none or it is not known.
func lockLimit() int64 {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim) != nil || lim.Cur == unix.RLIM_INFINITY {
		return -1
	}
	return int64(lim.Cur)
}

// run is the loop of the goroutine that owns the ring.
func (u *uring) run(started chan<- error) {
	defer bug.Catch()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := u.start(); err != nil {
		started <- err
		return
	}
	started <- nil
	for k := 1; u.take(); k++ {
		if k%roundsPerTurn == 0 {
			runtime.Gosched()
		}
		u.fill()
		if u.inFlight > 0 {
			if err := u.ring.enter(u.leastWait()); err != nil {
				panic("BUG: blockdev: " + err.Error())
			}
			u.ring.reap(u.complete)
		}
	}
	u.ended <- u.ring.close()
}

func (u *uring) start() (err error) {
	if u.ring, err = newRing(u.depth); err != nil {
		return err
	}
	if err := u.ring.tryRead(); err != nil {
		return errors.Join(err, u.ring.close())
	}
	// If the table cannot be made, files are read by descriptor.
	if u.ring.registerFiles(fileSlots) == nil {
		u.files = make([]bool, fileSlots)
	}
	return nil
}

// tryRead reads a page of a file in memory: a kernel may allow rings and still refuse reads.
func (r *ring) tryRead() (err error) {
	fd, err := unix.MemfdCreate("gdb-probe", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("make a file for a test read: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	want, got := bytes.Repeat([]byte("gdb?"), bufferAlign/4), AlignedBuffer(bufferAlign)
	if _, err := unix.Pwrite(fd, want, 0); err != nil {
		return fmt.Errorf("write a file for a test read: %w", err)
	}
	r.read(int32(fd), -1, got, 0, 0)
	done, res := false, int32(0)
	for err = r.enter(0); err == nil && !done; {
		err = r.enterFor(1, tryLimit)
		r.reap(func(_ uint64, n int32) { done, res = true, n })
	}
	if err != nil {
		unanswered.Lock()
		unanswered.buffers = append(unanswered.buffers, got)
		unanswered.Unlock()
		return fmt.Errorf("test read: %w", err)
	}
	if res < 0 {
		return fmt.Errorf("test read: %w", unix.Errno(-res))
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("test read: %d bytes of %d, or wrong ones", res, len(want))
	}
	return nil
}

// take moves what callers have queued to the goroutine's own fields. It waits if the goroutine has
// nothing else to do, and returns false when the engine is closed.
func (u *uring) take() bool {
	u.q.Lock()
	defer u.q.Unlock()
	for u.inFlight == 0 && len(u.active) == 0 && len(u.again) == 0 &&
		len(u.q.batches) == 0 && len(u.q.commands) == 0 {
		if u.q.closing {
			return false
		}
		u.q.work.Wait()
	}
	u.active = append(u.active, u.q.batches...)
	clear(u.q.batches)
	u.q.batches = u.q.batches[:0]
	for _, do := range u.q.commands {
		do()
	}
	u.q.commands = nil
	return true
}

// fill queues reads until depth are in flight: first those that must go on, then new ones from the
// batches in turn.
func (u *uring) fill() {
	for _, slot := range u.again {
		u.send(slot)
	}
	u.again = u.again[:0]
	u.active = slices.DeleteFunc(u.active, func(b *batch) bool {
		stopped := b.stop.Load()
		if stopped {
			b.finish(b.dropRest())
		}
		return stopped
	})
	for len(u.active) > 0 && len(u.free) > 0 {
		b := u.active[0]
		u.active = slices.Delete(u.active, 0, 1)
		if u.fillFrom(b) {
			u.active = append(u.active, b)
		}
	}
	u.highest.Store(max(u.highest.Load(), int64(u.inFlight)))
}

// fillFrom queues up to chunkMax reads of b and returns whether more are left. If none are left,
// the caller of ReadBatch may have b back when it returns.
func (u *uring) fillFrom(b *batch) (more bool) {
	b.left.Add(1) // for this call, or dropping the last request of a stopped batch would end b here
	taken := 1
	for n := 0; n < chunkMax && b.next < len(b.reqs) && len(u.free) > 0; n++ {
		i := b.next
		b.next++
		if !b.mine(b.reqs[i].File.(*file)) {
			taken++ // by another engine
			continue
		}
		slot := u.free[len(u.free)-1]
		u.free = u.free[:len(u.free)-1]
		u.slots[slot] = inFlight{b: b, i: i}
		u.send(slot)
	}
	more = b.next < len(b.reqs)
	b.finish(taken)
	return more
}

// send queues the rest of a slot's request, or drops the request if its batch has stopped.
func (u *uring) send(slot uint32) {
	s := &u.slots[slot]
	if s.b.stop.Load() {
		s.b.drop(s.i)
		u.release(slot)
		return
	}
	r := &s.b.reqs[s.i]
	f := r.File.(*file)
	rest := r.Buf[s.at.got:]
	ok := u.ring.read(int32(f.fd), f.slot, rest[:min(len(rest), readMax)],
		r.Off+int64(s.at.got), uint64(slot))
	if !ok {
		panic("BUG: blockdev: the submission queue is shorter than the depth")
	}
	u.inFlight++
}

// complete processes the kernel's answer to the read of a slot.
func (u *uring) complete(userData uint64, res int32) {
	u.inFlight--
	slot := uint32(userData)
	s := &u.slots[slot]
	r := &s.b.reqs[s.i]
	n, err := int(res), error(nil)
	if res < 0 {
		n, err = 0, unix.Errno(-res)
	}
	if u.dev.hook != nil {
		rest, f := r.Buf[s.at.got:], r.File.(*file)
		n, err = u.dev.hook(f.path, r.Off+int64(s.at.got), rest, n, err)
	}
	over, failure := s.at.advance(r, n, err)
	if failure != nil {
		s.b.fail(s.i, failure)
	}
	if over {
		u.release(slot)
	} else {
		u.again = append(u.again, slot)
	}
}

// release frees the slot of a request that is over.
func (u *uring) release(slot uint32) {
	b := u.slots[slot].b
	u.slots[slot] = inFlight{}
	u.free = append(u.free, slot)
	b.finish(1)
}

// leastWait returns how many completions one system call waits for: a quarter of the reads in
// flight, which keeps the disk busy meanwhile, and so only a few while a batch runs out, whose
// caller waits. It is more than one because each call also rings the disk's doorbell, which on a
// virtual machine exits to the host.
func (u *uring) leastWait() int { return max(1, min(u.inFlight/4, waitMax)) }

func (u *uring) submit(b *batch) {
	u.q.Lock()
	u.q.batches = append(u.q.batches, b)
	u.q.Unlock()
	u.q.work.Signal()
}

// do runs a command on the ring's thread, which alone may use the ring, and waits for it. After
// close it does nothing.
func (u *uring) do(command func()) {
	ran := make(chan struct{})
	u.q.Lock()
	if u.q.closing {
		u.q.Unlock()
		return
	}
	u.q.commands = append(u.q.commands, func() { command(); close(ran) })
	u.q.Unlock()
	u.q.work.Signal()
	<-ran
}

// attach registers the file with the ring if there is a free slot. That only makes reads faster: if
// the kernel refuses, the file is read by its descriptor.
func (u *uring) attach(f *file) {
	if f.how == viaFS {
		return
	}
	u.do(func() {
		slot := slices.Index(u.files, false)
		if slot >= 0 && u.ring.setFile(slot, int32(f.fd)) == nil {
			u.files[slot], f.slot = true, int32(slot)
		}
	})
}

func (u *uring) detach(f *file) {
	if f.slot < 0 {
		return
	}
	u.do(func() {
		// A slot that could not be emptied stays taken; otherwise the slot's next file could be
		// read from this one.
		if u.ring.setFile(int(f.slot), -1) == nil {
			u.files[f.slot] = false
		}
	})
}

func (u *uring) peak() int { return int(u.highest.Load()) }

// close ends the goroutine and waits for it.
func (u *uring) close() error {
	u.q.Lock()
	u.q.closing = true
	u.q.Unlock()
	u.q.work.Signal()
	return <-u.ended
}
