package superbatch

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gdb/internal/pace"
	"gdb/internal/rng"
	"gdb/layout"

	"pgregory.net/rapid"
)

// TestMissing: the chunks of the first lists are their keys in order, whatever the memory to
// collect them and the room for those that are read at once.
func TestMissing(t *testing.T) {
	c := testConfig(t)
	b := builder{cfg: &c, dir: c.Prep}
	if err := c.FS.MkdirAll(c.Prep, 0o755); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		nodes := rapid.OneOf(rapid.Uint64Range(1, 300),
			rapid.Uint64Range(1, 1<<32)).Draw(rt, "nodes")
		lists := rapid.SliceOfN(rapid.SliceOfDistinct(rapid.Uint64Range(0, nodes-1),
			rapid.ID[uint64]), 1, 6).Draw(rt, "lists")
		atOnce := rapid.IntRange(len(lists), 20).Draw(rt, "at once")
		keys := []pace.Sorter{pace.SorterIn(make([]uint64, 2*atOnce)),
			pace.SorterIn(make([]uint64, 2*atOnce))}
		room := make([]uint64, rapid.IntRange(1, 30*missingRecordLeast).Draw(rt, "room"))
		buf := readBuffer{}
		m := mustMissing(rt, &b, nodes, lists, atOnce, room, &buf)
		for first := range len(lists) + 1 {
			var want, got []uint64
			for k, l := range lists[:first] {
				for _, v := range l {
					want = append(want, v<<32|uint64(k))
				}
			}
			slices.Sort(want)
			for some := range m.chunks(t.Context(), first, keys) {
				got = append(got, some...)
			}
			if m.err != nil || !slices.Equal(got, want) {
				rt.Fatalf("the first %d of %d: %x, not %x; %v", first, lists, got, want, m.err)
			}
		}
		if err := m.close(); err != nil || buf.Free() != nil {
			rt.Fatal(err)
		}
	})
}

// TestChunksEndEarly: whoever has enough keys begins again with all, and damage is told.
func TestChunksEndEarly(t *testing.T) {
	c := testConfig(t)
	b := builder{cfg: &c, dir: c.Prep}
	if err := c.FS.MkdirAll(c.Prep, 0o755); err != nil {
		t.Fatal(err)
	}
	list := make([]uint64, 1000)
	for i := range list {
		list[i] = uint64(3 * i)
	}
	keys := []pace.Sorter{pace.SorterIn(make([]uint64, 20)), pace.SorterIn(make([]uint64, 20))}
	buf := readBuffer{}
	m := mustMissing(t, &b, 3000, [][]uint64{list}, 10, make([]uint64, 1<<14), &buf)
	for most := range 3 {
		n := 0
		for range m.chunks(t.Context(), 1, keys) {
			if n++; n > most {
				break
			}
		}
		if m.err != nil || n != most+1 {
			t.Fatalf("%d chunks: %v", n, m.err)
		}
	}
	last := m.refs[len(m.refs)-1]
	last[0].Bytes -= keyBytes
	for some := range m.chunks(t.Context(), 1, keys) {
		if slices.Contains(some, list[len(list)-1]<<32) {
			t.Error("a key of a damaged record was read")
		}
	}
	if !errors.Is(m.err, layout.ErrCorrupt) {
		t.Errorf("damage gives %v", m.err)
	}
	if err := errors.Join(m.close(), buf.Free()); err != nil {
		t.Error(err)
	}
}

// TestRangesAreEven: nodes of the first list are dealt out evenly, in whatever order they come.
func TestRangesAreEven(t *testing.T) {
	const nodes, ranges = 1 << 12, 8
	c := testConfig(t)
	b := builder{cfg: &c, dir: c.Prep}
	if err := c.FS.MkdirAll(c.Prep, 0o755); err != nil {
		t.Fatal(err)
	}
	m, err := newMissing(b.identity(1), nodes, nodes, 2*nodes/(ranges-1),
		make([]uint64, ranges*nodes), nil)
	if err != nil {
		t.Fatal(err)
	}
	first, draw := make([]uint64, nodes), rng.NewPermutation(nodes, 1)
	for i := range first {
		first[i] = draw.At(uint64(i))
	}
	if err := m.add(first); err != nil {
		t.Fatal(err)
	}
	for r, n := range m.fill {
		if len(m.fill) != ranges || n != nodes/ranges {
			t.Errorf("range %d of %d has %d nodes of %d", r, len(m.fill), n, nodes)
		}
	}
	if err := m.close(); err != nil {
		t.Error(err)
	}
}

// mustMissing writes the keys of lists.
func mustMissing(t rapid.TB, b *builder, nodes uint64, lists [][]uint64, atOnce int,
	room []uint64, buf *readBuffer) *missing {
	t.Helper()
	total := uint64(0)
	for _, l := range lists {
		total += uint64(len(l))
	}
	m, err := newMissing(b.identity(1), nodes, total, atOnce, room, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lists {
		if err := m.add(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.finish(context.Background(), b.cfg, buf); err != nil {
		t.Fatal(err)
	}
	return m
}
