package neighborcache

import (
	"math/bits"

	"gdb/internal/mem"
)

// SizeLeast is the smallest size of a cache that is worth choosing, in bytes.
const SizeLeast = 256 << 10

// Bytes returns what a cache takes whose lists have size bytes: the lists, and a directory of less
// than a sixteenth of that.
func Bytes(size int64) int64 { return mem.ArenaBytes(size) + mem.ArenaBytes(size/16) }

// SizeIn returns the largest size of a cache whose lists take no more than most bytes; 0 if that is
// too small. Only the three leading bits are kept, so that runs with nearly the same memory share
// one cache.
func SizeIn(most int64) int64 {
	n := most
	for n >= SizeLeast {
		n &^= 1<<(bits.Len64(uint64(n))-3) - 1
		if mem.ArenaBytes(n) <= most {
			return n
		}
		n--
	}
	return 0
}
