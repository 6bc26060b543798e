package blockdev

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of the kernel's interface, from include/uapi/linux/io_uring.h.
const (
	opRead       = 22 // since 5.6
	sqeFixedFile = 1 << 0

	setupCoopTaskrun  = 1 << 8  // 5.19: no interrupt when a read completes
	setupSingleIssuer = 1 << 12 // 6.0: one thread uses the ring
	setupDeferTaskrun = 1 << 13 // 6.1: completions are processed when that thread asks for them
	setupNoSQArray    = 1 << 16 // 6.6: no indirection between queue and entries

	featSingleMmap = 1 << 0
	featExtArg     = 1 << 8 // 5.11
	enterGetEvents = 1 << 0
	enterExtArg    = 1 << 3 // the last two arguments are a timedWait and its size

	registerFiles       = 2
	registerFilesUpdate = 6

	offsetSQRing = 0
	offsetSQEs   = 0x10000000
)

// sqe is a submission queue entry.
type sqe struct {
	op, flags uint8
	ioPrio    uint16
	fd        int32
	off, addr uint64
	len       uint32
	rwFlags   uint32
	userData  uint64
	_         [3]uint64
}

// cqe is a completion queue entry.
type cqe struct {
	userData uint64
	res      int32
	flags    uint32
}

// timedWait has the layout of the kernel's io_uring_getevents_arg.
type timedWait struct {
	sigmask              uint64
	sigmaskSize, minWait uint32
	limit                uint64 // the address of a timespec
}

type ringParams struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFd uint32

	_     [3]uint32
	sqOff struct {
		head, tail, ringMask, ringEntries, flags, dropped, array, _ uint32

		_ uint64
	}
	cqOff struct {
		head, tail, ringMask, ringEntries, overflow, cqes, flags, _ uint32

		_ uint64
	}
}

// The compiler checks the sizes that the kernel expects.
var (
	_ [64]byte  = [unsafe.Sizeof(sqe{})]byte{}
	_ [16]byte  = [unsafe.Sizeof(cqe{})]byte{}
	_ [120]byte = [unsafe.Sizeof(ringParams{})]byte{}
	_ [24]byte  = [unsafe.Sizeof(timedWait{})]byte{}
)

// ringModes lists the ways to set up a ring, the best first; older kernels refuse unknown flags
// with EINVAL. With deferred task work a read costs 15 to 25 % less CPU.
var ringModes = []struct {
	flags uint32
	name  string
}{
	{setupSingleIssuer | setupDeferTaskrun | setupNoSQArray, "deferred task work"},
	{setupSingleIssuer | setupDeferTaskrun, "deferred task work"},
	{setupCoopTaskrun, "cooperative task work"},
	{0, "plain flags"},
}

// ringSetup makes the system call io_uring_setup. Tests replace it to act as an older kernel or one
// that forbids it.
var ringSetup = func(entries uint32, p *ringParams) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(entries),
		uintptr(unsafe.Pointer(p)), 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// ring is one io_uring: two queues in memory that is shared with the kernel. One goroutine, locked
// to its thread, creates and uses it.
type ring struct {
	fd       int
	mode     string
	deferred bool // completions are processed only inside enter
	timed    bool // the kernel can wait for a limited time

	shared, sqeMem []byte
	sqHead, sqTail *uint32
	cqHead, cqTail *uint32
	sqMask, cqMask uint32
	sqes           []sqe
	cqes           []cqe
	tail           uint32 // of the submission queue, with entries not yet shown to the kernel
	pending        uint32 // entries that the kernel has not taken yet
	// fdArg and limitArg are arguments of setFile and enterFor. They are on the heap, since the
	// kernel gets their addresses as numbers.
	fdArg    int32
	limitArg unix.Timespec
}

// newRing sets up a ring for entries submissions, in the best mode that the kernel allows.
func newRing(entries int) (*ring, error) {
	var last error
	for _, mode := range ringModes {
		p := ringParams{flags: mode.flags}
		fd, err := ringSetup(uint32(entries), &p)
		if err == nil {
			r := &ring{fd: fd, mode: mode.name, deferred: mode.flags&setupDeferTaskrun != 0,
				timed: p.features&featExtArg != 0}
			if err := r.share(&p); err != nil {
				return nil, errors.Join(err, r.close())
			}
			return r, nil
		}
		if last = err; !errors.Is(err, unix.EINVAL) {
			break
		}
	}
	return nil, fmt.Errorf("io_uring_setup: %w", last)
}

// share maps the two queues into memory.
func (r *ring) share(p *ringParams) error {
	if p.features&featSingleMmap == 0 {
		return fmt.Errorf("io_uring of a kernel before 5.4: %w", errors.ErrUnsupported)
	}
	size := max(int(p.cqOff.cqes)+int(p.cqEntries)*int(unsafe.Sizeof(cqe{})),
		int(p.sqOff.array)+4*int(p.sqEntries))
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	var err error
	if r.shared, err = unix.Mmap(r.fd, offsetSQRing, size, prot, flags); err != nil {
		return fmt.Errorf("map io_uring: %w", err)
	}
	size = int(p.sqEntries) * int(unsafe.Sizeof(sqe{}))
	if r.sqeMem, err = unix.Mmap(r.fd, offsetSQEs, size, prot, flags); err != nil {
		return fmt.Errorf("map io_uring entries: %w", err)
	}
	at := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.shared[off])) }
	r.sqHead, r.sqTail, r.sqMask = at(p.sqOff.head), at(p.sqOff.tail), *at(p.sqOff.ringMask)
	r.cqHead, r.cqTail, r.cqMask = at(p.cqOff.head), at(p.cqOff.tail), *at(p.cqOff.ringMask)
	r.sqes = unsafe.Slice((*sqe)(unsafe.Pointer(&r.sqeMem[0])), p.sqEntries)
	r.cqes = unsafe.Slice((*cqe)(unsafe.Pointer(at(p.cqOff.cqes))), p.cqEntries)
	r.tail = atomic.LoadUint32(r.sqTail)
	if p.flags&setupNoSQArray == 0 {
		array := unsafe.Slice(at(p.sqOff.array), p.sqEntries)
		for i := range array {
			array[i] = uint32(i)
		}
	}
	return nil
}

// read queues a read. It returns false when the queue is full.
func (r *ring) read(fd, slot int32, buf []byte, off int64, userData uint64) bool {
	if r.tail-atomic.LoadUint32(r.sqHead) >= uint32(len(r.sqes)) {
		return false
	}
	e := &r.sqes[r.tail&r.sqMask]
	*e = sqe{op: opRead, fd: fd, off: uint64(off), addr: uint64(addressOf(buf)),
		len: uint32(len(buf)), userData: userData}
	if slot >= 0 {
		e.fd, e.flags = slot, sqeFixedFile
	}
	r.tail++
	r.pending++
	return true
}

// enter shows the queued entries to the kernel and waits for at least least completions. An error
// means a mistake of this program: a failed read is a completion with an error code.
func (r *ring) enter(least int) error {
	var flags uintptr
	if least > 0 || r.deferred {
		flags = enterGetEvents
	}
	return r.call(least, flags, nil, 0)
}

// enterFor does as enter does, but waits no longer than limit where the kernel can limit the wait.
// When the time is over, it returns ETIME, or nil if it has submitted entries.
func (r *ring) enterFor(least int, limit time.Duration) error {
	if !r.timed {
		return r.enter(least)
	}
	r.limitArg = unix.NsecToTimespec(int64(limit))
	w := timedWait{limit: uint64(uintptr(unsafe.Pointer(&r.limitArg)))}
	return r.call(least, enterGetEvents|enterExtArg, unsafe.Pointer(&w), unsafe.Sizeof(w))
}

// call makes the system call io_uring_enter.
func (r *ring) call(least int, flags uintptr, arg unsafe.Pointer, size uintptr) error {
	atomic.StoreUint32(r.sqTail, r.tail)
	for {
		n, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(r.pending),
			uintptr(least), flags, uintptr(arg), size)
		switch errno {
		case 0:
			r.pending -= uint32(n)
			return nil
		case unix.EINTR:
		case unix.EAGAIN, unix.EBUSY: // the kernel lacks memory, or completions must be taken first
			return nil
		default:
			return fmt.Errorf("io_uring_enter: %w", errno)
		}
	}
}

// reap calls f for every completion that has arrived.
func (r *ring) reap(f func(userData uint64, res int32)) {
	head, tail := atomic.LoadUint32(r.cqHead), atomic.LoadUint32(r.cqTail)
	for ; head != tail; head++ {
		c := &r.cqes[head&r.cqMask]
		f(c.userData, c.res)
	}
	atomic.StoreUint32(r.cqHead, head)
}

// registerFiles makes a table of n empty slots for files. The kernel need not look up the
// descriptor for reads of files in the table.
func (r *ring) registerFiles(n int) error {
	fds := make([]int32, n)
	for i := range fds {
		fds[i] = -1
	}
	return r.register(registerFiles, unsafe.Pointer(&fds[0]), n)
}

// setFile puts a descriptor into a slot; -1 empties the slot.
func (r *ring) setFile(slot int, fd int32) error {
	r.fdArg = fd
	update := struct {
		offset, _ uint32
		fds       uint64
	}{offset: uint32(slot), fds: uint64(uintptr(unsafe.Pointer(&r.fdArg)))}
	return r.register(registerFilesUpdate, unsafe.Pointer(&update), 1)
}

func (r *ring) register(op uintptr, arg unsafe.Pointer, n int) error {
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), op, uintptr(arg),
		uintptr(n), 0, 0)
	if errno != 0 {
		return fmt.Errorf("io_uring_register: %w", errno)
	}
	return nil
}

func (r *ring) close() error {
	var errs []error
	for _, m := range [][]byte{r.sqeMem, r.shared} {
		if m != nil {
			errs = append(errs, unix.Munmap(m))
		}
	}
	return errors.Join(append(errs, unix.Close(r.fd))...)
}
