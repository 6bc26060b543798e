package rowcache

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// streams is set if this CPU has the instructions that write past its caches.
var streams = cpu.X86.HasAVX

const (
	// aheadBytes is how many bytes of rows are prefetched: with rows of 0.4 to 1 KiB, less took
	// longer and twice as much was no faster.
	aheadBytes = 8 << 10
	// pieceBytes is how much is copied between points at which the goroutine can be preempted.
	pieceBytes = 256 << 10
	lineBytes  = 64
	vecBytes   = 32
)

// copyOrStream copies rows in the fastest way. There must be at least one.
func copyOrStream[N ~uint32](out, table []float32, dim int, rows []N, to []uint32, bytes int) {
	width := 4 * dim
	lines := (width + lineBytes - 1) / lineBytes
	ahead := max(1, aheadBytes/lineBytes/lines)
	// Parts of a cache line that are written one by one past the caches take as long as a line
	// each.
	whole := vecBytes
	if to != nil {
		whole = lineBytes
	}
	if !streams || bytes < streamBytes || width%whole != 0 ||
		uintptr(unsafe.Pointer(&out[0]))%uintptr(whole) != 0 {
		askedAhead(out, table, dim, rows, to, ahead)
		return
	}
	stream(out, table, dim, rows, to, ahead)
}

// stream copies rows past the caches, and prefetches this number of rows ahead.
func stream[N ~uint32](out, table []float32, dim int, rows []N, to []uint32, ahead int) {
	src, width := (*byte)(unsafe.Pointer(&table[0])), 4*dim
	last := words(rows[len(rows)-1:])
	for len(rows) > 0 {
		n := min(max(1, pieceBytes/width), len(rows))
		dst := (*byte)(unsafe.Pointer(&out[0]))
		if to != nil {
			streamRowsTo(dst, src, words(rows), last, uint64(n), uint64(width), uint64(ahead),
				&to[0])
			to = to[n:]
		} else {
			streamRows(dst, src, words(rows), last, uint64(n), uint64(width), uint64(ahead))
			out = out[n*dim:]
		}
		rows = rows[n:]
	}
}

// askedAhead copies rows as plain does, and prefetches this number of rows ahead.
func askedAhead[N ~uint32](out, table []float32, dim int, rows []N, to []uint32, ahead int) {
	src, width := (*byte)(unsafe.Pointer(&table[0])), uint64(4*dim)
	for len(rows) > 0 {
		n := min(ahead, len(rows))
		if next := rows[n:min(2*n, len(rows))]; len(next) > 0 {
			askRows(src, words(next), uint64(len(next)), width)
		}
		if to != nil {
			plain(out, table, dim, rows[:n], to[:n])
			to = to[n:]
		} else {
			plain(out, table, dim, rows[:n], nil)
			out = out[n*dim:]
		}
		rows = rows[n:]
	}
}

func words[N ~uint32](rows []N) *uint32 { return (*uint32)(unsafe.Pointer(&rows[0])) }
