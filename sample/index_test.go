package sample

import (
	"testing"

	"pgregory.net/rapid"
)

// The index is a map; few ids and a full table make long runs, that wrap around its end.
func TestSlotIndexIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 20).Draw(t, "rows")
		x := newSlotIndex(make([]uint64, indexSize(rows)))
		want := map[NodeID]uint32{}
		ids := rapid.SampledFrom([]NodeID{0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 1 << 31,
			1<<32 - 1, 1<<32 - 2, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110})
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			v := ids.Draw(t, "node")
			slot, ok := x.find(v)
			if have, is := want[v]; is != ok || slot != have {
				t.Fatalf("node %d: slot %d, %v; want %d, %v", v, slot, ok, have, is)
			}
			switch {
			case ok:
				x.remove(v)
				delete(want, v)
			case len(want) < rows:
				want[v] = rapid.Uint32Range(0, 1<<32-2).Draw(t, "slot")
				x.put(v, want[v])
			}
		}
	})
}

func TestCacheRows(t *testing.T) {
	for _, dim := range []int{1, 3, 100, 128} {
		for _, slot := range []int{0, 8} {
			last := 0
			for bytes := int64(0); bytes < 1<<20; bytes += 777 {
				n := CacheRows(bytes, dim, slot)
				size := func(n int) int64 { return int64(n*(4*dim+4+slot)) + indexBytes(n) }
				if n > 0 && size(n) > bytes {
					t.Fatalf("%d rows of %d take %d bytes, not %d", n, dim, size(n), bytes)
				}
				if size(n+1) <= bytes || n < last {
					t.Fatalf("%d rows of %d in %d bytes: one more fits", n, dim, bytes)
				}
				last = n
			}
		}
	}
}
