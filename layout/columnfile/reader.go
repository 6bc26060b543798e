package columnfile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/kv"
	"gdb/layout"
)

// alignBytes is the unit of reads.
const alignBytes = blockdev.Align

// Reader reads a column. Every byte that it returns was verified. Any goroutine may use it; up to
// four read at the same time, each with a buffer of 2 MiB, or less for a small file, and further
// ones wait. It holds 8 bytes a block, and the dictionary of strings.
type Reader struct {
	column
	f      *layout.File
	end    end
	budget *mem.Budget
	arena  *mem.Arena
	// places holds where blocks begin: of each page the places of its blocks, and where the last of
	// these ends.
	places  []uint64
	pages   []uint64 // places of pages
	strings Strings  // the dictionary
	held    mem.Account
	read    atomic.Uint64

	// features reads what values follow from; own says that Close closes it.
	features *Features
	own      bool

	pool chan *buffer
	mu   struct {
		sync.Mutex
		made int // number of buffers, in the pool or in use
	}
}

const (
	buffers   = 4
	partsOf   = 4         // parts of a buffer: one is delivered while the others are read
	partBytes = 512 << 10 // of 128 blocks: with a quarter a gather took three times as long
)

// Open opens a column that the catalog describes. The caller calls Close.
func Open(ctx context.Context, s *layout.Store, dev blockdev.Device, m kv.TableColumn,
	budget *mem.Budget) (*Reader, error) {
	r, err := OpenPath(ctx, s.OfColumns(m.Path), dev, m.Path, budget)
	return r.described(m, err)
}

// described returns the reader if it was opened and is what the catalog describes.
func (r *Reader) described(m kv.TableColumn, err error) (*Reader, error) {
	if err == nil && r.TableColumn != m {
		err = errors.Join(r.f.Damage(-1, 0, "it holds %+v, the catalog has %+v", r.TableColumn, m),
			r.Close())
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// OpenPath opens the column at a path of the store as the file itself describes it. The caller
// calls Close.
func OpenPath(ctx context.Context, s *layout.Store, dev blockdev.Device, path string,
	budget *mem.Budget) (*Reader, error) {
	return openFrom(ctx, s, dev, path, budget, nil)
}

// openFrom opens the column at a path, with features that others read too, or its own.
//
//lint:parameters a column's place and what it is read with
func openFrom(ctx context.Context, s *layout.Store, dev blockdev.Device, path string,
	budget *mem.Budget, features *Features) (*Reader, error) {
	f, err := s.OpenFile(dev, path)
	if err != nil {
		return nil, err
	}
	own := features == nil
	if own {
		features = NewFeatures(s, dev, budget)
	}
	r := &Reader{f: f, budget: budget, features: features, own: own,
		pool: make(chan *buffer, buffers),
		held: mem.NewAccount(budget, "column "+path)}
	err = r.open(ctx, s.Meta().UUID)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// open reads the header, the end, the pages and the dictionary.
func (r *Reader) open(ctx context.Context, uuid kv.UUID) error {
	h, err := r.f.ReadHeader(ctx, layout.KindColumn, uuid)
	if err != nil {
		return err
	}
	r.column, err = decodeFields(h.Fields, r.f.Path, uuid)
	if errors.Is(err, kv.ErrFormat) {
		return fmt.Errorf("layout: %s: %w", r.f.Path, err)
	}
	if err != nil {
		return r.f.Damage(0, 0, "header: %v", err)
	}
	if err := r.readEnd(ctx); err != nil {
		return err
	}
	if err := r.readDirectory(ctx); err != nil {
		return err
	}
	if err := r.readPages(ctx); err != nil {
		return err
	}
	return r.readDictionary(ctx)
}

// readEnd reads the last page.
func (r *Reader) readEnd(ctx context.Context) error {
	size := r.f.Size()
	if size < 2*layout.PageBytes || size%alignBytes != 0 {
		return r.f.Damage(-1, 0, "file is %d bytes long, which is cut off", size)
	}
	b, at := blockdev.AlignedBuffer(layout.PageBytes), size-layout.PageBytes
	err := r.f.Read(ctx, at, b)
	if err != nil {
		return fmt.Errorf("layout: read %s: %w", r.f.Path, err)
	}
	if r.end, err = r.decodeEnd(b, size); err != nil {
		return r.f.Damage(-1, 0, "its end at offset %d: %v", at, err)
	}
	return nil
}

// readDirectory reads the places of pages.
func (r *Reader) readDirectory(ctx context.Context) error {
	n, all := directoryBytes(r.end.pages), int64(r.blocks()+r.dictionaryBlocks()+r.end.pages)
	arena, err := mem.NewArena(r.budget, "places of blocks of "+r.f.Path, n+8*all)
	if err != nil {
		return err
	}
	r.arena = arena
	b := arena.Bytes()[:n]
	if err := r.f.Read(ctx, int64(r.end.directory), b); err != nil {
		return fmt.Errorf("layout: read %s: %w", r.f.Path, err)
	}
	if err := r.verify(directoryNumber, b); err != nil {
		return r.f.Damage(-1, 0, "its directory at offset %d: %v", r.end.directory, err)
	}
	r.pages = mem.View[uint64](b[directoryHead:])[:r.end.pages]
	r.places = mem.View[uint64](arena.Bytes()[n:])
	last := uint64(layout.PageBytes)
	for i, at := range r.pages {
		if at%alignBytes != 0 || at < last || at+layout.PageBytes > r.end.directory {
			return r.f.Damage(-1, 0, "page %d is at offset %d", i+1, at)
		}
		last = at + layout.PageBytes
	}
	return nil
}

// readPages reads where blocks are, many pages at a time.
func (r *Reader) readPages(ctx context.Context) error {
	const together = 64
	buf := blockdev.AlignedBuffer(min(together, len(r.pages)) * layout.PageBytes)
	var p page
	for first := 0; first < len(r.pages); first += together {
		var reqs []blockdev.Request
		for i, at := range r.pages[first:min(first+together, len(r.pages))] {
			reqs = append(reqs, blockdev.Request{File: r.f.Handle, Off: int64(at),
				Buf: buf[i*layout.PageBytes:][:layout.PageBytes]})
		}
		if err := r.f.Dev.ReadBatch(ctx, reqs); err != nil {
			return fmt.Errorf("layout: read %s: %w", r.f.Path, err)
		}
		for i := range reqs {
			err := r.decodePage(first+i, reqs[i].Buf, &p)
			if err == nil {
				err = r.takePage(first+i, &p)
			}
			if err != nil {
				return r.f.Damage(-1, 0, "page %d of blocks at offset %d: %v", first+i+1,
					reqs[i].Off, err)
			}
		}
	}
	return nil
}

// decodePage verifies and decodes page number i, counted from 0.
func (r *Reader) decodePage(i int, b []byte, p *page) error {
	if err := r.verify(pageNumber|uint64(i+1), b); err != nil {
		return err
	}
	if err := p.decode(b); err != nil {
		return err
	}
	blocks := r.blocks() + r.dictionaryBlocks() - uint64(i)*pageEntries
	if want := min(blocks, pageEntries); uint64(len(p.entries)) != want {
		return fmt.Errorf("%d blocks, want %d", len(p.entries), want)
	}
	return nil
}

// takePage notes the places of the blocks of page number i.
func (r *Reader) takePage(i int, p *page) error {
	after := uint64(layout.PageBytes)
	if i > 0 {
		after = r.pages[i-1] + layout.PageBytes
	}
	if p.place != after {
		return fmt.Errorf("its first block is at offset %d, want %d", p.place, after)
	}
	at := p.place
	for k, x := range p.entries {
		n := uint64(i*pageEntries + k + 1)
		if x.bytes < blockHead || x.bytes > r.end.largest || int(x.nulls) > r.rowsOf(n) {
			return fmt.Errorf("block %d has %d bytes and %d nulls of %d rows", n, x.bytes, x.nulls,
				r.rowsOf(n))
		}
		r.places[i*(pageEntries+1)+k] = at
		at += uint64(x.bytes)
	}
	r.places[i*(pageEntries+1)+len(p.entries)] = at
	if uint64(aligned(int64(at))) != r.pages[i] {
		return fmt.Errorf("its blocks end at offset %d", at)
	}
	return nil
}

// span returns where a block is, counted from 1.
func (r *Reader) span(n uint64) (from, to int64) {
	at := n - 1 + (n-1)/pageEntries
	return int64(r.places[at]), int64(r.places[at+1])
}

// readDictionary reads the strings of the dictionary.
func (r *Reader) readDictionary(ctx context.Context) error {
	first := r.blocks() + 1
	if r.Dictionary == 0 {
		return nil
	}
	var v Values
	b, err := r.take(ctx)
	if err != nil {
		return err
	}
	defer r.give(b)
	err = r.each(ctx, b, sequence(first, first+r.dictionaryBlocks()),
		func(n uint64, err error) error {
			if err == nil {
				err = b.dec.appendTo(&v, 0, r.rowsOf(n))
			}
			return r.blockDamage(n, err)
		})
	if r.strings = v.Strings; err != nil {
		return err
	}
	if len(r.strings.Off) == 0 || len(r.strings.Bytes) > dictBytesMost {
		return r.f.Damage(int64(first), 0, "%d strings of a dictionary take %d bytes", r.Dictionary,
			len(r.strings.Bytes))
	}
	return r.held.AtLeast(int64(cap(v.Strings.Bytes)) + 4*int64(cap(v.Strings.Off)))
}

// Meta describes the column.
func (r *Reader) Meta() kv.TableColumn { return r.TableColumn }

// Blocks returns the number of blocks, those of the dictionary included.
func (r *Reader) Blocks() uint64 { return r.blocks() + r.dictionaryBlocks() }

// BytesRead returns the number of bytes of blocks read from disk so far.
func (r *Reader) BytesRead() uint64 { return r.read.Load() }

// Close frees the memory and closes the file. No other call may be under way.
func (r *Reader) Close() error {
	err := r.f.Close()
	for ; r.mu.made > 0; r.mu.made-- {
		b := <-r.pool
		b.held.Release()
		err = errors.Join(err, b.arena.Free())
	}
	if r.arena != nil {
		err = errors.Join(err, r.arena.Free())
		r.arena = nil
	}
	r.held.Release()
	if r.own {
		err = errors.Join(err, r.features.Close())
	}
	return err
}

// buffer is the memory of one call.
type buffer struct {
	arena *mem.Arena
	held  mem.Account // memory besides the arena
	parts [partsOf]part
	dec   decoder
	order pace.Sorter // block<<32 | index
	got   Values
	from  []uint32 // for each row of a result, the row of got
}

// part is a part of a buffer, and the blocks that are read to it together.
type part struct {
	buf    []byte
	blocks []uint64
	at     []uint32 // for each block, where it begins in buf
	reqs   []blockdev.Request
	done   chan error
}

// bytes returns the memory besides the arena, in bytes.
func (b *buffer) bytes() int64 {
	n := b.order.Bytes() + b.got.bytes() + b.dec.bytes() + 4*int64(cap(b.from))
	for i := range b.parts {
		p := &b.parts[i]
		n += 8*int64(cap(p.blocks)) + 4*int64(cap(p.at)) + 56*int64(cap(p.reqs))
	}
	return n
}

// bufferBytes returns the size of a buffer: a part has room for any block, and need not be larger
// than the file.
func (r *Reader) bufferBytes() int64 {
	part := min(max(partBytes, int64(r.end.largest)+2*alignBytes), aligned(r.f.Size()))
	return partsOf * aligned(part)
}

func (r *Reader) makeBuffer() (*buffer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.made == buffers {
		return nil, nil
	}
	arena, err := mem.NewArena(r.budget, "read buffer of "+r.Path, r.bufferBytes())
	if err != nil && r.mu.made > 0 {
		return nil, nil // slower, but the buffers made so far suffice
	}
	if err != nil {
		return nil, err
	}
	r.mu.made++
	b := &buffer{arena: arena, held: mem.NewAccount(r.budget, "rows of "+r.Path),
		dec: decoder{column: &r.column, rawMost: r.end.raw, strings: &r.strings}}
	n := len(arena.Bytes()) / partsOf
	for i := range b.parts {
		b.parts[i] = part{buf: arena.Bytes()[i*n : (i+1)*n], done: make(chan error, 1)}
	}
	return b, nil
}

// take returns a free buffer or a new one, or waits for one.
func (r *Reader) take(ctx context.Context) (*buffer, error) {
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
func (r *Reader) give(b *buffer) { r.pool <- b }
