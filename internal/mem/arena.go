// Package mem allocates large buffers outside the Go heap, counts them against the one bound that
// --memory sets, and reads and writes sizes as people do.
package mem

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const hugePageBytes = 2 << 20

// arenaBytesMax bounds an arena, so that rounding up cannot overflow: no machine has as much.
const arenaBytesMax = 1 << 60

// Budget counts the bytes that arenas hold against a limit. The zero value has no limit. All
// methods may be called from any goroutine.
type Budget struct {
	limit int64
	used  atomic.Int64
	peak  atomic.Int64
}

// NewBudget returns a budget of limit bytes; 0 means without limit.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// LimitError says that a reservation does not fit in the budget.
type LimitError struct {
	What              string
	Want, Used, Limit int64
}

// Error names the part, what it wants and what is left.
func (e *LimitError) Error() string {
	return fmt.Sprintf("mem: %s needs %s; %s of %s are in use: raise --memory",
		e.What, FormatSize(e.Want), FormatSize(e.Used), FormatSize(e.Limit))
}

// Reserve counts n bytes for what, or fails with a LimitError and counts nothing.
func (b *Budget) Reserve(what string, n int64) error {
	used := b.used.Load()
	for {
		if n < 0 || n > math.MaxInt64-used || b.limit > 0 && used+n > b.limit {
			return &LimitError{What: what, Want: n, Used: used, Limit: b.limit}
		}
		// Not added first and taken back: a refused reservation must not make others fail.
		if b.used.CompareAndSwap(used, used+n) {
			break
		}
		used = b.used.Load()
	}
	used += n
	for p := b.peak.Load(); used > p && !b.peak.CompareAndSwap(p, used); p = b.peak.Load() {
	}
	return nil
}

// Release gives n reserved bytes back.
func (b *Budget) Release(n int64) { b.used.Add(-n) }

// Used is the number of bytes reserved now.
func (b *Budget) Used() int64 { return b.used.Load() }

// Peak is the most bytes that were ever reserved at once.
func (b *Budget) Peak() int64 { return b.peak.Load() }

// Limit is the bound, or 0.
func (b *Budget) Limit() int64 { return b.limit }

// Arena is one anonymous mapping outside the Go heap: page aligned, zeroed, never moved, advised
// to use huge pages. The owner calls Free; a finalizer does not.
type Arena struct {
	mem    []byte
	size   int
	budget *Budget
	once   sync.Once
}

// NewArena maps size bytes for what and counts them in budget, which may be nil.
func NewArena(budget *Budget, what string, size int64) (*Arena, error) {
	if budget == nil {
		budget = &Budget{}
	}
	if size < 0 || size > arenaBytesMax {
		return nil, fmt.Errorf("mem: an arena of %d bytes for %s", size, what)
	}
	n := (size + hugePageBytes - 1) &^ (hugePageBytes - 1)
	if size < hugePageBytes {
		n = (size + 4095) &^ 4095
	}
	n = max(n, 4096)
	if err := budget.Reserve(what, n); err != nil {
		return nil, err
	}
	m, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		budget.Release(n)
		return nil, fmt.Errorf("mem: map %s for %s: %w", FormatSize(n), what, err)
	}
	if n >= hugePageBytes {
		adviseHuge(m)
	}
	return &Arena{mem: m, size: int(size), budget: budget}, nil
}

// Bytes is the whole arena.
func (a *Arena) Bytes() []byte { return a.mem[:a.size:a.size] }

// Free unmaps the arena; slices of it must not be used afterwards. Further calls do nothing.
func (a *Arena) Free() (err error) {
	a.once.Do(func() {
		n := int64(len(a.mem))
		err = unix.Munmap(a.mem)
		a.mem, a.size = nil, 0
		a.budget.Release(n)
	})
	return err
}

// Scalar is a fixed-size number that an arena's bytes can be seen as.
type Scalar interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int32 | ~int64 | ~float32 | ~float64
}

// View returns bytes seen as a slice of T, without copying. The bytes must be aligned for T, as an
// arena's are; a rest shorter than one T is left out.
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
