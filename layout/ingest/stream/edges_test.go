package stream

import (
	"bytes"
	"testing"

	"gdb/layout/listfile"
)

// TestRowsInRecords: a record gives back its number, its row and its values, of all sizes of rows.
func TestRowsInRecords(t *testing.T) {
	for _, size := range append([]int{0}, RowSizes...) {
		for _, c := range []EdgeCodec{{}, {Weighted: true}, {Typed: true, Timed: true},
			{Split: true}} {
			c.Numbered, c.RowBytes = true, size
			rec := make([]uint64, 1+c.Payload())
			row := bytes.Repeat([]byte{0xa7}, size)
			c.Pack(rec[1:], 5, -2.5, -77, 3, NumbersMost-1)
			if size > 0 {
				c.SetRow(rec, row)
			}
			c.SetReversed(rec, true)
			var e listfile.Edge
			var b RowBuffer
			c.Unpack(rec[1:], &e)
			if got := c.NumberOf(rec); got != NumbersMost-1 {
				t.Errorf("%+v: number %d", c, got)
			}
			if size > 0 && !bytes.Equal(c.RowOf(rec, &b), row) {
				t.Errorf("%+v: row %x", c, c.RowOf(rec, &b))
			}
			if split, reversed := c.SplitOf(rec); c.Split && (split != 3 || !reversed) {
				t.Errorf("%+v: split %d, reversed %t", c, split, reversed)
			}
			if c.Weighted && e.Weight != -2.5 || c.Timed && e.Time != -77 ||
				c.Typed && e.Type != 5 {
				t.Errorf("%+v: edge %+v", c, e)
			}
		}
	}
}
