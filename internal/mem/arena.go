// Package mem allocates large buffers outside the Go heap (Arena), counts them against the one
// bound that --memory sets (Budget), and parses and formats sizes. A BlockCache keeps blocks of one
// file in such memory. A Cgroup bounds all memory of a child process, page cache included.
package mem

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"gdb/internal/bug"

	"golang.org/x/sys/unix"
)

// HugePageBytes is the size of the pages of large arenas.
const HugePageBytes = 2 << 20

// arenaBytesMax bounds an arena, in bytes, so that rounding up cannot overflow. No machine has as
// much.
const arenaBytesMax = 1 << 60

// Arena is one anonymous mapping outside the Go heap: page aligned, zeroed, never moved, advised
// to use huge pages. The owner calls Free; a finalizer does not.
type Arena struct {
	mem    []byte
	size   int
	gone   int64 // bytes given back before Free
	budget *Budget
	once   sync.Once
}

// ArenaBytes returns what an arena of size bytes counts for: whole pages.
func ArenaBytes(size int64) int64 {
	if size < HugePageBytes {
		return (size + 4095) &^ 4095
	}
	return (size + HugePageBytes - 1) &^ (HugePageBytes - 1)
}

// NewArena maps size bytes for what, and counts them in budget, which may be nil. The caller calls
// Free.
func NewArena(budget *Budget, what string, size int64) (*Arena, error) {
	if budget == nil {
		budget = &Budget{}
	}
	if size < 0 || size > arenaBytesMax {
		return nil, fmt.Errorf("mem: an arena of %d bytes for %s", size, what)
	}
	n := max(ArenaBytes(size), 4096)
	if err := budget.reserveArena(what, n); err != nil {
		return nil, err
	}
	m, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		budget.releaseArena(n)
		return nil, fmt.Errorf("mem: map %s for %s: %w", FormatSize(n), what, err)
	}
	if n >= HugePageBytes {
		adviseHuge(m)
	}
	return &Arena{mem: m, size: int(size), budget: budget}, nil
}

// Bytes returns the whole arena.
func (a *Arena) Bytes() []byte { return a.mem[:a.size:a.size] }

// populateBytes is how much is given memory together.
const populateBytes = 16 << 20

// Populate starts to give all pages memory, from the first on, so that whoever writes to the arena
// meanwhile need not wait while the system finds and clears pages one by one. It changes no byte.
// The caller calls stop, which ends it, before Free.
func (a *Arena) Populate() (stop func()) {
	var over atomic.Bool
	var work sync.WaitGroup
	work.Go(func() {
		defer bug.Catch()
		for rest := a.mem; len(rest) > 0 && !over.Load(); {
			n := min(populateBytes, len(rest))
			if !populate(rest[:n]) {
				return // pages come when they are written
			}
			rest = rest[n:]
		}
	})
	return func() {
		over.Store(true)
		work.Wait()
	}
}

// Discard gives back the memory of bytes first to end, as far as they are whole pages, and no
// longer counts it. The bytes are zero afterwards, and must not be written before Restore.
func (a *Arena) Discard(first, end int) error {
	from, to := wholePages(first, end)
	if from >= to {
		return nil
	}
	if err := unix.Madvise(a.mem[from:to], unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("mem: give %s back: %w", FormatSize(int64(to-from)), err)
	}
	a.gone += int64(to - from)
	a.budget.releaseArena(int64(to - from))
	return nil
}

// Restore counts bytes again that a Discard with the same range gave back. They may be written
// again.
func (a *Arena) Restore(what string, first, end int) error {
	from, to := wholePages(first, end)
	if from >= to {
		return nil
	}
	if err := a.budget.reserveArena(what, int64(to-from)); err != nil {
		return err
	}
	a.gone -= int64(to - from)
	return nil
}

// wholePages returns the range of pages that lie wholly between first and end.
func wholePages(first, end int) (from, to int) {
	const page = 4096
	return (first + page - 1) &^ (page - 1), end &^ (page - 1)
}

// Free unmaps the arena; slices of it must not be used afterwards. Further calls do nothing.
func (a *Arena) Free() (err error) {
	a.once.Do(func() {
		n := int64(len(a.mem)) - a.gone
		err = unix.Munmap(a.mem)
		a.mem, a.size = nil, 0
		a.budget.releaseArena(n)
	})
	return err
}

// Scalar is a type of numbers of fixed size, as which View shows bytes.
type Scalar interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64
}

// View returns bytes as a slice of T, without copying. The bytes must be aligned for T, as an
// arena's are; a remainder shorter than one T is left out.
func View[T Scalar](b []byte) []T {
	var zero T
	n := len(b) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// BytesOf returns the memory of a slice as bytes, without copying.
func BytesOf[T Scalar](s []T) []byte {
	var zero T
	if len(s) == 0 {
		return nil
	}
	n := len(s) * int(unsafe.Sizeof(zero))
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), n)
}

// Resize returns a slice of length n, reusing s if it is large enough; its contents are undefined.
// A new one has room for a quarter more, so that lengths that grow slowly seldom need another.
func Resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// Recast returns the memory of x, with its capacity, as values of another type, without copying.
// Both types hold numbers of 4 bytes and nothing else, such as a struct of two uint32.
func Recast[T, F any](x []F) []T {
	var from F
	var to T
	if cap(x) == 0 {
		return nil
	}
	size, wide := int(unsafe.Sizeof(from)), int(unsafe.Sizeof(to))
	all := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(x))), cap(x)*size/wide)
	return all[:len(x)*size/wide]
}
