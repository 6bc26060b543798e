package layout

import (
	"context"
	"fmt"
)

// Scan reads n consecutive rows from first on, in large sequential reads, converted to float32.
func (r *Rows) Scan(ctx context.Context, first NodeID, n int, out []float32) error {
	if r.decode == nil {
		return fmt.Errorf("layout: %s holds %s, not floats", r.f.path, r.shape.DType)
	}
	dim := r.shape.Dim
	return r.scan(ctx, first, n, func(i, rows int, data []byte) {
		r.decode(out[i*dim:(i+rows)*dim], data)
	})
}

// ScanRaw is Scan without conversion: RowBytes bytes per row.
func (r *Rows) ScanRaw(ctx context.Context, first NodeID, n int, out []byte) error {
	width := r.shape.RowBytes
	return r.scan(ctx, first, n, func(i, rows int, data []byte) {
		copy(out[i*width:(i+rows)*width], data)
	})
}

// scan calls emit with runs of rows: the index of the first, how many, and their bytes.
func (r *Rows) scan(ctx context.Context, first NodeID, n int,
	emit func(i, rows int, data []byte)) error {
	if n < 0 || uint64(first)+uint64(n) > r.shape.nodes {
		return fmt.Errorf("layout: rows %d to %d of %s: it has %d", first, uint64(first)+uint64(n),
			r.f.path, r.shape.nodes)
	}
	b, err := r.take(ctx)
	if err != nil {
		return err
	}
	defer r.give(b)
	unit, page := int64(r.shape.SumBytes), int64(r.shape.PageBytes)
	most := (int64(len(b.arena.Bytes())) - 2*unit) / page * r.shape.perPage
	for i := int64(0); i < int64(n); {
		rows := min(most, int64(n)-i)
		from := r.shape.at(uint64(first)+uint64(i)) / unit * unit
		to := r.shape.at(uint64(first)+uint64(i+rows-1)) + int64(r.shape.RowBytes)
		to = (to + unit - 1) / unit * unit
		buf := b.arena.Bytes()[:to-from]
		if err := r.f.read(ctx, pageBytes+from, buf); err != nil {
			return fmt.Errorf("layout: read rows of %s: %w", r.f.path, err)
		}
		r.read.Add(uint64(len(buf)))
		for off := from; off < to; off += unit {
			if err := r.verify(off, buf[off-from:off-from+unit]); err != nil {
				return err
			}
		}
		r.emitPages(uint64(first), i, rows, from, buf, emit)
		i += rows
	}
	return nil
}

// emitPages emits rows i … i+rows-1 after first, page by page; buf holds the data area from from.
func (r *Rows) emitPages(first uint64, i, rows, from int64, buf []byte,
	emit func(i, rows int, data []byte)) {
	for end := i + rows; i < end; {
		row := first + uint64(i)
		run := min(end-i, r.shape.perPage-int64(row)%r.shape.perPage)
		at := r.shape.at(row) - from
		emit(int(i), int(run), buf[at:at+run*int64(r.shape.RowBytes)])
		i += run
	}
}
