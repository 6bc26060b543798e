package listcode

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// coded codes lists one after the other, and returns the bytes, without what must follow them, and
// where each list ends.
func coded(c Coding, lists ...[]uint32) (b []byte, ends []uint64) {
	var w Writer
	for _, list := range lists {
		c.Append(&w, list)
		ends = append(ends, uint64(w.Bits()))
	}
	b = make([]byte, (w.Bits()+7)/8)
	w.CopyTo(b)
	return b, ends
}

// waysOf are lists of each way: of one id, packed, as Elias-Fano, and in cells.
func waysOf(t *testing.T) map[string]struct {
	c    Coding
	list []uint32
} {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 8))
	drawn := func(n int, most uint32) (list []uint32) {
		for range n {
			list = append(list, 3+r.Uint32N(most))
		}
		slices.Sort(list)
		return list
	}
	ways := map[string]struct {
		c    Coding
		list []uint32
	}{
		"one id":          {Coding{Base: 3, FirstBits: 9, PosBits: 15}, []uint32{400}},
		"one id of none":  {Coding{Base: 400, PosBits: 15}, []uint32{400}},
		"packed":          {Coding{FirstBits: 20, PosBits: 15}, drawn(5, 1<<18)},
		"Elias-Fano":      {Coding{FirstBits: 20, PosBits: 15}, drawn(40, 1<<18)},
		"with samples":    {Coding{FirstBits: 20, PosBits: 15}, drawn(200, 1<<14)},
		"cells":           {Coding{FirstBits: 20, PosBits: 15, Cells: true}, drawn(40, 1<<18)},
		"cells, many ids": {Coding{FirstBits: 20, PosBits: 15, Cells: true}, drawn(700, 1<<18)},
	}
	for name, want := range map[string]func(way int) bool{
		"packed":       func(way int) bool { return way < wayEF },
		"Elias-Fano":   func(way int) bool { return way >= wayEF && way < wayCells },
		"with samples": func(way int) bool { return way >= wayEF && way < wayCells },
		"cells":        func(way int) bool { return way == wayCells },
	} {
		if way := ways[name].c.FormOf(ways[name].list).way; !want(way) {
			t.Fatalf("%s: the list is of way %d", name, way)
		}
	}
	return ways
}

// TestEndsOfLists: a list is taken with its own end, up to PaddingMost-1 zeros behind it and Slack
// bytes behind these, and not with an end before, with more zeros, a one, or fewer bytes.
func TestEndsOfLists(t *testing.T) {
	for name, x := range waysOf(t) {
		b, ends := coded(x.c, x.list)
		end, out := ends[0], make([]uint32, len(x.list))
		whole := append(slices.Clone(b), make([]byte, Slack+8)...)
		for cut := range end {
			l, err := x.c.Parse(whole, 0, cut)
			if err == nil {
				err = l.Decode(whole, out)
			}
			if !errors.Is(err, ErrList) {
				t.Fatalf("%s: %d of %d bits are a list: %v", name, cut, end, err)
			}
		}
		for pad := range uint64(PaddingMost + 2) {
			l, err := x.c.Parse(whole, 0, end+pad)
			if err != nil || l.End() != end+pad || int(l.Count) != len(x.list) {
				t.Fatalf("%s, %d bits behind: %d ids up to bit %d: %v", name, pad, l.Count, l.End(),
					err)
			}
			if err := l.Decode(whole, out); (err == nil) != (pad < PaddingMost) {
				t.Errorf("%s, %d zeros behind: %v", name, pad, err)
			}
			if pad == 0 || pad >= PaddingMost {
				continue
			}
			ones := slices.Clone(whole)
			setBits(ones, end+pad-1, 1, 1)
			if err := l.Decode(ones, out); !errors.Is(err, ErrList) {
				t.Errorf("%s, a one %d bits behind: %v", name, pad, err)
			}
		}
		if _, err := x.c.Parse(whole[:end>>3+Slack], 0, end); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := x.c.Parse(whole[:end>>3+Slack-1], 0, end); !errors.Is(err, ErrList) {
			t.Errorf("%s: a byte of those behind is missing: %v", name, err)
		}
		if _, err := x.c.Parse(whole, end+1, end); !errors.Is(err, ErrList) {
			t.Errorf("%s: a list that ends before it begins: %v", name, err)
		}
	}
}

// TestHeadsThatCutEntries: a list whose entries do not fit before its end is refused by its head
// alone, whatever they are; what fits to the bit is taken.
func TestHeadsThatCutEntries(t *testing.T) {
	const room = 1000
	c := Coding{FirstBits: 5, PosBits: 11}
	three := cells{low: 4, per: 3, upper: 6, base: 2}
	for name, x := range map[string]struct {
		n, way uint64
		cells  cells
		bits   uint64 // of the entries
	}{
		"one id":               {0, 0, cells{}, 0},
		"packed":               {12, 32, cells{}, 12 * 32},
		"packed in no bits":    {12, 0, cells{}, 0},
		"Elias-Fano":           {13, wayEF + 3, cells{}, 13*3 + 13},
		"Elias-Fano, no low":   {9, wayEF, cells{}, 9},
		"the most low bits":    {9, wayEF + 29, cells{}, 9*29 + 9},
		"two cells":            {5, wayCells, three, 22 + 2*8 + 5*4},
		"one cell":             {3, wayCells, three, 22 + 8 + 3*4},
		"cells of two entries": {4, wayCells, cells{low: 0, per: 2, upper: 2, base: 0}, 22 + 2*2},
	} {
		b := make([]byte, room)
		setBits(b, 0, countBits, x.n)
		setBits(b, countBits, c.FirstBits, 17)
		at := uint64(countBits + c.FirstBits)
		if x.n > 0 {
			setBits(b, at, wayBits, x.way)
			at += wayBits
		}
		if x.way == wayCells {
			setBits(b, at, cellsHead, x.cells.head())
		}
		l, err := c.Parse(b, 0, at+x.bits)
		if err != nil || l.Count != uint32(x.n)+1 || l.first != 17 {
			t.Errorf("%s: %d ids from %d on: %v", name, l.Count, l.first, err)
		}
		for end := range at + x.bits {
			if _, err := c.Parse(b, 0, end); !errors.Is(err, ErrList) {
				t.Errorf("%s: %d bits of %d are taken: %v", name, end, at+x.bits, err)
			}
		}
	}
}

// TestSamplesTakeRoom: of a list with samples the head counts these too.
func TestSamplesTakeRoom(t *testing.T) {
	c := Coding{FirstBits: 5, PosBits: 11}
	b := make([]byte, 1000)
	setBits(b, 0, countBits, countShort)
	setBits(b, countBits, 8, 129-countShort) // entries: two samples
	at := uint64(countBits + 8 + c.FirstBits)
	setBits(b, at, wayBits, wayEF+1)
	end := at + wayBits + 2*11 + 129 + 129
	if l, err := c.Parse(b, 0, end); err != nil || l.Count != 130 {
		t.Errorf("%d ids: %v", l.Count, err)
	}
	if _, err := c.Parse(b, 0, end-1); !errors.Is(err, ErrList) {
		t.Errorf("a bit less: %v", err)
	}
}

// TestCellsThatCannotBe: cells have two entries at least, as many upper bits as entries at least,
// and 57 of these at most.
func TestCellsThatCannotBe(t *testing.T) {
	c := Coding{FirstBits: 5, PosBits: 11}
	for _, x := range []struct {
		per, upper uint8
		ok         bool
	}{{2, 2, true}, {2, 57, true}, {57, 57, true}, {1, 2, false}, {0, 0, false}, {3, 2, false},
		{2, 58, false}, {2, 63, false}, {58, 58, false}} {
		b := make([]byte, 1000)
		setBits(b, 0, countBits, 3)
		setBits(b, countBits+5, wayBits, wayCells)
		setBits(b, countBits+5+wayBits, cellsHead, cells{low: 1, per: x.per, upper: x.upper}.head())
		if _, err := c.Parse(b, 0, 7000); (err == nil) != x.ok || err != nil &&
			!errors.Is(err, ErrList) {
			t.Errorf("cells of %d entries with %d upper bits: %v", x.per, x.upper, err)
		}
	}
}

// TestDamagedEntries: ids that descend, samples that are not where their ones are and upper bits
// without ones are found when a list is read whole; ids that are equal are not damage.
func TestDamagedEntries(t *testing.T) {
	decode := func(c Coding, b []byte, end uint64) error {
		b = append(slices.Clone(b), make([]byte, Slack+8)...)
		l, err := c.Parse(b, 0, end)
		if err != nil {
			t.Fatal(err)
		}
		return l.Decode(b, make([]uint32, l.Count))
	}
	c := Coding{FirstBits: 4, PosBits: 15}
	b, ends := coded(c, []uint32{1, 5, 5, 7})
	if err := decode(c, b, ends[0]); err != nil {
		t.Errorf("equal ids: %v", err)
	}
	setBits(b, ends[0]-3, 3, 2) // the last id is 3 after 5
	if err := decode(c, b, ends[0]); !errors.Is(err, ErrList) {
		t.Errorf("packed ids that descend: %v", err)
	}
	ways := waysOf(t)
	x := ways["with samples"]
	b, ends = coded(x.c, x.list)
	b = append(b, make([]byte, Slack+8)...)
	l, err := x.c.Parse(b, 0, ends[0])
	if err != nil {
		t.Fatal(err)
	}
	for sample := range uint64(3) { // of 199 entries
		at := l.samples + sample*15
		wrong := slices.Clone(b)
		setBits(wrong, at, 15, Field(b, at, 15)+1)
		if err := decode(x.c, wrong, ends[0]); !errors.Is(err, ErrList) {
			t.Errorf("a wrong sample %d: %v", sample, err)
		}
	}
	descends := 0
	for i := range uint64(len(x.list) - 2) { // ids of which only the low bits differ change places
		at, width := l.low+i*uint64(l.width), int(l.width)
		low, next := x.list[i+1]-x.list[0], x.list[i+2]-x.list[0]
		if low == next || low>>width != next>>width {
			continue
		}
		descends++
		swapped := slices.Clone(b)
		setBits(swapped, at, width, Field(b, at+uint64(width), width))
		setBits(swapped, at+uint64(width), width, Field(b, at, width))
		if err := decode(x.c, swapped, ends[0]); !errors.Is(err, ErrList) {
			t.Errorf("ids %d and %d in the other order: %v", i+1, i+2, err)
		}
	}
	if descends == 0 {
		t.Error("no ids differ in their low bits only")
	}
	none := slices.Clone(b)
	for at := l.upper + 100; at < l.end; at++ {
		setBits(none, at, 1, 0)
	}
	if err := decode(x.c, none, ends[0]); !errors.Is(err, ErrList) {
		t.Errorf("no ones: %v", err)
	}
	if _, ok := l.At(none, l.Count-1); ok {
		t.Error("an entry without its one is read")
	}
	if v, ok := l.At(none, 0); !ok || v != x.list[0] {
		t.Errorf("the first id is %d, %v", v, ok)
	}
}

// TestCellsThatDescend: a cell whose base is below that of the cell before is damage.
func TestCellsThatDescend(t *testing.T) {
	x := waysOf(t)["cells, many ids"]
	b, ends := coded(x.c, x.list)
	b = append(b, make([]byte, Slack+8)...)
	l, err := x.c.Parse(b, 0, ends[0])
	if err != nil {
		t.Fatal(err)
	}
	last := l.low + uint64(len(x.list)-2)/uint64(l.cells.per)*l.cells.stride()
	setBits(b, last, int(l.cells.base), 0)
	if err := l.Decode(b, make([]uint32, l.Count)); !errors.Is(err, ErrList) {
		t.Errorf("the last cell has base 0: %v", err)
	}
}

// TestDamagedColumns: a column that does not fit before its end, or whose values have more bits
// than they can, is refused.
func TestDamagedColumns(t *testing.T) {
	for _, valueBits := range []int{16, 32, 64} {
		values := []uint64{8, 24, 8, 200}
		var s Span
		for _, v := range values {
			s.Add(v)
		}
		var w Writer
		w.Add(5, 3) // it begins inside a byte
		AppendColumn(&w, values, s, valueBits)
		end := uint64(w.Bits())
		b := make([]byte, end>>3+Slack)
		w.CopyTo(b)
		if width := (end - 3 - uint64(valueBits) - columnHead) / 4; width != 5 { // 0 … 192 / 8
			t.Errorf("a value of 8 to 200, all of them times 8, takes %d bits", width)
		}
		c, err := ParseColumn(b, 3, end, 4, valueBits)
		if err != nil || c.End != end {
			t.Fatalf("the column ends at bit %d of %d: %v", c.End, end, err)
		}
		for i, v := range values {
			if got := c.At(b, uint32(i)); got != v {
				t.Errorf("value %d is %d, want %d", i, got, v)
			}
		}
		for cut := range end {
			if _, err := ParseColumn(b, 3, cut, 4, valueBits); !errors.Is(err, ErrList) {
				t.Fatalf("%d of %d bits are a column: %v", cut, end, err)
			}
		}
		if _, err := ParseColumn(b[:len(b)-1], 3, end, 4, valueBits); !errors.Is(err, ErrList) {
			t.Errorf("a byte behind is missing: %v", err)
		}
		if _, err := ParseColumn(b, end+1, end, 0, valueBits); !errors.Is(err, ErrList) {
			t.Errorf("a column that ends before it begins: %v", err)
		}
		head := 3 + uint64(valueBits)
		for shift := range uint64(1 << shiftBits) {
			width := uint64(valueBits) - min(shift, uint64(valueBits))
			setBits(b, head, shiftBits, shift)
			setBits(b, head+shiftBits, widthBits, width)
			_, err := ParseColumn(b, 3, end, 0, valueBits)
			if fits := shift+width <= uint64(valueBits); (err == nil) != fits {
				t.Errorf("%d bits and %d more of %d: %v", width, shift, valueBits, err)
			}
			setBits(b, head+shiftBits, widthBits, width+1)
			if _, err := ParseColumn(b, 3, end, 0, valueBits); !errors.Is(err, ErrList) {
				t.Errorf("%d bits and %d more of %d: %v", width+1, shift, valueBits, err)
			}
		}
	}
}

// TestSpans: a span has the bits of the largest value less the least, without those that are zero
// in all.
func TestSpans(t *testing.T) {
	var s Span
	for _, v := range []uint64{48, 20, 100, 12, 96} {
		s.Add(v)
	}
	if low, width := s.Range(); low != 12 || width != 7 { // 88 in 7 bits
		t.Errorf("from %d on in %d bits, want from 12 on in 7", low, width)
	}
	// 88 is 22 times 4, in 5 bits.
	if got, want := s.Bits(9, 16), 16+13+9*5; got != want {
		t.Errorf("9 values take %d bits, want %d", got, want)
	}
}

// TestDamageTells: an error of a list that is cut off says how many ids it has, and after how many
// of its bits it ends.
func TestDamageTells(t *testing.T) {
	for name, x := range waysOf(t) {
		b, ends := coded(x.c, x.list, x.list)
		b = append(b, make([]byte, Slack)...)
		from, told := ends[0], 0
		for cut := from + countBits + longBits; cut < ends[1]; cut++ {
			_, err := x.c.Parse(b, from, cut)
			if err == nil {
				break // entries are missing, which Decode tells
			}
			told++
			want := fmt.Sprintf("coded list of %d ids", len(x.list))
			after := cut - from
			if strings.Contains(err.Error(), "cells") { // whose bits are told without the head's
				after -= uint64(x.c.headBits(len(x.list)-1)) + wayBits
			}
			bits := fmt.Sprintf("ends after %d bits", after)
			if !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), bits) {
				t.Errorf("%s, after %d bits: error %q, want %q and %q", name, cut-from, err, want,
					bits)
			}
		}
		if told == 0 && len(x.list) > 1 {
			t.Errorf("%s: no cut is told", name)
		}
	}
}
