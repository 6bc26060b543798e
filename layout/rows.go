package layout

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"gdb/internal/radix"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
)

// Rows reads a file of fixed-width rows, one per node: features (f32, f16, bf16), labels (i32, u8
// bit rows, f32 targets). Every byte that reaches the caller was verified against the checksums of
// the file's .crc companion: see rowSums. It may be used from any goroutine; up to four read at
// once, each with a buffer of 2 MiB, further ones wait.
type Rows struct {
	shape  rowsShape
	f      *source
	seed   uint32
	uuid   kv.UUID
	sums   rowSums
	decode func(out []float32, row []byte) // nil if rows are no floats
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
	held  mem.Account  // the rest
	order radix.Sorter // node<<32 | index
	parts [rowsParts]rowsPart
}

// rowsPart is a share of a buffer, and the rows that are read to it together.
type rowsPart struct {
	buf  []byte
	keys []uint64 // nodes in the upper halves; none if nothing is under way
	at   []uint32 // of each key: where in buf its row begins
	sums sumCursor
	reqs []blockdev.Request
	done chan error
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

// Rows opens a file of rows. Their checksums go to memory if they take no more than a quarter of
// what the budget leaves.
func (s *Store) Rows(ctx context.Context, dev blockdev.Device, m kv.RowsMeta,
	budget *mem.Budget) (*Rows, error) {
	shape, err := newRowsShape(m, s.meta.Nodes)
	if err != nil {
		return nil, &CorruptionError{Path: catalogName, Block: -1, What: err.Error()}
	}
	onDisk := budget != nil && budget.Limit() > 0 &&
		!shape.sumsFit(budget.Limit()-budget.Used())
	return s.openRows(ctx, dev, shape, onDisk, budget)
}

// openRows opens a file of rows whose checksums stay on disk or not.
func (s *Store) openRows(ctx context.Context, dev blockdev.Device, shape rowsShape, onDisk bool,
	budget *mem.Budget) (*Rows, error) {
	m := shape.RowsMeta
	f, err := s.open(dev, m.Path)
	if err != nil {
		return nil, err
	}
	r := &Rows{shape: shape, f: f, seed: sumSeed(KindRows, s.meta.UUID), uuid: s.meta.UUID,
		budget: budget,
		decode: decoder(m.DType), pool: make(chan *rowsBuffer, rowsBuffers)}
	err = s.checkRowsHeader(ctx, f, KindRows, &shape)
	if err == nil {
		r.sums, err = s.openSums(ctx, dev, &shape, onDisk, budget)
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

// checkRowsHeader checks that the header and size of a file are those of rows of this shape.
func (s *Store) checkRowsHeader(ctx context.Context, f *source, kind string,
	want *rowsShape) error {
	buf, err := mem.NewArena(nil, "header", pageBytes)
	if err != nil {
		return err
	}
	h, err := f.header(ctx, kind, s.meta.UUID, buf.Bytes())
	if err == nil {
		err = want.checkFields(f, h.Fields)
	}
	if err := errors.Join(err, buf.Free()); err != nil {
		return err
	}
	if kind == KindSums {
		return f.sized(want.sumsBytes())
	}
	return f.sized(pageBytes + want.dataBytes())
}

// checkFields checks the fields of a header against those of the catalog.
func (s *rowsShape) checkFields(f *source, fields []byte) error {
	got, err := decodeRowsFields(fields)
	if err != nil {
		return f.damage(0, 0, "header: %v", err)
	}
	if got.Path = s.Path; got != *s {
		return f.damage(0, 0, "header tells of %d rows %q of %d %s, the catalog of %d rows %q "+
			"of %d %s", got.nodes, got.Name, got.Dim, got.DType, s.nodes, s.Name, s.Dim, s.DType)
	}
	return nil
}

// readSums reads the pages of checksums.
func (s *Store) readSums(ctx context.Context, f *source, shape *rowsShape,
	budget *mem.Budget) (*mem.Arena, error) {
	sums, err := mem.NewArena(budget, "checksums of "+shape.Path, shape.units()*4)
	if err != nil {
		return nil, err
	}
	to := mem.View[uint32](sums.Bytes())
	err = f.stream(ctx, pageBytes, f.file.Size(), pageBytes, func(off int64, data []byte) error {
		for ; len(data) > 0; off, data = off+pageBytes, data[pageBytes:] {
			n := off / pageBytes
			if err := verifyPage(KindSums, s.meta.UUID, n, data[:pageBytes]); err != nil {
				return f.damage(n, off, "%v", err)
			}
			m := min(len(to), sumsPerPage)
			for i := range to[:m] {
				to[i] = sumAt(data, i)
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

// RowsBytes is the memory that reading a file of rows takes at most, if it is opened with so much
// left: its checksums, if they go to memory, and buffers.
func (s *Store) RowsBytes(m kv.RowsMeta, room int64) int64 {
	shape, err := newRowsShape(m, s.meta.Nodes)
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
func (r *Rows) MostBytes() int64 {
	most := rowsBuffers * r.shape.bufferBytes()
	if r.sums.arena != nil {
		most += int64(len(r.sums.arena.Bytes()))
	}
	return most
}

// bufferBytes is the size of a buffer: each part has room for a page that begins and ends within a
// unit, and for its checksums.
func (s *rowsShape) bufferBytes() int64 {
	page := int64(s.PageBytes + 2*s.SumBytes)
	return max(rowsBufferBytes, rowsParts*(page+sectorBytes*s.sumSectors(page)))
}

// Meta describes the file.
func (r *Rows) Meta() kv.RowsMeta { return r.shape.RowsMeta }

// BytesRead is the number of bytes read from disk so far.
func (r *Rows) BytesRead() uint64 { return r.read.Load() }

// Close frees the memory and closes the file; no call is under way any more.
func (r *Rows) Close() error {
	err := errors.Join(r.f.file.Close(), r.sums.close())
	for ; r.mu.made > 0; r.mu.made-- {
		b := <-r.pool
		b.held.Release()
		err = errors.Join(err, b.arena.Free())
	}
	return err
}

func (r *Rows) makeBuffer() (*rowsBuffer, error) {
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
func (r *Rows) sorting() mem.Account {
	return mem.NewAccount(r.budget, "sorting of rows of "+r.shape.Path)
}

// take returns a free buffer, a new one, or waits for one.
func (r *Rows) take(ctx context.Context) (*rowsBuffer, error) {
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
func (r *Rows) give(b *rowsBuffer) { r.pool <- b }
