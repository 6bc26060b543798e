package ids

import (
	"encoding/binary"
	"fmt"

	"gdb/internal/codec"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BlockBytes is the size of a block of the dictionary files, and of the read that a lookup makes.
const BlockBytes = 4096

// MaxBytes is the length of the longest external id. Two such ids fit in a block.
const MaxBytes = 2000

// Kinds of the dictionary files, in their headers and FileMeta.
const (
	ForwardKind = "IDFW"
	ReverseKind = "IDRV"
)

// Paths of the dictionary files, relative to the store.
const (
	ForwardPath = "ids/forward.ids"
	ReversePath = "ids/reverse.ids"
)

// trailerMagic begins the last block of a dictionary file, after the checksum.
const trailerMagic = "GDBE"

// The flags of a block. They tell what the block is without the blocks around it. Only data blocks
// of ids/forward.ids have flagCarried.
const (
	flagCarried = 1 // its first hash is also the last hash of the block before
	flagIndex   = 2 // an index block
)

// An index block holds the first key of each of the next data blocks: the uint64 hash of the first
// entry in ids/forward.ids, the uint32 first node in ids/reverse.ids.
//
//	0        4       6       8
//	+--------+-------+-------+---------------+-------+
//	| crc32c | n u16 | flags | n first keys  | zeros |
//	+--------+-------+-------+---------------+-------+
const indexHead = 8

// writeBlocks is how many blocks a writer collects for one write.
const writeBlocks = 64

// trailer is the last block of a dictionary file. It counts the blocks of each kind that stand
// before it.
//
//	0        4        8          16            24             32
//	+--------+--------+----------+-------------+--------------+--------+
//	| crc32c | "GDBE" | entries  | data blocks | index blocks | zeros  |
//	+--------+--------+----------+-------------+--------------+--------+
type trailer struct {
	entries, data, index uint64
}

func (t trailer) encode() []byte {
	e := codec.Enc{B: make([]byte, 4, BlockBytes)}
	e.Bytes([]byte(trailerMagic))
	e.U64(t.entries)
	e.U64(t.data)
	e.U64(t.index)
	e.Pad(BlockBytes)
	return e.B
}

// decodeTrailer decodes a trailer whose checksum was verified. size is the size of the file in
// bytes, and keyBytes the size of a key in its index.
func decodeTrailer(b []byte, size int64, keyBytes int) (trailer, error) {
	d := codec.NewDec(b)
	d.U32()
	magic := string(d.Bytes(4))
	t := trailer{d.U64(), d.U64(), d.U64()}
	if err := d.Err(); err != nil {
		return t, err
	}
	if magic != trailerMagic {
		return t, fmt.Errorf("trailer begins with %q, want %q", magic, trailerMagic)
	}
	blocks := uint64(size / BlockBytes)
	if blocks < 2 || t.data > blocks || t.index > blocks || t.data+t.index+2 != blocks {
		return t, fmt.Errorf("%d data and %d index blocks in a file of %d blocks",
			t.data, t.index, blocks)
	}
	perBlock := uint64(keysPerBlock(keyBytes))
	if t.index != (t.data+perBlock-1)/perBlock {
		return t, fmt.Errorf("%d index blocks for %d data blocks", t.index, t.data)
	}
	if t.entries < t.data {
		return t, fmt.Errorf("%d entries in %d data blocks", t.entries, t.data)
	}
	return t, nil
}

// keysPerBlock returns how many index keys of keyBytes fit in an index block.
func keysPerBlock(keyBytes int) int { return (BlockBytes - indexHead) / keyBytes }

// putKey appends an index key of 4 or 8 bytes.
func putKey(b []byte, keyBytes int, key uint64) []byte {
	if keyBytes == 4 {
		return binary.LittleEndian.AppendUint32(b, uint32(key))
	}
	return binary.LittleEndian.AppendUint64(b, key)
}

// getKey returns key i of an index block.
func getKey(b []byte, keyBytes, i int) uint64 {
	p := b[indexHead+i*keyBytes:]
	if keyBytes == 4 {
		return uint64(binary.LittleEndian.Uint32(p))
	}
	return binary.LittleEndian.Uint64(p)
}

// blockWriter writes a dictionary file: header, data blocks, index, trailer. After an error all
// further calls fail with it.
type blockWriter struct {
	f        vfs.File
	path     string
	kind     string
	uuid     kv.UUID
	keyBytes int
	keys     []uint64 // the index: the first key of each data block
	entries  uint64
	blocks   uint64 // written or in buf
	buf      []byte
	sum      uint32
	err      error
}

func newBlockWriter(fs vfs.FS, path, kind string, uuid kv.UUID, keyBytes int,
	fields []byte) (*blockWriter, error) {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("kv: create %s: %w", path, err)
	}
	w := &blockWriter{f: f, path: path, kind: kind, uuid: uuid, keyBytes: keyBytes}
	w.append(codec.Header{Kind: kind, UUID: uuid, Fields: fields}.Encode())
	return w, nil
}

// fail keeps the first error.
func (w *blockWriter) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	return w.err
}

// data appends a data block whose first key is key; its checksum field is filled in.
func (w *blockWriter) data(b []byte, key uint64) {
	w.keys = append(w.keys, key)
	w.sealed(b)
}

// sealed fills in the checksum of b and appends it.
func (w *blockWriter) sealed(b []byte) {
	sum := codec.BlockSum(w.kind, w.uuid, w.blocks, b[4:])
	binary.LittleEndian.PutUint32(b, sum)
	w.append(b)
}

func (w *blockWriter) append(b []byte) {
	w.blocks++
	w.buf = append(w.buf, b...)
	if len(w.buf) >= writeBlocks*BlockBytes {
		w.flush()
	}
}

func (w *blockWriter) flush() {
	if w.err == nil {
		// Before the write, which may change what it is given.
		w.sum = codec.ChecksumUpdate(w.sum, w.buf)
		if n, err := w.f.Write(w.buf); err != nil {
			w.fail(fmt.Errorf("kv: write %s near block %d (%d of %d bytes): %w",
				w.path, w.blocks, n, len(w.buf), err))
		}
	}
	w.buf = w.buf[:0]
}

// finish writes the index and the trailer, syncs and closes the file. final is the path that the
// returned record names.
func (w *blockWriter) finish(final string) (kv.FileMeta, error) {
	if w.f == nil {
		return kv.FileMeta{}, fmt.Errorf("kv: finish %s: it is finished or aborted", w.path)
	}
	t := trailer{entries: w.entries, data: uint64(len(w.keys))}
	b := make([]byte, 0, BlockBytes)
	for keys := w.keys; len(keys) > 0 && w.err == nil; t.index++ {
		n := min(len(keys), keysPerBlock(w.keyBytes))
		b = append(b[:0], make([]byte, indexHead)...)
		binary.LittleEndian.PutUint16(b[4:], uint16(n))
		binary.LittleEndian.PutUint16(b[6:], flagIndex)
		for _, key := range keys[:n] {
			b = putKey(b, w.keyBytes, key)
		}
		keys = keys[n:]
		w.sealed(append(b, make([]byte, BlockBytes-len(b))...))
	}
	w.sealed(t.encode())
	w.flush()
	if w.err == nil {
		if err := w.f.Sync(); err != nil {
			w.fail(fmt.Errorf("kv: sync %s: %w", w.path, err))
		}
	}
	if err := w.abort(); err != nil {
		w.fail(err)
	}
	if w.err != nil {
		return kv.FileMeta{}, w.err
	}
	return kv.FileMeta{Path: final, Kind: w.kind, Size: int64(w.blocks) * BlockBytes,
		Checksum: w.sum}, nil
}

// abort closes the file; further calls do nothing.
func (w *blockWriter) abort() error {
	if w.f == nil {
		return nil
	}
	f := w.f
	w.f, w.keys, w.buf = nil, nil, nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("kv: close %s: %w", w.path, err)
	}
	return nil
}

// DumpBlock prints a block of a dictionary file of the given kind, from the field at which d
// stands, behind the checksum. b is the whole block. It does not print headers, and prints in
// hexadecimal what it cannot decode.
func DumpBlock(d *codec.Dump, kind string, b []byte) {
	if len(b) != BlockBytes {
		d.Hex(d.Remaining())
		return
	}
	n, flags := int(binary.LittleEndian.Uint16(b[4:])), binary.LittleEndian.Uint16(b[6:])
	switch {
	case string(b[4:8]) == trailerMagic:
		dumpTrailer(d, b)
	case flags == flagIndex:
		dumpIndex(d, kind, b, n)
	case kind == ForwardKind:
		dumpForward(d, b)
	case kind == ReverseKind:
		dumpReverse(d, b)
	}
	d.Hex(d.Remaining())
}

func dumpTrailer(d *codec.Dump, b []byte) {
	c := codec.NewDec(b[8:])
	d.Field(4, "magic %q", trailerMagic)
	d.Field(8, "entries %d", c.U64())
	d.Field(8, "data blocks %d", c.U64())
	d.Field(8, "index blocks %d", c.U64())
	d.Zeros(d.Remaining())
}

func dumpIndex(d *codec.Dump, kind string, b []byte, n int) {
	keyBytes, format := 4, "first node %d"
	if kind == ForwardKind {
		keyBytes, format = 8, "first hash %016x"
	}
	if n > keysPerBlock(keyBytes) {
		return
	}
	d.Field(2, "keys %d", n)
	d.Field(2, "flags %d: index", flagIndex)
	for i := range n {
		d.Field(keyBytes, format, getKey(b, keyBytes, i))
	}
	d.Zeros(d.Remaining())
}

func dumpForward(d *codec.Dump, b []byte) {
	f, err := decodeForward(b)
	if err != nil {
		d.Note("not readable: %v", err)
		return
	}
	d.Field(2, "entries %d", f.n)
	d.Field(2, "flags: carried %t", f.carried)
	for i := range f.n {
		d.Field(8, "hash %016x of entry %d", f.hash(i), i)
	}
	for i := range f.n {
		d.Field(4, "node %d of entry %d", f.node(i), i)
	}
	dumpHeap(d, f.n, f.ends, f.heap)
}

func dumpReverse(d *codec.Dump, b []byte) {
	r, err := decodeReverse(b)
	if err != nil {
		d.Note("not readable: %v", err)
		return
	}
	d.Field(2, "ids %d", r.n)
	d.Field(2, "flags 0")
	d.Field(4, "first node %d", r.first)
	dumpHeap(d, r.n, r.ends, r.heap)
}

// dumpHeap prints the end offsets and the ids of a data block.
func dumpHeap(d *codec.Dump, n int, ends, heap []byte) {
	for i := range n {
		d.Field(2, "end %d of id %d", binary.LittleEndian.Uint16(ends[2*i:]), i)
	}
	for i := range n {
		id := heapItem(ends, heap, i)
		d.Field(len(id), "id %d %q", i, id)
	}
	d.Zeros(d.Remaining())
}
