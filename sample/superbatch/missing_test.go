package superbatch

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestMissing: the chunks of the first lists are their keys in order, as many at once as there is
// room for, and the lists take no more than was said.
func TestMissing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		nodes := rapid.OneOf(rapid.Uint64Range(1, 300),
			rapid.Uint64Range(1, 1<<32)).Draw(rt, "nodes")
		lists := rapid.SliceOfN(rapid.SliceOfDistinct(rapid.Uint64Range(0, nodes-1),
			rapid.ID[uint64]), 1, 6).Draw(rt, "lists")
		bytes := int64(0)
		for _, l := range lists {
			slices.Sort(l)
			bytes += int64(listBytes(uint64(len(l)), nodes))
		}
		b := make([]byte, missingPerBatch*int64(len(lists))+bytes)
		m := newMissing(&b, len(lists), bytes)
		room := cap(m.lists)
		for _, l := range lists {
			m.add(l)
		}
		if len(b) > 0 || cap(m.lists) != room {
			rt.Fatalf("lists took %d bytes of %d, and %d are left", len(m.lists), room, len(b))
		}
		for first := range len(lists) + 1 {
			var want, got []uint64
			for k, l := range lists[:first] {
				for _, v := range l {
					want = append(want, v<<32|uint64(k))
				}
			}
			slices.Sort(want)
			keys := make([]uint64, rapid.IntRange(len(lists), 20).Draw(rt, "room"))
			for some := range m.chunks(first, nodes, keys) {
				got = append(got, some...)
			}
			if !slices.Equal(got, want) {
				rt.Fatalf("the first %d of %d: %x, not %x", first, lists, got, want)
			}
		}
	})
}

// TestListBytes: the bound of a list is met by the one that takes most.
func TestListBytes(t *testing.T) {
	for _, c := range []struct{ n, nodes, want uint64 }{
		{0, 1000, 0}, {1, 1, 1}, {1, 127, 1}, {3, 1000, 6}, {100, 1000, 107},
		{30000, 4 << 20, 60000 + 258}, {1000, 1 << 32, 4000 + 16},
	} {
		if got := listBytes(c.n, c.nodes); got != c.want {
			t.Errorf("%d of %d nodes take %d bytes, not %d", c.n, c.nodes, got, c.want)
		}
	}
}
