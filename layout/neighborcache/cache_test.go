package neighborcache

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gdb/internal/mem"
	"gdb/layout"
)

func sortedList(r *rand.Rand, n, width int) []uint32 {
	l := make([]uint32, n)
	for i := range l {
		l[i] = r.Uint32() >> (32 - width)
	}
	slices.Sort(l)
	return l
}

// Lists come back from the cache, whole and in part, and take what was computed when they were
// chosen.
func TestCachedList(t *testing.T) {
	const seed = 4
	r := rand.New(rand.NewPCG(seed, 1))
	scratch := make([]uint32, ChunkEntries)
	for _, n := range []int{0, 1, 2, 3, 7, 63, 64, 1023, 1024, 1025, 2048, 5000} {
		for _, width := range []int{6, 22, 32} {
			for _, compress := range []bool{false, true} {
				list := sortedList(r, n, width)
				b := appendList(nil, list, compress)
				var m listMeter
				for rest := list; len(rest) > 0; { // in parts, as a scan gives them
					k := 1 + r.IntN(len(rest))
					m.add(rest[:k])
					rest = rest[k:]
				}
				if size, _ := m.size(compress); size != uint64(len(b)) {
					t.Fatalf("seed %d: %d entries take %d bytes, said %d", seed, n, len(b), size)
				}
				if len(b) > 4*n+3 {
					t.Fatalf("%d entries take %d bytes", n, len(b))
				}
				l, err := parseList(b)
				if err != nil || int(l.Entries) != n {
					t.Fatalf("%d entries: %+v, %v", n, l, err)
				}
				all := make([]uint32, n)
				for i := range all {
					all[i] = uint32(i)
				}
				checkGather(t, &l, list, all, scratch)
				r.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
				checkGather(t, &l, list, all, scratch)
				checkGather(t, &l, list, all[:n/3], scratch)
			}
		}
	}
}

func checkGather(t *testing.T, l *List, list, pos, scratch []uint32) {
	t.Helper()
	out := make([]layout.NodeID, len(pos))
	if err := l.gather(pos, scratch, out); err != nil {
		t.Fatalf("%d of %d entries: %v", len(pos), len(list), err)
	}
	for j, p := range pos {
		if uint32(out[j]) != list[p] {
			t.Fatalf("entry %d of %d is %d, want %d", p, len(list), out[j], list[p])
		}
	}
}

func TestPackSize(t *testing.T) {
	for n := uint64(0); n < 6<<20; n += 1 + n/100 {
		p := packSize(n, n/8, 1+n/2000)
		got, class := unpackSize(p)
		if got < n || got > n+n>>9 || p == sizeNever || n < 2000 && class != 0 ||
			n > 16000 && class != 3 {
			t.Fatalf("%d is kept as %d, class %d", n, got, class)
		}
	}
	if packSize(9, listEntriesMax+1, 2) != sizeNever {
		t.Error("a list is never too long")
	}
}

// Any bytes as a list are an error or give entries; nothing panics.
func FuzzCachedList(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 1))
	for _, n := range []int{0, 3, 70, 1500} {
		f.Add(appendList(nil, sortedList(r, n, 20), true), uint32(n))
	}
	f.Fuzz(func(t *testing.T, b []byte, pick uint32) {
		l, err := parseList(b)
		if err != nil || l.Entries == 0 {
			return
		}
		pos := []uint32{0, pick % l.Entries, l.Entries - 1}
		out := make([]layout.NodeID, len(pos))
		if err := l.gather(pos, make([]uint32, ChunkEntries), out); err != nil {
			return
		}
		if l.raw && uint32(out[0]) != mem.View[uint32](slices.Clone(l.b[:4]))[0] {
			t.Fatal("another entry")
		}
	})
}
