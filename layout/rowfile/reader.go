// Package rowfile stores rows of a fixed width, one for each node: features, labels and targets. A
// Writer writes them in node order; a Reader gathers rows of any nodes, scans ranges, and sweeps
// the file once for many lists of nodes. A unit is the bytes that one checksum covers.
// docs/format/rows.md describes the files.
package rowfile

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/kv"
	"gdb/layout"
)

// Reader reads a file of fixed-width rows, one per node: features (f32, f16, bf16) or labels (i32,
// u8 bit rows, f32 targets). Every byte that it returns was verified against the checksums in the
// file's .crc companion: see rowSums. Any goroutine may use it; up to four read at the same time,
// each with a buffer of 2 MiB, and further ones wait.
type Reader struct {
	shape  Shape
	f      *layout.File
	seed   uint32
	uuid   kv.UUID
	sums   rowSums
	decode func(out []float32, row []byte) // nil if rows are not floats
	scaled bool                            // whether decode scales rows
	packed bool                            // whether decode packs them: see Pack
	sparse bool                            // whether decode leaves them sparse: see KeepSparse
	toOne  bool                            // whether decode divides rows by their sum
	budget *mem.Budget
	read   *atomic.Uint64

	pool chan *rowsBuffer
	mu   *made

	levels   []newRows // the rows of nodes that were added, in order; see openLevels
	replaced *replaced // the rows that later levels have instead; nil if none has
}

// made counts the buffers of the readers of a file.
type made struct {
	sync.Mutex
	made int // number of buffers, in the pool or in use
}

const (
	rowsBufferBytes = 2 << 20
	rowsBuffers     = 4
	// rowsParts is how many parts a buffer has: while one is delivered the others are read, so that
	// the device's queue is full when the first of them ends. With two parts, both ended together
	// and the device waited.
	rowsParts = 4
)

// rowsBuffer is the memory of one Gather, Sweep or Scan. Besides the arena, it takes 20 bytes per
// node of the largest Gather and, for a buffer's worth of rows, 4 per row, 56 per read and 64 per
// sector of checksums.
type rowsBuffer struct {
	arena *mem.Arena
	held  mem.Account // memory besides the arena
	order pace.Sorter // node<<32 | index
	parts [rowsParts]rowsPart
	into  *stored // memory of the caller that rows are read to instead, or nil
}

// rowsPart is a part of a buffer, and the rows that are read to it together.
type rowsPart struct {
	buf   []byte
	first int      // where buf begins in the memory of a caller
	keys  []uint64 // nodes in the upper halves; none if nothing is being read
	at    []uint32 // for each key, where its row begins in buf
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

// bytes returns the memory besides the arena, in bytes.
func (b *rowsBuffer) bytes() int64 {
	n := b.order.Bytes()
	for i := range b.parts {
		p := &b.parts[i]
		n += 4*int64(cap(p.at)) + 56*int64(cap(p.reqs)) + 8*int64(cap(p.sums.sectors))
	}
	return n
}

// Open opens a file of rows. Its checksums are loaded to memory if they take no more than a quarter
// of what the budget has left. The caller calls Close.
func Open(ctx context.Context, s *layout.Store, dev blockdev.Device, m kv.RowsMeta,
	budget *mem.Budget) (*Reader, error) {
	_, _, own := MetaOf(s.Meta(), m.Path)
	made := strings.HasPrefix(m.Path, layout.PrepDir+"/") // of all levels, see Store.WithFeatures
	if own && !made && len(s.Levels()) > 0 {
		return openLevels(ctx, s, dev, m, budget)
	}
	shape, err := NewShape(m, s.Meta().Nodes)
	if err != nil {
		return nil, &layout.CorruptionError{Path: layout.CatalogName, Block: -1, What: err.Error()}
	}
	onDisk := budget != nil && budget.Limit() > 0 &&
		!shape.sumsFit(budget.Limit()-budget.Used())
	return openRows(ctx, s, dev, shape, onDisk, budget)
}

// openRows opens a file of rows. Its checksums stay on disk if onDisk is set.
func openRows(ctx context.Context, s *layout.Store, dev blockdev.Device, shape Shape, onDisk bool,
	budget *mem.Budget) (*Reader, error) {
	m := shape.RowsMeta
	f, err := s.OpenFile(dev, m.Path)
	if err != nil {
		return nil, err
	}
	r := &Reader{shape: shape, f: f, seed: layout.SumSeed(layout.KindRows, s.Meta().UUID),
		uuid:   s.Meta().UUID,
		budget: budget, read: new(atomic.Uint64), mu: new(made),
		decode: Decoder(m.DType), pool: make(chan *rowsBuffer, rowsBuffers)}
	if m.DType == Sparse {
		r.decode = r.densify
	}
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

// checkHeader checks that the header and size of a file fit rows of this shape.
func checkHeader(ctx context.Context, s *layout.Store, f *layout.File, kind string,
	want *Shape) error {
	h, err := f.ReadHeader(ctx, kind, s.Meta().UUID)
	if err == nil {
		err = want.CheckFields(f, h.Fields)
	}
	if err != nil {
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
	if got.Path = s.Path; got.Nodes != s.Nodes || !got.RowsMeta.Equal(&s.RowsMeta) {
		return f.Damage(0, 0, "header tells of %d rows %q of %d %s, the catalog of %d rows %q "+
			"of %d %s", got.Nodes, got.Name, got.Dim, got.DType, s.Nodes, s.Name, s.Dim, s.DType)
	}
	return nil
}

// readSums reads all checksums to memory.
func readSums(ctx context.Context, s *layout.Store, f *layout.File, shape *Shape,
	budget *mem.Budget) (*mem.Arena, error) {
	sums, err := mem.NewArena(budget, "checksums of "+shape.Path, shape.units()*4)
	if err != nil {
		return nil, err
	}
	to := mem.View[uint32](sums.Bytes())
	err = f.EachPage(ctx, layout.KindSums, s.Meta().UUID, f.Size()/layout.PageBytes,
		func(_ int64, page []byte) error {
			n := min(len(to), SumsPerPage)
			for i := range to[:n] {
				to[i] = SumAt(page, i)
			}
			to = to[n:]
			return nil
		})
	if err != nil {
		return nil, errors.Join(err, sums.Free())
	}
	return sums, nil
}

// MostBytes bounds the memory that reading a file of rows takes, if room bytes are left when it is
// opened: its checksums, if they go to memory, and buffers.
func MostBytes(s *layout.Store, m kv.RowsMeta, room int64) int64 {
	shape, err := NewShape(m, s.Meta().Nodes)
	if err != nil {
		return 0
	}
	most := int64(1+len(s.Levels()))*rowsBuffers*shape.bufferBytes() + levelBytes(s, m.Path)
	if shape.sumsFit(room) {
		most += 4 * shape.units()
	}
	return most
}

// MostBytes bounds the memory that this reader takes, in bytes.
func (r *Reader) MostBytes() int64 {
	most := rowsBuffers * r.shape.bufferBytes()
	if r.sums.arena != nil {
		most += int64(len(r.sums.arena.Bytes()))
	}
	for _, l := range r.levels {
		most += l.MostBytes()
	}
	if r.replaced != nil {
		most += int64(len(r.replaced.memory.Bytes()))
		for _, p := range r.replaced.parts {
			most += p.MostBytes()
		}
	}
	return most
}

// bufferBytes returns the size of a buffer. Each part has room for a page that begins and ends
// within a unit, and for its checksums.
func (s *Shape) bufferBytes() int64 {
	page := int64(s.PageBytes + 2*s.SumBytes)
	return max(rowsBufferBytes, rowsParts*(page+sectorBytes*s.sumSectors(page)))
}

// Meta describes the rows. If they are packed, Dim is PackedDim of their values; if they stay
// sparse, it is the number of their words.
func (r *Reader) Meta() kv.RowsMeta {
	m := r.shape.RowsMeta
	switch {
	case r.packed:
		m.Dim = PackedDim(m.Dim)
	case r.sparse:
		m.Dim = m.RowBytes / 4
	}
	return m
}

// Width returns the number of values of a row, packed, sparse or not.
func (r *Reader) Width() int { return r.shape.Dim }

// Packed reports whether rows are packed.
func (r *Reader) Packed() bool { return r.packed }

// BytesRead returns the number of bytes read from disk so far.
func (r *Reader) BytesRead() uint64 {
	n := r.read.Load()
	for _, l := range r.levels {
		n += l.BytesRead()
	}
	if r.replaced != nil {
		for _, p := range r.replaced.parts {
			n += p.BytesRead()
		}
	}
	return n
}

// Close frees the memory and closes the file. No other call may be under way.
func (r *Reader) Close() error {
	err := errors.Join(r.f.Close(), r.sums.close())
	for ; r.mu.made > 0; r.mu.made-- {
		b := <-r.pool
		b.held.Release()
		err = errors.Join(err, b.arena.Free())
	}
	for _, l := range r.levels {
		err = errors.Join(err, l.Close())
	}
	return errors.Join(err, r.replaced.close())
}

func (r *Reader) makeBuffer() (*rowsBuffer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.made == rowsBuffers {
		return nil, nil
	}
	arena, err := mem.NewArena(r.budget, "read buffer of "+r.shape.Path, r.shape.bufferBytes())
	if err != nil && r.mu.made > 0 {
		return nil, nil // slower, but the buffers made so far suffice
	}
	if err != nil {
		return nil, err
	}
	r.mu.made++
	b := newRowsBuffer(arena.Bytes(), r.sorting())
	b.arena = arena
	return b, nil
}

// sorting returns an account for what a buffer takes besides its arena.
func (r *Reader) sorting() mem.Account {
	return mem.NewAccount(r.budget, "sorting of rows of "+r.shape.Path)
}

// take returns a free buffer or a new one, or waits for one.
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
