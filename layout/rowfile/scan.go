package rowfile

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

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
	if n < 0 || uint64(first)+uint64(n) > r.rows() {
		return fmt.Errorf("layout: rows %d to %d of %s: it has %d", first, uint64(first)+uint64(n),
			r.f.Path, r.rows())
	}
	if r.isLive() {
		return r.scanLevels(ctx, first, n, emit)
	}
	b, err := r.take(ctx)
	if err != nil {
		return err
	}
	defer r.give(b)
	unit, page := int64(r.shape.SumBytes), int64(r.shape.PageBytes)
	room := int64(len(b.arena.Bytes()))
	pages := (room - 2*unit - sectorBytes*r.shape.sumSectors(room)) / page
	for i := int64(0); i < int64(n); {
		rows := r.shape.scanned(uint64(first)+uint64(i), int64(n)-i, pages)
		from, _ := r.shape.span(uint64(first) + uint64(i))
		_, to := r.shape.span(uint64(first) + uint64(i+rows-1))
		buf := b.arena.Bytes()[:to-from]
		if from < to {
			if err := r.scanPart(ctx, b, from, buf); err != nil {
				return err
			}
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
	pad := r.shape.padded()
	for end := i + rows; i < end; {
		row := first + uint64(i)
		run := r.shape.run(row, min(end-i, emitMost))
		at := r.shape.at(row) - from
		data := buf[at : at+run*r.shape.width(row)]
		if pad != nil {
			data = pad(data, int(run))
		}
		emit(int(i), int(run), data)
		i += run
	}
}

// emitMost bounds the rows that are emitted at a time: rows of no values all lie in one place.
const emitMost = 1 << 12

// Sweep reads rows in the order of the file, each once, for many lists of nodes together. A key is
// node<<32 | the number of a list; keys ascend. emit is called for each key with the list and the
// row's RowBytes as they are stored, verified, in memory that is reused. Gaps between rows are read
// too where that is cheaper than a second read: many rows then make one pass over the file in large
// reads. They are read to buf, which must be page aligned: three quarters of it are read while one
// is delivered. If buf is smaller than a buffer of Gather, such a buffer is used instead.
func (r *Reader) Sweep(ctx context.Context, keys []uint64, buf []byte,
	emit func(list uint32, row []byte) error) error {
	if len(keys) == 0 {
		return nil
	}
	if v := keys[len(keys)-1] >> 32; v >= r.rows() {
		return layout.OutOfRange(layout.NodeID(v), r.rows())
	}
	if r.isLive() {
		return r.sweepLevels(ctx, keys, buf, emit)
	}
	if !slices.IsSorted(keys) {
		return fmt.Errorf("layout: sweep %s: %d keys do not ascend", r.f.Path, len(keys))
	}
	if int64(len(buf)) >= r.shape.bufferBytes() {
		b := newRowsBuffer(buf, r.sorting())
		defer b.held.Release()
		return r.stream(ctx, b, sweeps(), keys, emit, nil)
	}
	b, err := r.take(ctx)
	if err != nil {
		return err
	}
	defer r.give(b)
	return r.stream(ctx, b, sweeps(), keys, emit, nil)
}

// ReadCost is a number of reads, and of their bytes in all.
type ReadCost struct {
	Reads uint64
	Bytes int64
}

// SweepCost returns what Sweep of the keys of the first lists reads, and what Gather of each of
// these lists on its own would read. Keys ascend over all slices. It reads nothing, and takes 144
// bytes of memory per list. Rows that levels added are left out,
// and no row is taken for replaced.
func (r *Reader) SweepCost(keys iter.Seq[[]uint64], lists int) (once ReadCost, apart []ReadCost) {
	all, sums := sweeps(), sumsCost{}
	of := make([]apartCost, lists)
	for i := range of {
		of[i].init()
	}
	row, from, to := r.shape.Nodes, int64(0), int64(0) // the last row that was counted
	for some := range keys {
		for _, key := range some {
			list := int(uint32(key))
			if list >= lists || key>>32 >= r.shape.Nodes {
				continue
			}
			if key>>32 != row {
				row = key >> 32
				if from, to = r.shape.span(row); from < to {
					all.count(&once, from, to)
					sums.add(r, from, to)
				}
			}
			if from == to {
				continue // a row of no values
			}
			of[list].add(from, to)
			of[list].sums.add(r, from, to)
		}
	}
	once = once.plus(sums.cost())
	apart = make([]ReadCost, lists)
	for i := range of {
		rows, _ := of[i].cost()
		apart[i] = rows.plus(of[i].sums.cost())
	}
	return once, apart
}

// apartCost is what gathering a list on its own costs.
type apartCost struct {
	gatherCost
	sums sumsCost
}

// sumsCost counts the sectors of checksums, if these are on disk.
type sumsCost struct{ sector, sectors int64 } // offset of the last one, and their number

// add adds the sectors of the units from … to that were not counted yet.
func (k *sumsCost) add(r *Reader, from, to int64) {
	if r.sums.file == nil {
		return
	}
	first, last := r.sums.sectorsOf(from, to, int64(r.shape.SumBytes))
	n := (last-max(first, k.sector+sectorBytes))/sectorBytes + 1
	if n > 0 {
		k.sectors += n
		k.sector = last
	}
}

// cost returns the cost of one read per sector.
func (k *sumsCost) cost() ReadCost { return ReadCost{uint64(k.sectors), k.sectors * sectorBytes} }

func (c ReadCost) plus(d ReadCost) ReadCost {
	return ReadCost{c.Reads + d.Reads, c.Bytes + d.Bytes}
}

// Decode converts rows as they are stored to float32 (from f32, f16 and bf16).
func (r *Reader) Decode(out []float32, rows []byte) error {
	if r.decode == nil {
		return fmt.Errorf("layout: %s holds %s, not floats", r.f.Path, r.shape.DType)
	}
	r.decode(out, rows)
	return nil
}

// Encode appends a row of values to b as the file stores them, for Decode to read as those of the
// file are read: rounded to the file's type, and then scaled as reads are. Sparse rows have no such
// form.
func (r *Reader) Encode(b []byte, row []float32) ([]byte, error) {
	if r.decode == nil || r.shape.DType == Sparse {
		return b, fmt.Errorf("layout: %s holds %s: rows of values cannot be added", r.f.Path,
			r.shape.DType)
	}
	if len(row) != r.shape.Dim {
		return b, fmt.Errorf("a row of %d values: %s has %d", len(row), r.shape.Name, r.shape.Dim)
	}
	return encodeRow(b, r.shape.DType, row)
}
