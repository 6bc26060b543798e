package rowcache

import (
	"fmt"
	"slices"
)

//go:generate go run -tags avogen ./gen

// streamBytes is the size of a result, in bytes, from which it is written past the caches. On an
// AMD EPYC (Zen 4) with a third-level cache of 32 MiB, copying and then summing all took equally
// long both ways at 11 MiB; past the caches it took a fifth more at 6 MiB, and a quarter less at 87
// MiB.
const streamBytes = 16 << 20

// CopyRows copies row rows[i] of table, a row of dim values, to row i of out or, if to is not nil,
// to row to[i]. No two may go to the same row. bytes is the size of the whole result, of which this
// call may copy a part.
func CopyRows[N ~uint32](out, table []float32, dim int, rows []N, to []uint32, bytes int) {
	if len(rows) == 0 || dim == 0 {
		return
	}
	last := uint32(len(rows) - 1)
	if to != nil {
		to = to[:len(rows)]
		last = slices.Max(to)
	}
	if most := slices.Max(rows); int(most) >= len(table)/dim || int(last) >= len(out)/dim {
		panic(fmt.Sprintf("BUG: rowcache: row %d of %d to %d of %d", most, len(table)/dim, last,
			len(out)/dim))
	}
	copyOrStream(out, table, dim, rows, to, bytes)
}

// CopyEach copies row row(i) of table to row i of out, for n rows: see CopyRows.
func CopyEach(out, table []float32, dim, n, bytes int, row func(i int) uint32) {
	var rows [512]uint32
	for first := 0; first < n; first += len(rows) {
		part := rows[:min(len(rows), n-first)]
		for i := range part {
			part[i] = row(first + i)
		}
		CopyRows(out[first*dim:], table, dim, part, nil, bytes)
	}
}

// plain copies rows in the simplest way. The other ways must have the same result.
func plain[N ~uint32](out, table []float32, dim int, rows []N, to []uint32) {
	d := uint64(dim)
	for i, r := range rows {
		at := uint64(i)
		if to != nil {
			at = uint64(to[i])
		}
		copy(out[at*d:(at+1)*d], table[uint64(r)*d:(uint64(r)+1)*d])
	}
}
