package rowcache

import (
	"testing"

	"gdb/layout"

	"pgregory.net/rapid"
)

// The index is a map; few ids and a full table make long runs, that wrap around its end.
func TestIndexIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 20).Draw(t, "rows")
		x := newSlotIndex(make([]uint64, slotIndexSize(rows)))
		want := map[layout.NodeID]uint32{}
		ids := rapid.SampledFrom([]layout.NodeID{0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 1 << 31,
			1<<32 - 1, 1<<32 - 2, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110})
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			v := ids.Draw(t, "node")
			slot, ok := x.Find(v)
			if have, is := want[v]; is != ok || slot != have {
				t.Fatalf("node %d: slot %d, %v; want %d, %v", v, slot, ok, have, is)
			}
			switch {
			case ok:
				x.Remove(v)
				delete(want, v)
			case len(want) < rows:
				want[v] = rapid.Uint32Range(0, 1<<32-2).Draw(t, "slot")
				x.Put(v, want[v])
			}
		}
	})
}
