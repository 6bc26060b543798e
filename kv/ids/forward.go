package ids

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"gdb/internal/codec"
	"gdb/internal/rng"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A data block of ids/forward.ids holds entries in ascending order of (hash, external id), each
// field in an array of its own, so that a lookup is a binary search over the hashes:
//
//	0        4       6       8            8+8n          8+12n        8+14n
//	+--------+-------+-------+------------+-------------+------------+---------------+-------+
//	| crc32c | n u16 | flags | hash u64 n | node u32 n  | end u16 n  | external ids  | zeros |
//	+--------+-------+-------+------------+-------------+------------+---------------+-------+
//
// Id i stands at end[i-1]..end[i] (0 for end[-1]) after the arrays. Flag 1 says that the hash of
// the first entry is also that of the last entry of the block before: only then has a lookup that
// the index leads to this block to look there too.
const (
	forwardHead  = 8
	forwardEntry = 8 + 4 + 2 // of each entry, besides its id
)

const _ uint = BlockBytes - forwardHead - 2*(forwardEntry+MaxBytes) // two entries fit

// Hash returns the hash by which the forward dictionary is sorted. Two ids with the same hash are
// both kept: a lookup compares the strings.
func Hash(seed uint64, external []byte) uint64 { return rng.Hash(seed, external) }

// forwardBlock is a decoded data block; it shares memory with the block's bytes.
type forwardBlock struct {
	n                         int
	carried                   bool
	hashes, nodes, ends, heap []byte
}

// decodeForward decodes a data block and checks that it can be read. It does not verify the
// checksum.
func decodeForward(b []byte) (forwardBlock, error) {
	if len(b) != BlockBytes {
		return forwardBlock{}, fmt.Errorf("block of %d bytes", len(b))
	}
	n, flags := int(binary.LittleEndian.Uint16(b[4:])), binary.LittleEndian.Uint16(b[6:])
	if flags&^flagCarried != 0 {
		return forwardBlock{}, fmt.Errorf("unknown flags %#x", flags)
	}
	d := codec.NewDec(b[forwardHead:])
	f := forwardBlock{n: n, carried: flags&flagCarried != 0,
		hashes: d.Bytes(8 * n), nodes: d.Bytes(4 * n), ends: d.Bytes(2 * n)}
	if err := d.Err(); err != nil || n == 0 {
		return forwardBlock{}, fmt.Errorf("%d entries do not fit in a block", n)
	}
	f.heap = d.Bytes(d.Remaining())
	return f, checkEnds(f.ends, len(f.heap))
}

// checkEnds checks that the end offsets ascend within a heap of size bytes.
func checkEnds(ends []byte, size int) error {
	last := 0
	for i := 0; i < len(ends); i += 2 {
		end := int(binary.LittleEndian.Uint16(ends[i:]))
		if end < last || end > size || end-last > MaxBytes {
			return fmt.Errorf("id %d stands at %d..%d of %d bytes", i/2, last, end, size)
		}
		last = end
	}
	return nil
}

// heapItem returns item i of a heap, whose end offsets are in ends.
func heapItem(ends, heap []byte, i int) []byte {
	start := 0
	if i > 0 {
		start = int(binary.LittleEndian.Uint16(ends[2*i-2:]))
	}
	end := int(binary.LittleEndian.Uint16(ends[2*i:]))
	return heap[start:end:end]
}

func (f *forwardBlock) hash(i int) uint64 { return binary.LittleEndian.Uint64(f.hashes[8*i:]) }

func (f *forwardBlock) node(i int) kv.NodeID {
	return kv.NodeID(binary.LittleEndian.Uint32(f.nodes[4*i:]))
}

func (f *forwardBlock) external(i int) []byte { return heapItem(f.ends, f.heap, i) }

// find looks for an id with its hash.
func (f *forwardBlock) find(hash uint64, external string) (id kv.NodeID, found bool) {
	lo, hi := 0, f.n
	for lo < hi {
		if mid := (lo + hi) / 2; f.hash(mid) < hash {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for ; lo < f.n && f.hash(lo) == hash; lo++ {
		if string(f.external(lo)) == external {
			return f.node(lo), true
		}
	}
	return 0, false
}

// ForwardWriter writes the external-to-internal file. Entries come in ascending order of (hash,
// external id). It takes the memory of 64 blocks, and 8 bytes for each block for the index.
type ForwardWriter struct {
	w      *blockWriter
	hashes []uint64 // of the block that is being filled, like nodes, ends and heap
	nodes  []kv.NodeID
	ends   []uint16
	heap   []byte
	block  []byte

	carried bool // the block that is being filled begins with the last hash of the block before
	started bool
	hash    uint64 // of the last entry
	last    []byte // external id of the last entry
}

// NewForwardWriter starts ids/forward.ids at path, for the store uuid and hash seed.
func NewForwardWriter(fs vfs.FS, path string, uuid kv.UUID, seed uint64) (*ForwardWriter, error) {
	fields := codec.Enc{}
	fields.U64(seed)
	w, err := newBlockWriter(fs, path, ForwardKind, uuid, 8, fields.B)
	if err != nil {
		return nil, err
	}
	return &ForwardWriter{w: w, block: make([]byte, 0, BlockBytes)}, nil
}

// Add appends one entry. hash is the Hash of the id with the writer's seed. Entries out of order,
// the same id twice and an id longer than MaxBytes are errors, after which the writer cannot be
// used.
func (w *ForwardWriter) Add(hash uint64, external []byte, id kv.NodeID) error {
	if w.w.err != nil {
		return w.w.err
	}
	if len(external) > MaxBytes {
		return w.w.fail(tooLong(w.w.path, external))
	}
	if w.started && (hash < w.hash || hash == w.hash && bytes.Compare(external, w.last) <= 0) {
		return w.w.fail(fmt.Errorf("kv: %s: entry %d (%016x, %.40q) does not come after "+
			"(%016x, %.40q)", w.w.path, w.w.entries, hash, external, w.hash, w.last))
	}
	n := len(w.hashes) + 1
	if forwardHead+n*forwardEntry+len(w.heap)+len(external) > BlockBytes {
		w.flush()
		w.carried = hash == w.hash
	}
	w.hashes = append(w.hashes, hash)
	w.nodes = append(w.nodes, id)
	w.heap = append(w.heap, external...)
	w.ends = append(w.ends, uint16(len(w.heap)))
	w.started, w.hash, w.last = true, hash, append(w.last[:0], external...)
	w.w.entries++
	return w.w.err
}

// tooLong returns the error of an id that is too long for the dictionary.
func tooLong(path string, external []byte) error {
	return fmt.Errorf("kv: %s: external id of %d bytes (%.40q…): at most %d are allowed; "+
		"shorten the ids of the source", path, len(external), external, MaxBytes)
}

// flush writes the block that is being filled.
func (w *ForwardWriter) flush() {
	if len(w.hashes) == 0 {
		return
	}
	e := codec.Enc{B: append(w.block[:0], 0, 0, 0, 0)}
	e.U16(uint16(len(w.hashes)))
	flags := uint16(0)
	if w.carried {
		flags = flagCarried
	}
	e.U16(flags)
	for _, h := range w.hashes {
		e.U64(h)
	}
	for _, id := range w.nodes {
		e.U32(uint32(id))
	}
	for _, end := range w.ends {
		e.U16(end)
	}
	e.Bytes(w.heap)
	e.Pad(BlockBytes)
	w.w.data(e.B, w.hashes[0])
	w.block = e.B
	w.hashes, w.nodes, w.ends, w.heap = w.hashes[:0], w.nodes[:0], w.ends[:0], w.heap[:0]
}

// Finish writes the index, syncs and closes the file, and returns its record. The path of the
// record is ForwardPath, wherever the file was written.
func (w *ForwardWriter) Finish() (kv.FileMeta, error) {
	w.flush()
	return w.w.finish(ForwardPath)
}

// Abort closes the file without finishing it; after Finish it does nothing. It leaves the file for
// the owner of the directory to remove.
func (w *ForwardWriter) Abort() error { return w.w.abort() }
