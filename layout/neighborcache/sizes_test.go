package neighborcache

import (
	"testing"

	"gdb/internal/mem"
	"gdb/internal/rng"
)

// TestSizeIn: a size that is chosen fits, takes most of the room, and has three leading bits.
func TestSizeIn(t *testing.T) {
	draw := rng.NewStream(5)
	for most := int64(1); most < 1<<40; most += 1 + int64(draw.Below(uint64(most))) {
		n := SizeIn(most)
		if mem.ArenaBytes(n) > most && n > 0 || n > 0 && n < SizeLeast/2 {
			t.Fatalf("%d of %d bytes, which take %d", n, most, mem.ArenaBytes(n))
		}
		if n == 0 && most > SizeLeast*2 || n > 0 && n < most/2 && most > 32<<20 {
			t.Fatalf("%d of %d bytes", n, most)
		}
		again := n
		for again > 7 {
			again /= 2
		}
		if n > 0 && n%again != 0 {
			t.Fatalf("%d has more than three leading bits", n)
		}
	}
}
