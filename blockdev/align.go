package blockdev

import (
	"runtime"
	"unsafe"
)

// bufferAlign is the alignment of AlignedBuffer: a page, so that a read of 4 KiB touches one page
// of memory and not two.
const bufferAlign = 4096

const _ uint = -(bufferAlign % Align) // an aligned buffer satisfies every request

// AlignedBuffer returns n zeroed bytes that begin at a multiple of 4096. They lie on the Go heap,
// in an allocation 4 KiB larger, and are freed like any slice: Go's collector never moves heap
// memory, so the kernel may read into it. Large and long-lived buffers belong into a mem.Arena,
// which is page aligned too, outside the heap and counted against --memory.
func AlignedBuffer(n int) []byte {
	b := make([]byte, n+bufferAlign)
	skip := -int(addressOf(b)) & (bufferAlign - 1)
	return b[skip : skip+n : skip+n]
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// extraProcs is how many more threads may run Go code than there are cores. It makes 16 on 2 cores:
// from there on a pool of 32 blocking reads keeps the disk as busy as fio does.
const extraProcs = 14

// RaiseGOMAXPROCS lets the process run NumCPU+14 threads of Go code, and returns the number that
// now holds. The program calls it once, first thing in main; compute bounds its own parallelism by
// worker counts. Why: a goroutine that blocks in pread or in a page fault keeps its P until the
// runtime's monitor takes it away, 20 µs to 10 ms later. With as many Ps as cores few reads are
// ever in flight and the computing goroutines starve: on 2 cores, 59 K reads/s with 11 % of the
// compute left, against 102 K and 56 % with 16 Ps. A higher GOMAXPROCS in the environment stays.
func RaiseGOMAXPROCS() int {
	want := runtime.NumCPU() + extraProcs
	if now := runtime.GOMAXPROCS(0); now >= want {
		return now
	}
	runtime.GOMAXPROCS(want)
	return want
}
