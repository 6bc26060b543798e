package rowfile

import (
	"context"
	"encoding/binary"
	"fmt"

	"gdb/layout"
)

// Scan reads n consecutive rows from first on, in large sequential reads, converted to float32.
func (r *Reader) Scan(ctx context.Context, first layout.NodeID, n int, out []float32) error {
	if r.decode == nil {
		return fmt.Errorf("layout: %s holds %s, not floats", r.f.Path, r.shape.DType)
	}
	dim := r.Meta().Dim
	return r.scan(ctx, first, n, func(i, rows int, data []byte) {
		r.decode(out[i*dim:(i+rows)*dim], data)
	})
}

// ScanRaw does what Scan does without conversion: RowBytes bytes per row.
func (r *Reader) ScanRaw(ctx context.Context, first layout.NodeID, n int, out []byte) error {
	width := r.shape.RowBytes
	return r.scan(ctx, first, n, func(i, rows int, data []byte) {
		copy(out[i*width:(i+rows)*width], data)
	})
}

// scan calls emit with runs of rows: the index of the first, their number, and their bytes.
func (r *Reader) scan(ctx context.Context, first layout.NodeID, n int,
	emit func(i, rows int, data []byte)) error {
	if n < 0 || uint64(first)+uint64(n) > r.shape.Nodes {
		return fmt.Errorf("layout: rows %d to %d of %s: it has %d", first, uint64(first)+uint64(n),
			r.f.Path, r.shape.Nodes)
	}
	b, err := r.take(ctx)
	if err != nil {
		return err
	}
	defer r.give(b)
	unit, page := int64(r.shape.SumBytes), int64(r.shape.PageBytes)
	room := int64(len(b.arena.Bytes()))
	most := (room - 2*unit - sectorBytes*r.shape.sumSectors(room)) / page * r.shape.PerPage
	for i := int64(0); i < int64(n); {
		rows := min(most, int64(n)-i)
		from := r.shape.at(uint64(first)+uint64(i)) / unit * unit
		to := r.shape.at(uint64(first)+uint64(i+rows-1)) + int64(r.shape.RowBytes)
		to = (to + unit - 1) / unit * unit
		buf := b.arena.Bytes()[:to-from]
		if err := r.scanPart(ctx, b, from, buf); err != nil {
			return err
		}
		r.emitPages(uint64(first), i, rows, from, buf, emit)
		i += rows
	}
	return nil
}

// scanPart reads and verifies the units of the data area from offset from on to buf, which begins
// b's arena. If their checksums are on disk, it reads these to the arena's end.
func (r *Reader) scanPart(ctx context.Context, b *rowsBuffer, from int64, buf []byte) error {
	all, unit, to := b.arena.Bytes(), int64(r.shape.SumBytes), from+int64(len(buf))
	reqs := r.f.Requests(layout.PageBytes+from, buf)
	var sums []byte
	var first int64
	if r.sums.file != nil {
		var last int64
		first, last = r.sums.sectorsOf(from, to, unit)
		sums = all[int64(len(all))-(last+sectorBytes-first):]
		reqs = append(reqs, r.sums.file.Requests(first, sums)...)
	}
	if err := r.f.Dev.ReadBatch(ctx, reqs); err != nil {
		return fmt.Errorf("layout: read rows of %s: %w", r.f.Path, err)
	}
	r.read.Add(uint64(len(buf) + len(sums)))
	for off := from; off < to; off += unit {
		want := uint32(0)
		if sums != nil {
			want = binary.LittleEndian.Uint32(sums[sumOffset(off/unit)-first:])
		} else {
			want = r.sums.want(off/unit, nil)
		}
		if err := r.verify(ctx, off, buf[off-from:off-from+unit], want); err != nil {
			return err
		}
	}
	return nil
}

// emitPages emits rows i … i+rows-1 after first, page by page. buf holds the data area from offset
// from on.
func (r *Reader) emitPages(first uint64, i, rows, from int64, buf []byte,
	emit func(i, rows int, data []byte)) {
	for end := i + rows; i < end; {
		row := first + uint64(i)
		run := min(end-i, r.shape.PerPage-int64(row)%r.shape.PerPage)
		at := r.shape.at(row) - from
		emit(int(i), int(run), buf[at:at+run*int64(r.shape.RowBytes)])
		i += run
	}
}
