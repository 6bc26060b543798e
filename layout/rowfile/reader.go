// Package rowfile stores rows of a fixed width, one for each node: features, labels and targets.
// Its files are described in docs/format/rows.md.
package rowfile

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/kv"
	"gdb/layout"
)

// Reader reads a file of fixed-width rows, one per node: features (f32, f16, bf16), labels (i32, u8
// bit rows, f32 targets). Every byte that reaches the caller was verified against the checksums of
// the file's .crc companion: see rowSums. It may be used from any goroutine; up to four read at
// once, each with a buffer of 2 MiB, further ones wait.
type Reader struct {
	shape  Shape
	f      *layout.File
	seed   uint32
	uuid   kv.UUID
	sums   rowSums
	decode func(out []float32, row []byte) // nil if rows are no floats
	scaled bool                            // decode scales rows
	packed bool                            // and packs them: see Pack
	budget *mem.Budget
	read   atomic.Uint64

	pool chan *rowsBuffer
	mu   struct {
		sync.Mutex
		made int // buffers, in the pool or in use
	}
}

const (
	rowsBufferBytes = 2 << 20
	rowsBuffers     = 4
	// rowsParts of a buffer: while one is delivered the others are being read, so that the queue is
	// full when the first of them ends. With two, both ended together, and the device waited.
	rowsParts = 4
)

// rowsBuffer is what one Gather, Sweep or Scan works with. Memory: the arena, and 20 bytes per node
// of the largest Gather, 4 per row, and 56 per read of 2 MiB of them, 64
// per sector of checksums.
type rowsBuffer struct {
	arena *mem.Arena
	held  mem.Account // the rest
	order pace.Sorter // node<<32 | index
	parts [rowsParts]rowsPart
	into  *stored // where rows are read to instead, if they stay there
}

// rowsPart is a share of a buffer, and the rows that are read to it together.
type rowsPart struct {
	buf   []byte
	first int      // where buf begins in the memory of a caller
	keys  []uint64 // nodes in the upper halves; none if nothing is under way
	at    []uint32 // of each key: where in buf its row begins
	sums  sumCursor
	reqs  []blockdev.Request
	done  chan error
}

func newRowsBuffer(all []byte, held mem.Account) *rowsBuffer {
	b := &rowsBuffer{held: held}
	n := len(all) / rowsParts &^ (blockdev.Align - 1)
	for i := range b.parts {
		part := all[i*n : (i+1)*n : (i+1)*n]
		b.parts[i] = rowsPart{buf: part, sums: sumCursor{buf: part}, done: make(chan error, 1)}
	}
	return b
}

// bytes is the memory beside the arena.
func (b *rowsBuffer) bytes() int64 {
	n := b.order.Bytes()
	for i := range b.parts {
		p := &b.parts[i]
		n += 4*int64(cap(p.at)) + 56*int64(cap(p.reqs)) + 8*int64(cap(p.sums.sectors))
	}
	return n
}

// Open opens a file of rows. Their checksums go to memory if they take no more than a quarter of
// what the budget leaves.
func Open(ctx context.Context, s *layout.Store, dev blockdev.Device, m kv.RowsMeta,
	budget *mem.Budget) (*Reader, error) {
	shape, err := NewShape(m, s.Meta().Nodes)
	if err != nil {
		return nil, &layout.CorruptionError{Path: layout.CatalogName, Block: -1, What: err.Error()}
	}
	onDisk := budget != nil && budget.Limit() > 0 &&
		!shape.sumsFit(budget.Limit()-budget.Used())
	return openRows(ctx, s, dev, shape, onDisk, budget)
}

// openRows opens a file of rows whose checksums stay on disk or not.
func openRows(ctx context.Context, s *layout.Store, dev blockdev.Device, shape Shape, onDisk bool,
	budget *mem.Budget) (*Reader, error) {
	m := shape.RowsMeta
	f, err := s.OpenFile(dev, m.Path)
	if err != nil {
		return nil, err
	}
	r := &Reader{shape: shape, f: f, seed: layout.SumSeed(layout.KindRows, s.Meta().UUID),
		uuid:   s.Meta().UUID,
		budget: budget,
		decode: Decoder(m.DType), pool: make(chan *rowsBuffer, rowsBuffers)}
	err = checkHeader(ctx, s, f, layout.KindRows, &shape)
	if err == nil {
		r.sums, err = openSums(ctx, s, dev, &shape, onDisk, budget)
	}
	if err == nil {
		var b *rowsBuffer
		if b, err = r.makeBuffer(); err == nil {
			r.pool <- b
		}
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// checkHeader checks that the header and size of a file are those of rows of this shape.
func checkHeader(ctx context.Context, s *layout.Store, f *layout.File, kind string,
	want *Shape) error {
	buf, err := mem.NewArena(nil, "header", layout.PageBytes)
	if err != nil {
		return err
	}
	h, err := f.ReadHeader(ctx, kind, s.Meta().UUID, buf.Bytes())
	if err == nil {
		err = want.CheckFields(f, h.Fields)
	}
	if err := errors.Join(err, buf.Free()); err != nil {
		return err
	}
	if kind == layout.KindSums {
		return f.CheckSize(want.SumsBytes())
	}
	return f.CheckSize(layout.PageBytes + want.DataBytes())
}

// CheckFields checks the fields of a header against those of the catalog.
func (s *Shape) CheckFields(f *layout.File, fields []byte) error {
	got, err := decodeFields(fields)
	if err != nil {
		return f.Damage(0, 0, "header: %v", err)
	}
	if got.Path = s.Path; got != *s {
		return f.Damage(0, 0, "header tells of %d rows %q of %d %s, the catalog of %d rows %q "+
			"of %d %s", got.Nodes, got.Name, got.Dim, got.DType, s.Nodes, s.Name, s.Dim, s.DType)
	}
	return nil
}

// readSums reads the pages of checksums.
func readSums(ctx context.Context, s *layout.Store, f *layout.File, shape *Shape,
	budget *mem.Budget) (*mem.Arena, error) {
	sums, err := mem.NewArena(budget, "checksums of "+shape.Path, shape.units()*4)
	if err != nil {
		return nil, err
	}
	to := mem.View[uint32](sums.Bytes())
	err = f.Stream(ctx, layout.PageBytes, f.Size(), layout.PageBytes, func(off int64,
		data []byte) error {
		for ; len(data) > 0; off, data = off+layout.PageBytes, data[layout.PageBytes:] {
			n := off / layout.PageBytes
			if err := layout.VerifyPage(layout.KindSums, s.Meta().UUID, n,
				data[:layout.PageBytes]); err != nil {
				return f.Damage(n, off, "%v", err)
			}
			m := min(len(to), SumsPerPage)
			for i := range to[:m] {
				to[i] = SumAt(data, i)
			}
			to = to[m:]
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, sums.Free())
	}
	return sums, nil
}

// MostBytes is the memory that reading a file of rows takes at most, if it is opened with so much
// left: its checksums, if they go to memory, and buffers.
func MostBytes(s *layout.Store, m kv.RowsMeta, room int64) int64 {
	shape, err := NewShape(m, s.Meta().Nodes)
	if err != nil {
		return 0
	}
	most := rowsBuffers * shape.bufferBytes()
	if shape.sumsFit(room) {
		most += 4 * shape.units()
	}
	return most
}

// MostBytes is the memory that this reader takes at most.
func (r *Reader) MostBytes() int64 {
	most := rowsBuffers * r.shape.bufferBytes()
	if r.sums.arena != nil {
		most += int64(len(r.sums.arena.Bytes()))
	}
	return most
}

// bufferBytes is the size of a buffer: each part has room for a page that begins and ends within a
// unit, and for its checksums.
func (s *Shape) bufferBytes() int64 {
	page := int64(s.PageBytes + 2*s.SumBytes)
	return max(rowsBufferBytes, rowsParts*(page+sectorBytes*s.sumSectors(page)))
}

// Meta describes the file. Of rows that are packed, Dim is that of a packed row.
func (r *Reader) Meta() kv.RowsMeta {
	m := r.shape.RowsMeta
	if r.packed {
		m.Dim = PackedDim(m.Dim)
	}
	return m
}

// Width is the number of values of a row, whether it is packed or not.
func (r *Reader) Width() int { return r.shape.Dim }

// Packed says whether rows are packed.
func (r *Reader) Packed() bool { return r.packed }

// BytesRead is the number of bytes read from disk so far.
func (r *Reader) BytesRead() uint64 { return r.read.Load() }

// Close frees the memory and closes the file; no call is under way any more.
func (r *Reader) Close() error {
	err := errors.Join(r.f.Close(), r.sums.close())
	for ; r.mu.made > 0; r.mu.made-- {
		b := <-r.pool
		b.held.Release()
		err = errors.Join(err, b.arena.Free())
	}
	return err
}

func (r *Reader) makeBuffer() (*rowsBuffer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.made == rowsBuffers {
		return nil, nil
	}
	arena, err := mem.NewArena(r.budget, "read buffer of "+r.shape.Path, r.shape.bufferBytes())
	if err != nil && r.mu.made > 0 {
		return nil, nil // slower, but it goes on with the buffers there are
	}
	if err != nil {
		return nil, err
	}
	r.mu.made++
	b := newRowsBuffer(arena.Bytes(), r.sorting())
	b.arena = arena
	return b, nil
}

// sorting counts what a buffer takes besides.
func (r *Reader) sorting() mem.Account {
	return mem.NewAccount(r.budget, "sorting of rows of "+r.shape.Path)
}

// take returns a free buffer, a new one, or waits for one.
func (r *Reader) take(ctx context.Context) (*rowsBuffer, error) {
	select {
	case b := <-r.pool:
		return b, nil
	default:
	}
	if b, err := r.makeBuffer(); b != nil || err != nil {
		return b, err
	}
	select {
	case b := <-r.pool:
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// give puts a buffer back.
func (r *Reader) give(b *rowsBuffer) { r.pool <- b }
