package ids

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/internal/codec"
	"gdb/kv"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// readBlocks bounds the blocks of one device batch, and so the buffer of a lookup to 1 MiB.
const readBlocks = 256

// scanBytes is the length of each of the reads that a scan has in flight.
const scanBytes = 256 << 10

// idFile is an open dictionary file whose header and trailer were checked.
type idFile struct {
	dev    blockdev.Device
	file   blockdev.File
	rel    string // path relative to the store
	kind   string
	uuid   kv.UUID
	header codec.Header
	trailer
	reads atomic.Uint64 // counts the data blocks that were read
}

// blockBuffers keeps single blocks for lookups.
var blockBuffers = sync.Pool{New: func() any {
	b := blockdev.AlignedBuffer(BlockBytes)
	return &b
}}

// idForm describes a dictionary file: its path in the store, its kind, and the bytes of a key in
// its index.
type idForm struct {
	rel, kind string
	keyBytes  int
}

var (
	forwardForm = idForm{ForwardPath, ForwardKind, 8}
	reverseForm = idForm{ReversePath, ReverseKind, 4}
)

// openIDFile opens a dictionary file and reads its first and last block.
func openIDFile(ctx context.Context, dev blockdev.Device, fs vfs.FS, dir string, form idForm,
	m *kv.Meta) (*idFile, error) {
	rel := form.rel
	path := fs.PathJoin(dir, rel)
	info, err := fs.Stat(path)
	if oserror.IsNotExist(err) {
		return nil, kv.DamagedFile(rel, "the file is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("kv: open %s: %w", path, err)
	}
	if what := m.CheckSize(rel, info.Size()); what != "" {
		return nil, kv.DamagedFile(rel, "%s", what)
	}
	if size := info.Size(); size < 2*BlockBytes || size%BlockBytes != 0 {
		return nil, kv.DamagedFile(rel, "its size is %d bytes, want a multiple of %d, at least two",
			size, BlockBytes)
	}
	file, err := dev.OpenFile(fs, path)
	if err != nil {
		return nil, fmt.Errorf("kv: open %s: %w", path, err)
	}
	f := &idFile{dev: dev, file: file, rel: rel, kind: form.kind, uuid: m.UUID}
	if err := f.readEnds(ctx, form.keyBytes); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// readEnds reads and checks the header and the trailer.
func (f *idFile) readEnds(ctx context.Context, keyBytes int) error {
	b := blockdev.AlignedBuffer(2 * BlockBytes)
	head, tail := b[:BlockBytes], b[BlockBytes:]
	size := f.file.Size()
	last := uint64(size/BlockBytes) - 1
	err := f.dev.ReadBatch(ctx, []blockdev.Request{{File: f.file, Off: 0, Buf: head},
		{File: f.file, Off: int64(last) * BlockBytes, Buf: tail}})
	if err != nil {
		return fmt.Errorf("kv: %w", err)
	}
	if f.header, err = codec.DecodeHeader(head, f.kind, f.uuid); err != nil {
		return headerError(f.rel, err)
	}
	if err := f.checkSum(tail, last); err != nil {
		return err
	}
	if f.trailer, err = decodeTrailer(tail, size, keyBytes); err != nil {
		return damagedBlock(f.rel, last, "%v", err)
	}
	return nil
}

// checkSum verifies the checksum of a block.
func (f *idFile) checkSum(b []byte, block uint64) error {
	d := codec.NewDec(b)
	want := d.U32()
	if got := codec.BlockSum(f.kind, f.header.UUID, block, b[4:]); got != want {
		return damagedBlock(f.rel, block, "the block has checksum %08x, its bytes give %08x",
			want, got)
	}
	return nil
}

// readAt reads only the blocks at some places of blocks, to the same places in buf, and verifies
// each. It reads blocks that are adjacent in the file and in buf together, up to scanBytes at once.
func (f *idFile) readAt(ctx context.Context, blocks []uint64, buf []byte, places []int) error {
	var reqs []blockdev.Request
	for k, i := range places {
		joins := k > 0 && places[k-1] == i-1 && blocks[i-1] == blocks[i]-1
		if last := len(reqs) - 1; joins && len(reqs[last].Buf) < scanBytes {
			at := i*BlockBytes - len(reqs[last].Buf)
			reqs[last].Buf = buf[at : (i+1)*BlockBytes]
			continue
		}
		reqs = append(reqs, blockdev.Request{File: f.file, Off: int64(blocks[i]) * BlockBytes,
			Buf: buf[i*BlockBytes : (i+1)*BlockBytes]})
	}
	if len(reqs) == 0 {
		return ctx.Err()
	}
	if err := f.readRaw(ctx, reqs); err != nil {
		return err
	}
	for _, i := range places {
		if err := f.checkSum(buf[i*BlockBytes:(i+1)*BlockBytes], blocks[i]); err != nil {
			return err
		}
	}
	return nil
}

func (f *idFile) readRaw(ctx context.Context, reqs []blockdev.Request) error {
	if err := f.dev.ReadBatch(ctx, reqs); err != nil {
		return fmt.Errorf("kv: %w", err)
	}
	return nil
}

// scan reads the blocks first..end-1 in order, in long reads, and calls do for each. do may use the
// bytes only until it returns. sum is nil if the block's checksum is right, and an error otherwise.
func (f *idFile) scan(ctx context.Context, first, end uint64,
	do func(block uint64, b []byte, sum error) error) error {
	buf := blockdev.AlignedBuffer(int(min(end-first, readBlocks)) * BlockBytes)
	for ; first < end; first += readBlocks {
		part := buf[:min(end-first, readBlocks)*BlockBytes]
		if err := f.readLong(ctx, first, part); err != nil {
			return err
		}
		for i := range uint64(len(part) / BlockBytes) {
			b := part[i*BlockBytes : (i+1)*BlockBytes]
			if err := do(first+i, b, f.checkSum(b, first+i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// readLong fills buf with the blocks from first on, by a few long reads in parallel.
func (f *idFile) readLong(ctx context.Context, first uint64, buf []byte) error {
	var reqs []blockdev.Request
	for off := int64(first) * BlockBytes; len(buf) > 0; {
		n := min(len(buf), scanBytes)
		reqs = append(reqs, blockdev.Request{File: f.file, Off: off, Buf: buf[:n:n]})
		off, buf = off+int64(n), buf[n:]
	}
	return f.readRaw(ctx, reqs)
}

// scanIndex calls do for each key of the index in order. The key of a data block is its first key.
func (f *idFile) scanIndex(ctx context.Context, keyBytes int,
	do func(data, key uint64) error) error {
	next := uint64(0) // data block, from 0
	return f.scan(ctx, 1+f.data, 1+f.data+f.index, func(block uint64, b []byte, sum error) error {
		if sum != nil {
			return sum
		}
		d := codec.NewDec(b[4:])
		n, flags := uint64(d.U16()), d.U16()
		want := min(f.data-next, uint64(keysPerBlock(keyBytes)))
		if n != want || flags != flagIndex {
			return damagedBlock(f.rel, block, "%d index keys with flags %#x, want %d with %#x", n,
				flags, want, flagIndex)
		}
		for i := range int(n) {
			if err := do(next, getKey(b, keyBytes, i)); err != nil {
				return err
			}
			next++
		}
		return nil
	})
}

// block returns a verified data block (numbered from 0) in a buffer. The caller calls release when
// done with it.
func (f *idFile) block(ctx context.Context, data uint64) (b []byte, release func(), err error) {
	p := blockBuffers.Get().(*[]byte)
	release = func() {
		bug.Mangle(*p)
		blockBuffers.Put(p)
	}
	f.reads.Add(1)
	if err := f.readAt(ctx, []uint64{1 + data}, *p, []int{0}); err != nil {
		release()
		return nil, nil, err
	}
	return *p, release, nil
}

// damagedBlock returns a DamageError about a block of a dictionary file.
func damagedBlock(path string, block uint64, format string, args ...any) *kv.DamageError {
	return &kv.DamageError{Finding: kv.Finding{Path: path, Block: int64(block),
		Offset: int64(block) * BlockBytes, What: fmt.Sprintf(format, args...)}}
}

// headerError converts an error of codec.DecodeHeader into an error about the file path.
func headerError(path string, err error) error {
	if errors.Is(err, codec.ErrVersion) {
		return fmt.Errorf("kv: %s: %w: %w", path, kv.ErrFormat, err)
	}
	return damagedBlock(path, 0, "%v", err)
}
