package listcode

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCounts: lists of counts where the form of the count changes read back, and take the bits of
// their form.
func TestCounts(t *testing.T) {
	for count, head := range map[int]int{1: 4, 2: 4, 14: 4, 15: 12, 16: 12, 270: 12, 271: 28,
		272: 28} {
		list := make([]uint32, count)
		for i := range list {
			list[i] = 9 + uint32(i/3)
		}
		c := Coding{Base: 7, FirstBits: 6, PosBits: 13}
		b, ends := coded(c, list)
		want := head + 6
		if n := count - 1; n > 0 {
			_, size := c.whole(n, list[n]-list[0])
			want += 6 + size
		}
		if int(ends[0]) != want || c.Bits(count, list[0], list[count-1]) != want {
			t.Errorf("%d ids take %d bits, and %d are said, want %d", count, ends[0],
				c.Bits(count, list[0], list[count-1]), want)
		}
		checkLists(t, c, append(b, make([]byte, Slack+1<<14)...), [][]uint32{list},
			[]uint64{0, ends[0]})
	}
}

// TestFormsBySize: packed entries are taken up to a sixteenth more than Elias-Fano takes, and cells
// up to a third more than the smaller of both, to the bit.
func TestFormsBySize(t *testing.T) {
	c, hits := Coding{PosBits: 15}, 0
	for n := 2; n < 80; n++ {
		for most := uint32(1); most < 3000; most++ {
			low := max(0, bits.Len32(most/uint32(n))-1)
			packed, ef := n*bits.Len32(most), (n-1)/64*15+n*(low+1)+int(most>>low)
			wantWay, want := bits.Len32(most), packed
			if packed > ef+ef/16 {
				wantWay, want = 33+low, ef
			}
			if way, size := c.whole(n, most); way != wantWay || size != want {
				t.Fatalf("%d entries up to %d: way %d in %d bits, want %d in %d", n, most, way,
					size, wantWay, want)
			}
			if packed == ef+ef/16 {
				hits++
			}
		}
	}
	if hits == 0 {
		t.Error("no packed entries take a sixteenth more")
	}
	r := rand.New(rand.NewPCG(3, 1))
	c.Cells, hits = true, 0
	for range 20_000 {
		list, spread := make([]uint32, 8+r.IntN(60)), 1<<(6+r.IntN(14))
		for i := range list { // some in clusters
			list[i] = uint32(r.IntN(spread)) / (1 + r.Uint32N(30))
		}
		slices.Sort(list)
		n := len(list) - 1
		way, size := c.whole(n, list[n]-list[0])
		k, ofCells := fitCells(list[1:], list[0])
		f := c.FormOf(list)
		if cells := way >= 33 && ofCells <= size+size/3; cells != (f.way == 63) ||
			cells && f.cells != k || !cells && f.way != way {
			t.Fatalf("cells of %d bits, way %d of %d: the form is %+v", ofCells, way, size, f)
		}
		if way >= 33 && ofCells == size+size/3 {
			hits++
		}
	}
	if hits == 0 {
		t.Error("no cells take a third more")
	}
}

// TestBitsMost: a list takes at most a third more than Bits says, without its first id.
func TestBitsMost(t *testing.T) {
	c := Coding{FirstBits: 20, PosBits: 15}
	for _, count := range []int{1, 2, 40, 500} {
		whole := c.Bits(count, 5, 100_000) - 20
		if got := c.BitsMost(count, 5, 100_000); got != whole+whole/3 {
			t.Errorf("%d ids: at most %d bits, want a third more than %d", count, got, whole)
		}
	}
}

// TestWidestCells: cells have as many entries as 57 upper bits have room for, about the same in
// each, by trying all numbers.
func TestWidestCells(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 9))
	exact := 0
	for range 3000 {
		list := make([]uint32, 2+r.IntN(150))
		for i := range list {
			list[i] = r.Uint32N(1 << (3 + r.IntN(16)))
		}
		slices.Sort(list)
		first, l, n := r.Uint32N(list[0]+1), 1+r.IntN(6), len(list)
		upper := func(per int) (most int) {
			most = per
			for i := 0; i < n; i += per {
				end := min(i+per, n)
				highs := int((list[end-1]-first)>>l) - int((list[i]-first)>>l)
				most = max(most, end-i+highs)
			}
			return most
		}
		per := 2
		for per < min(n, 57) && upper(per+1) <= 57 {
			per++
		}
		if slices.ContainsFunc(seq(per+1, min(n, 57)), func(p int) bool { return upper(p) <= 57 }) {
			continue // more entries in a cell rarely need fewer bits: those are not looked for
		}
		cells := (n + per - 1) / per
		if even := max(2, (n+cells-1)/cells); upper(even) <= 57 {
			per = even
		}
		k, ok := cellsWith(list, first, l)
		if int(k.per) != per && per < 57 || ok != (upper(per) <= 57) {
			t.Fatalf("%d ids, %d low bits: %d in a cell, %v, want %d with %d bits", n, l, k.per, ok,
				per, upper(per))
		}
		if ok && k.upper == 57 {
			exact++
		}
		base := bits.Len32((list[(n-1)/per*per] - first) >> l)
		if ok && (int(k.upper) != upper(per) || int(k.base) != base || int(k.low) != l) {
			t.Fatalf("cells %+v, want %d upper bits and a base of %d", k, upper(per), base)
		}
	}
	if exact == 0 {
		t.Error("no cell has 57 upper bits")
	}
	// The base of a cell has 31 bits at most.
	for last, want := range map[uint32]bool{1<<31 - 1: true, 1 << 31: false} {
		if _, ok := cellsWith([]uint32{last, last}, 0, 0); ok != want {
			t.Errorf("cells up to %d: %v", last, ok)
		}
	}
}

// seq returns the numbers from first to last.
func seq(first, last int) (all []int) {
	for i := first; i <= last; i++ {
		all = append(all, i)
	}
	return all
}

// TestDecodeWritesItsIDs: a list is decoded to the first places of what has room for more.
func TestDecodeWritesItsIDs(t *testing.T) {
	for name, x := range waysOf(t) {
		b, ends := coded(x.c, x.list)
		b = append(b, make([]byte, Slack+8)...)
		l, err := x.c.Parse(b, 0, ends[0])
		if err != nil {
			t.Fatal(err)
		}
		out := slices.Repeat([]uint32{77}, len(x.list)+3)
		if err := l.Decode(b, out); err != nil || !slices.Equal(out[:len(x.list)], x.list) ||
			!slices.Equal(out[len(x.list):], []uint32{77, 77, 77}) {
			t.Errorf("%s: %v, behind its ids there are %d", name, err, out[len(x.list):])
		}
	}
}

// TestSelectBit finds each one of a word, and none after the last.
func TestSelectBit(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	for range 1000 {
		word := r.Uint64() & (r.Uint64() >> r.IntN(64))
		if r.IntN(20) == 0 {
			word = 1<<64 - 1
		}
		rank := uint64(0)
		for at := range uint64(64) {
			if word>>at&1 == 0 {
				continue
			}
			if a, b := selectBit(word, rank), selectPlain(word, rank); a != at || b != at {
				t.Fatalf("one %d of %x is at %d and %d, want %d", rank, word, a, b, at)
			}
			rank++
		}
		for _, more := range []uint64{rank, 64, 65, 127, 1 << 40} {
			if a, b := selectBit(word, more), selectPlain(word, more); a != 64 || b != 64 {
				t.Fatalf("one %d of %x is at %d and %d, and it has %d", more, word, a, b, rank)
			}
		}
	}
}

// TestPlaces reads fields at all places, and at some.
func TestPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	b := make([]byte, 4096)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	var p Places
	for _, n := range []int{0, 1, 100, PlacesMost} {
		at, out := p.At(n), make([]uint32, n+1)
		if len(at) != n {
			t.Fatalf("%d places, want %d", len(at), n)
		}
		for i := range at {
			at[i] = r.Uint64N(8 * (4096 - Slack))
		}
		Prefetch(b, at, 1) // changes nothing
		for _, width := range []int{0, 1, 13, 32} {
			out[n] = 7
			p.Fields(b, n, width, out)
			for i := range at {
				if want := uint32(fieldPlain(b, at[i], width)); out[i] != want {
					t.Fatalf("field %d of %d bits is %x, want %x", i, width, out[i], want)
				}
			}
			if out[n] != 7 {
				t.Errorf("a field behind %d is written", n)
			}
		}
	}
}

// TestMovedLists: the Ref of a list equals the Ref of the same list some bits further on.
func TestMovedLists(t *testing.T) {
	for name, x := range waysOf(t) {
		b, ends := coded(x.c, x.list)
		b = append(b, make([]byte, Slack+1<<10)...)
		l, err := x.c.Parse(b, 0, ends[0])
		if err != nil {
			t.Fatal(err)
		}
		const by = 8*24 + 5
		moved := make([]byte, len(b)+32)
		for at := range ends[0] {
			setBits(moved, at+by, 1, bitAt(b, at))
		}
		ref, out := l.Ref().Moved(by), make([]uint32, len(x.list))
		pos := make([]uint32, len(x.list))
		for i := range pos {
			pos[i] = uint32(i)
		}
		g := NewGatherer(x.c, moved, 1<<10)
		g.Begin(out)
		g.List(&ref, pos)
		if g.End(); !slices.Equal(out, x.list) {
			t.Errorf("%s: other ids from a list that lies further on", name)
		}
	}
}

// TestWriterReset: a writer that was emptied writes as a new one.
func TestWriterReset(t *testing.T) {
	var w, fresh Writer
	for i := range 40 {
		w.Add(uint64(i), 13)
	}
	w.Reset()
	if w.Bits() != 0 {
		t.Errorf("%d bits after Reset", w.Bits())
	}
	for _, to := range []*Writer{&w, &fresh} {
		to.Add(1<<57-1, 57)
		to.Add(0x5a, 7)
		to.Add(3, 2)
	}
	a, b := make([]byte, 16), make([]byte, 16)
	if n, m := w.CopyTo(a), fresh.CopyTo(b); n != 9 || m != 9 || !slices.Equal(a, b) {
		t.Errorf("%d bytes %x, a new writer has %d bytes %x", n, a, m, b)
	}
	if want := []byte{255, 255, 255, 255, 255, 255, 255, 0xb5, 3}; !slices.Equal(a[:9], want) {
		t.Errorf("bytes %x, want %x", a[:9], want)
	}
}
