package listcode

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// bitAt is one bit, and fieldPlain a field bit by bit.
func bitAt(b []byte, at uint64) uint64 { return uint64(b[at/8]>>(at%8)) & 1 }

func fieldPlain(b []byte, at uint64, width int) (v uint64) {
	for i := range uint64(width) {
		v |= bitAt(b, at+i) << i
	}
	return v
}

// decodePlain is the specification of the code: it reads a list from its bits, one by one.
func decodePlain(c Coding, b []byte, at uint64) (ids []uint32, end uint64) {
	n := fieldPlain(b, at, 4)
	at += 4
	switch n {
	case 14:
		n += fieldPlain(b, at, 8)
		at += 8
	case 15:
		n = 270 + fieldPlain(b, at, 24)
		at += 24
	}
	first := uint64(c.Base) + fieldPlain(b, at, c.FirstBits)
	at += uint64(c.FirstBits)
	ids = append(ids, uint32(first))
	if n == 0 {
		return ids, at
	}
	way := fieldPlain(b, at, 6)
	at += 6
	if way <= 32 {
		for range n {
			ids = append(ids, uint32(first+fieldPlain(b, at, int(way))))
			at += way
		}
		return ids, at
	}
	if way == 63 {
		cells, end := decodeCellsPlain(b, at, n)
		for _, v := range cells {
			ids = append(ids, uint32(first+v))
		}
		return ids, end
	}
	l := way - 33
	low := at + (n-1)/64*uint64(c.PosBits)
	upper := low + n*l
	p := upper
	for i := range n {
		for bitAt(b, p) == 0 {
			p++
		}
		if i%64 == 0 && i > 0 {
			if s := fieldPlain(b, at+(i/64-1)*uint64(c.PosBits), c.PosBits); s != p-upper {
				panic("sample")
			}
		}
		ids = append(ids, uint32(first+(p-upper-i)<<l+fieldPlain(b, low+i*l, int(l))))
		p++
	}
	return ids, p
}

// decodeCellsPlain reads n entries in cells, less the first id of the list.
func decodeCellsPlain(b []byte, at, n uint64) (all []uint64, end uint64) {
	l, per := fieldPlain(b, at, 5), fieldPlain(b, at+5, 6)
	upper, baseBits := fieldPlain(b, at+11, 6), fieldPlain(b, at+17, 5)
	at += 22
	for n > 0 {
		in := min(n, per)
		n -= in
		base := fieldPlain(b, at, int(baseBits))
		at += baseBits
		p := uint64(0)
		for i := range in {
			for bitAt(b, at+p) == 0 {
				p++
			}
			all = append(all, (base+p-i)<<l+fieldPlain(b, at+upper+i*l, int(l)))
			p++
		}
		at += upper + in*l
	}
	return all, at
}

// randomList draws a sorted list of some shape below 1<<idBits.
func randomList(r *rand.Rand, idBits int) []uint32 {
	count := 1 + r.IntN([]int{3, 20, 300, 5000}[r.IntN(4)])
	span := uint64(1) << r.IntN(idBits+1)
	first := r.Uint64N(1<<idBits - span + 1)
	list := make([]uint32, count)
	for i := range list {
		list[i] = uint32(first + r.Uint64N(span))
	}
	if r.IntN(4) == 0 { // a part that is dense
		for i := range count / 2 {
			list[i] = uint32(first + uint64(i)%span)
		}
	}
	slices.Sort(list)
	return list
}

// TestListsAreWhatTheyWere codes lists one after the other: each reads back by the specification,
// whole, by single entries and by Gather, and takes the bits that were said.
func TestListsAreWhatTheyWere(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for i, idBits := range []int{1, 7, 7, 19, 19, 24, 24, 31, 31, 32, 32} {
		c := Coding{FirstBits: idBits, PosBits: 24, Cells: i%2 == 1}
		var w Writer
		var lists [][]uint32
		ends := []uint64{0}
		var drawn [][]uint32
		least := uint32(1<<32 - 1)
		for range 200 {
			list := randomList(r, idBits)
			drawn, least = append(drawn, list), min(least, list[0])
		}
		c.Base = least
		for _, list := range drawn {
			c.Append(&w, list)
			lists, ends = append(lists, list), append(ends, uint64(w.Bits()))
			got := int(ends[len(ends)-1] - ends[len(ends)-2])
			whole := c.Bits(len(list), list[0], list[len(list)-1])
			if got != c.FormOf(list).Bits()+c.FirstBits || !c.Cells && got != whole {
				t.Fatalf("%d ids take %d bits", len(list), got)
			}
			if most := c.BitsMost(len(list), list[0], list[len(list)-1]); got-c.FirstBits > most {
				t.Fatalf("%d ids take %d bits, more than %d", len(list), got-c.FirstBits, most)
			}
		}
		b := make([]byte, (w.Bits()+7)/8+Slack+1<<14)
		w.CopyTo(b)
		checkLists(t, c, b, lists, ends)
	}
}

func checkLists(t *testing.T, c Coding, b []byte, lists [][]uint32, ends []uint64) {
	t.Helper()
	var refs []Ref
	var want []uint32
	for i, list := range lists {
		plain, end := decodePlain(c, b, ends[i])
		l, err := c.Parse(b, ends[i], ends[i+1])
		if err != nil || end != ends[i+1] || !slices.Equal(plain, list) ||
			int(l.Count) != len(list) {
			t.Fatalf("list %d of %d ids: %v, ends at %d of %d", i, len(list), err, end, ends[i+1])
		}
		out := make([]uint32, len(list))
		if err := l.Decode(b, out); err != nil || !slices.Equal(out, list) {
			t.Fatalf("list %d: %v", i, err)
		}
		for k, v := range list {
			if got, ok := l.At(b, uint32(k)); !ok || got != v {
				t.Fatalf("entry %d of list %d is %d, want %d", k, i, got, v)
			}
			want = append(want, v)
		}
		var got Ref
		if c.ReadRef(&got, b, ends[i]); got != l.Ref() {
			t.Fatalf("list %d of %d ids: %+v, want %+v", i, len(list), got, l.Ref())
		}
		refs = append(refs, l.Ref())
	}
	checkHeads(t, c, b, refs, ends[:len(lists)])
	checkGatherer(t, c, b, refs, want)
}

// checkHeads reads the heads of lists at places in both ways, and one head more, which belongs to
// no list.
func checkHeads(t *testing.T, c Coding, b []byte, refs []Ref, places []uint64) {
	t.Helper()
	n := len(places)
	h := Heads{slices.Clone(places), make([]uint64, n)}
	for i := range h.Codings {
		h.Codings[i] = c.CodingWord() | uint64(i)<<CodingSpare
	}
	for _, read := range []func([]byte, int, Heads, []Ref, []uint32){ReadRefs, readRefsPlain} {
		got, counts := make([]Ref, n), make([]uint32, n)
		read(b, c.PosBits, h, got, counts)
		for i := range got {
			want := refs[i]
			if places[i] == 0 {
				want.Count = 0
			}
			if got[i] != want || counts[i] != want.Count {
				t.Fatalf("head %d is %+v, want %+v", i, got[i], want)
			}
		}
	}
}

// checkGatherer draws all entries of lists, some of them one by one, as if other entries came
// before those that a list has here.
func checkGatherer(t *testing.T, c Coding, b []byte, refs []Ref, want []uint32) {
	t.Helper()
	out, g := make([]uint32, len(want)), NewGatherer(c, b, 1<<14)
	g.Begin(out[:1])
	g.List(&refs[0], []uint32{0}) // given up
	g.Begin(out)
	for i := range refs {
		refs[i].From = uint32(i)
		var pos []uint32
		if i%3 == 0 { // all together, as entries of lists of their own
			var lists []*Ref
			for k := range refs[i].Count {
				pos, lists = append(pos, uint32(i)+k), append(lists, &refs[i])
			}
			g.Each(lists, pos)
			continue
		}
		for k := range refs[i].Count {
			pos = append(pos, uint32(i)+k)
			if k%7 == 6 {
				g.List(&refs[i], pos)
				pos = nil
			}
		}
		g.List(&refs[i], pos)
	}
	if g.End(); !slices.Equal(out, want) || len(g.whole) != 0 {
		t.Fatalf("gatherer gives other entries, or keeps %d lists that are drawn", len(g.whole))
	}
}

// TestLowBits: no other number of low bits makes Elias-Fano smaller.
func TestLowBits(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 100, 1000, 70_000} {
		for _, mean := range []float64{0, 0.4, 1, 1.7, 2, 3, 5, 8, 100, 1000, 50_000} {
			most := uint32(mean * float64(n))
			size := func(low int) int { return n*(low+1) + int(most>>low) }
			for low := range 32 {
				if got := lowBits(n, most); size(got) > size(low) {
					t.Errorf("%d entries up to %d: %d low bits take %d bits, %d take %d", n, most,
						got, size(got), low, size(low))
				}
			}
		}
	}
}

// TestKernels compares the fast kernels with the plain ones, on any bits.
func TestKernels(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const size = 1 << 14
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(r.Uint32()) >> r.IntN(8)
	}
	places := append(make([]uint64, 1000), make([]uint64, ahead)...)[:1000]
	for i := range places {
		places[i] = r.Uint64N(8 * (size - Slack))
	}
	want, got := make([]uint32, 1000), make([]uint32, 1000)
	for width := range 33 {
		packedFieldsPlain(b, places, width, want)
		packedFields(b, places, width, got)
		if !slices.Equal(want, got) {
			t.Errorf("fields of %d bits differ", width)
		}
	}
	for range 10000 {
		checkTake(t, r, b)
	}
}

// checkTake compares both ways to find places of entries of a list and to take these, and asks for
// them.
func checkTake(t *testing.T, r *rand.Rand, b []byte) {
	t.Helper()
	ref := Ref{low: r.Uint64N(1 << 10), first: r.Uint32(), Count: 1 + r.Uint32N(1<<r.IntN(11)),
		width: uint8(r.IntN(33)), From: r.Uint32() >> r.IntN(33)}
	if r.IntN(3) > 0 {
		per := 2 + r.IntN(upperMost-1)
		ref.setCells(cells{low: uint8(r.IntN(32)), per: uint8(per),
			upper: uint8(per + r.IntN(upperMost+1-per)), base: uint8(r.IntN(32))})
	}
	pos := make([]uint32, r.IntN(40))
	for i := range pos {
		pos[i] = ref.From + r.Uint32N(ref.Count)
	}
	places, plain := make([]place, len(pos)), make([]place, len(pos))
	findPlaces(b, &ref, pos, places)
	findPlacesPlain(&ref, pos, plain)
	for i := range places {
		if p := &places[i]; p.width == 0 && p.kind == 0 { // nothing else counts
			p.base, p.rank, plain[i].base, plain[i].rank = 0, 0, 0, 0
		}
	}
	if !slices.Equal(places, plain) {
		t.Fatalf("places of %d of %+v are %+v, want %+v", pos, ref, places, plain)
	}
	other, refs := ref, make([]*Ref, len(pos))
	other.first, other.width = r.Uint32(), uint8(r.IntN(33))
	for i := range refs {
		refs[i] = []*Ref{&ref, &other}[r.IntN(2)]
	}
	of := make([]place, len(pos))
	findPlacesOf(b, refs, pos, of)
	for i := range of {
		one := make([]place, 1)
		if findPlaces(b, refs[i], pos[i:i+1], one); of[i] != one[0] {
			t.Fatalf("place of %d of %+v is %+v, want %+v", pos[i], refs[i], of[i], one[0])
		}
	}
	findPlacesOfPlain(refs, pos, of)
	for i := range of {
		one := make([]place, 1)
		if findPlacesPlain(refs[i], pos[i:i+1], one); of[i] != one[0] {
			t.Fatalf("place of %d of %+v is %+v, want %+v", pos[i], refs[i], of[i], one[0])
		}
	}
	want, got := make([]uint32, len(pos)), make([]uint32, len(pos))
	ask(b, places)
	takePlain(b, places, want)
	take(b, places, got)
	if !slices.Equal(want, got) {
		t.Fatalf("entries %d of %+v differ: %d, want %d", pos, ref, got, want)
	}
}

// setBits writes bits of a byte slice, one by one.
func setBits(b []byte, at uint64, width int, v uint64) {
	for i := range uint64(width) {
		b[(at+i)/8] = b[(at+i)/8]&^(1<<((at+i)%8)) | byte(v>>i&1)<<((at+i)%8)
	}
}

// TestCellWithoutItsOnes: an entry whose one is not among the upper bits of its cell is damage,
// though ones follow these: they are of the low bits.
func TestCellWithoutItsOnes(t *testing.T) {
	c := Coding{FirstBits: 20, PosBits: 15, Cells: true}
	var list []uint32
	r := rand.New(rand.NewPCG(2, 2))
	for range 40 {
		list = append(list, r.Uint32N(1<<18))
	}
	slices.Sort(list)
	var w Writer
	c.Append(&w, list)
	whole := make([]byte, (w.Bits()+7)/8+Slack)
	w.CopyTo(whole)
	l, err := c.Parse(whole, 0, uint64(w.Bits()))
	if err != nil || l.way != wayCells || l.cells.low == 0 {
		t.Fatalf("a list in cells with low bits is wanted, not of way %d, %+v: %v", l.way, l.cells,
			err)
	}
	upper := l.low + uint64(l.cells.base)
	for ones := range int(l.cells.per) { // all ones of the cell
		b := slices.Clone(whole)
		setBits(b, upper, int(l.cells.upper), 1<<ones-1)
		setBits(b, upper+uint64(l.cells.upper), 2, 3)
		for k := range uint32(l.cells.per) {
			if _, ok := l.At(b, 1+k); ok != (int(k) < ones) {
				t.Errorf("entry %d of a cell with %d ones: read is %v", k, ones, ok)
			}
		}
		if err := l.Decode(b, make([]uint32, len(list))); !errors.Is(err, ErrList) {
			t.Errorf("a cell with %d ones: %v", ones, err)
		}
	}
}

// FuzzList gives any bytes to the decoder: it never panics; what Decode takes is what Append makes
// of the same ids, up to the choice of the way, and reads the same by entries.
func FuzzList(f *testing.F) {
	c := Coding{FirstBits: 20, PosBits: 15}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		var w Writer
		c.Cells = i%2 == 0
		c.Append(&w, randomList(r, 20))
		b := make([]byte, (w.Bits()+7)/8)
		w.CopyTo(b)
		f.Add(b, uint16(0), uint16(w.Bits()))
	}
	f.Fuzz(func(t *testing.T, data []byte, from, end uint16) {
		b := append(slices.Clone(data), make([]byte, Slack+1<<10)...)
		l, err := c.Parse(b[:len(data)+Slack], uint64(from), uint64(end))
		if err != nil {
			return
		}
		for _, k := range []uint32{0, 1, l.Count / 2, l.Count - 1} {
			l.At(b, min(k, l.Count-1))
		}
		out, one := make([]uint32, l.Count), []uint32{0}
		g, ref := NewGatherer(c, b, 1<<10), l.Ref()
		g.Begin(one)
		g.List(&ref, []uint32{l.Count - 1})
		g.End()
		if err := l.Decode(b, out); err != nil {
			return
		}
		if !slices.IsSorted(out) || one[0] != out[l.Count-1] {
			t.Fatalf("%d ids that are not sorted, or end with %d", l.Count, one[0])
		}
		for _, k := range []uint32{0, l.Count / 2, l.Count - 1} {
			if v, ok := l.At(b, k); !ok || v != out[k] {
				t.Fatalf("entry %d is %d, want %d", k, v, out[k])
			}
		}
	})
}

// TestColumns: columns of any values read back, and take the bits that were said.
func TestColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, valueBits := range []int{16, 32, 64} {
		for range 300 {
			values := make([]uint64, 1+r.IntN(50))
			base, width, shift := r.Uint64()>>(64-valueBits), r.IntN(valueBits+1), r.IntN(valueBits)
			var s Span
			for i := range values {
				v := base + r.Uint64()>>(63-min(width, 63))<<shift
				values[i] = v << (64 - valueBits) >> (64 - valueBits)
				if r.IntN(3) == 0 {
					values[i] = values[0]
				}
				s.Add(values[i])
			}
			var w Writer
			AppendColumn(&w, values, s, valueBits)
			b := make([]byte, (w.Bits()+7)/8+Slack)
			w.CopyTo(b)
			c, err := ParseColumn(b, 0, uint64(w.Bits()), len(values), valueBits)
			want := s.Bits(len(values), valueBits)
			if err != nil || w.Bits() != want || c.End != uint64(want) {
				t.Fatalf("%d bits, want %d: %v", w.Bits(), want, err)
			}
			for i, v := range values {
				if got := c.At(b, uint32(i)); got != v {
					t.Fatalf("value %d is %x, want %x", i, got, v)
				}
			}
		}
	}
}
