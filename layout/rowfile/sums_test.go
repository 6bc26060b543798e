package rowfile

import (
	"math"
	"testing"

	"gdb/kv"
	"gdb/layout"

	"pgregory.net/rapid"
)

// TestSumSectors: the sectors that are listed for units in ascending order hold the checksum of
// each, whole, once, and are no more than are made room for; also where offsets and numbers of
// units have more than 32 bits.
func TestSumSectors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Shape{RowsMeta: kv.RowsMeta{SumBytes: 1 << rapid.IntRange(9, 12).Draw(t, "unit")}}
		unit := int64(s.SumBytes)
		sums := rowSums{file: &layout.File{}}
		near := rapid.SampledFrom([]int64{0, SumsPerPage, 1 << 30, math.MaxUint32, 1 << 35})
		from := near.Draw(t, "near") + rapid.Int64Range(0, 2000).Draw(t, "first")
		begin := from
		var sectors []int64
		for range rapid.IntRange(1, 40).Draw(t, "reads") {
			to := from + rapid.Int64Range(1, 300).Draw(t, "units")
			n := sums.missing(sectors, from*unit, to*unit, unit)
			before := len(sectors)
			sectors = sums.list(sectors, from*unit, to*unit, unit)
			if len(sectors) != before+int(n) {
				t.Fatalf("%d sectors are listed, %d were missing", len(sectors)-before, n)
			}
			c := sumCursor{sectors: sectors, buf: make([]byte, len(sectors)*sectorBytes)}
			for u := from; u < to; u++ {
				sums.want(u, &c) // panics if its sector is not there
			}
			if most := s.sumSectors((to - begin) * unit); int64(len(sectors)) > most {
				t.Fatalf("%d sectors for units %d to %d, room for %d", len(sectors), begin, to,
					most)
			}
			from = to + rapid.Int64Range(-1, 1000).Draw(t, "gap")
			from = max(from, to-1)
		}
		for i, off := range sectors {
			if off%sectorBytes != 0 || i > 0 && off <= sectors[i-1] {
				t.Fatalf("sector %d is at %d after %d", i, off, sectors[max(i-1, 0)])
			}
		}
	})
}

// TestRowsOfAllNodes: the places of the last of 2^32 rows, in a file of terabytes.
func TestRowsOfAllNodes(t *testing.T) {
	m, err := NewMeta("x", "features/x.rows", "f32", 300)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewShape(m, layout.MaxNodes)
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(layout.MaxNodes - 1)
	from, to := s.span(last)
	if at := s.at(last); at < from || at+int64(m.RowBytes) > to || to > s.DataBytes() ||
		s.at(last)-s.at(0) < int64(last)*int64(m.RowBytes) {
		t.Errorf("row %d at %d of %d, read as %d to %d", last, at, s.DataBytes(), from, to)
	}
	if off := sumOffset(s.units() - 1); off+4 > s.SumsBytes() ||
		off < s.SumsBytes()-layout.PageBytes {
		t.Errorf("the last checksum is at %d of %d", off, s.SumsBytes())
	}
	if _, err := NewShape(m, layout.MaxNodes+1); err == nil {
		t.Error("more rows than ids were laid out")
	}
}
