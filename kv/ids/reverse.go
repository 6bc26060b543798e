package ids

import (
	"errors"
	"fmt"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A data block of ids/reverse.ids holds the external ids of the nodes first, first+1, …:
//
//	0        4       6       8            12          12+2n
//	+--------+-------+-------+------------+-----------+---------------+-------+
//	| crc32c | n u16 | flags | first u32  | end u16 n | external ids  | zeros |
//	+--------+-------+-------+------------+-----------+---------------+-------+
//
// The id of node first+i stands at end[i-1]..end[i] (0 for end[-1]) after the array.
const (
	reverseHead  = 12
	reverseEntry = 2 // of each node, besides its id
)

const _ uint = BlockBytes - reverseHead - 2*(reverseEntry+MaxBytes) // two ids fit

// maxNodes is how many nodes a uint32 can number.
const maxNodes = 1 << 32

// reverseBlock is a decoded data block; it shares memory with the block's bytes.
type reverseBlock struct {
	first      kv.NodeID
	n          int
	ends, heap []byte
}

// decodeReverse decodes a data block and checks that it can be read. It does not verify the
// checksum.
func decodeReverse(b []byte) (reverseBlock, error) {
	if len(b) != BlockBytes {
		return reverseBlock{}, fmt.Errorf("block of %d bytes", len(b))
	}
	d := codec.NewDec(b)
	d.U32()
	n, flags, first := int(d.U16()), d.U16(), d.U32()
	r := reverseBlock{first: kv.NodeID(first), n: n, ends: d.Bytes(2 * n)}
	if err := d.Err(); err != nil || n == 0 || flags != 0 || uint64(first)+uint64(n) > maxNodes {
		return reverseBlock{}, fmt.Errorf("%d ids from node %d on with flags %#x are no block",
			n, first, flags)
	}
	r.heap = d.Bytes(d.Remaining())
	return r, checkEnds(r.ends, len(r.heap))
}

func (r *reverseBlock) external(i int) []byte { return heapItem(r.ends, r.heap, i) }

// ReverseWriter writes the internal-to-external file: the external ids of node 0, 1, 2, …. It takes
// the memory of 64 blocks, and 8 bytes for each block for the index.
type ReverseWriter struct {
	w     *blockWriter
	first uint64 // the node of the first id in the block that is being filled
	ends  []uint16
	heap  []byte
	block []byte
}

// NewReverseWriter starts ids/reverse.ids at path.
func NewReverseWriter(fs vfs.FS, path string, uuid kv.UUID) (*ReverseWriter, error) {
	w, err := newBlockWriter(fs, path, ReverseKind, uuid, 4, nil)
	if err != nil {
		return nil, err
	}
	return &ReverseWriter{w: w, block: make([]byte, 0, BlockBytes)}, nil
}

// Add appends the external id of the next node. An id longer than MaxBytes is an error, after which
// the writer cannot be used.
func (w *ReverseWriter) Add(external []byte) error {
	if w.w.err != nil {
		return w.w.err
	}
	if len(external) > MaxBytes {
		return w.w.fail(tooLong(w.w.path, external))
	}
	if w.w.entries == maxNodes {
		return w.w.fail(fmt.Errorf("kv: %s: more than %d nodes", w.w.path, uint64(maxNodes)))
	}
	n := len(w.ends) + 1
	if reverseHead+n*reverseEntry+len(w.heap)+len(external) > BlockBytes {
		w.flush()
	}
	w.heap = append(w.heap, external...)
	w.ends = append(w.ends, uint16(len(w.heap)))
	w.w.entries++
	return w.w.err
}

// flush writes the block that is being filled.
func (w *ReverseWriter) flush() {
	if len(w.ends) == 0 {
		return
	}
	e := codec.Enc{B: append(w.block[:0], make([]byte, 4)...)}
	e.U16(uint16(len(w.ends)))
	e.U16(0)
	e.U32(uint32(w.first))
	for _, end := range w.ends {
		e.U16(end)
	}
	e.Bytes(w.heap)
	e.Pad(BlockBytes)
	w.w.data(e.B, w.first)
	w.block = e.B
	w.first += uint64(len(w.ends))
	w.ends, w.heap = w.ends[:0], w.heap[:0]
}

// Finish writes the index, syncs and closes the file, and returns its record. The path of the
// record is ReversePath, wherever the file was written.
func (w *ReverseWriter) Finish() (kv.FileMeta, error) {
	w.flush()
	return w.w.finish(ReversePath)
}

// Abort closes the file without finishing it; after Finish it does nothing. It leaves the file for
// the owner of the directory to remove.
func (w *ReverseWriter) Abort() error { return w.w.abort() }

// cachedBytes is the memory that a block takes in the cache of ids.
const cachedBytes = BlockBytes + mem.FrameBytes

// idCache keeps verified blocks of ids/reverse.ids: where the names of many nodes are asked for in
// parts, each part needs blocks that earlier parts have read. Blocks are copied in and out, which
// takes a tenth of a microsecond each, so that no caller holds a frame. An idCache without a
// BlockCache keeps nothing.
type idCache struct {
	*mem.BlockCache
}

// get copies the cached ones of blocks to their places in buf, and returns the places of the
// others.
func (c idCache) get(blocks []uint64, buf []byte, missed []int) []int {
	if c.BlockCache == nil {
		for i := range blocks {
			missed = append(missed, i)
		}
		return missed
	}
	c.Lock()
	defer c.Unlock()
	for i, b := range blocks {
		f, _, ok := c.PinLocked(b)
		if !ok {
			missed = append(missed, i)
			continue
		}
		copy(buf[i*BlockBytes:(i+1)*BlockBytes], c.Data(f))
		c.UnpinLocked(f)
	}
	return missed
}

// put keeps the blocks at some places, with their bytes in buf.
func (c idCache) put(blocks []uint64, buf []byte, places []int) {
	if c.BlockCache == nil {
		return
	}
	c.Lock()
	defer c.Unlock()
	for _, i := range places {
		f, _, ok := c.PinLocked(blocks[i])
		if !ok { // otherwise another lookup has read the block too
			f, _ = c.ClaimLocked(blocks[i], nil) // no frame stays pinned
			copy(c.Data(f), buf[i*BlockBytes:(i+1)*BlockBytes])
		}
		c.UnpinLocked(f)
	}
}

func (c idCache) free() error {
	if c.BlockCache == nil {
		return nil
	}
	return c.Free()
}

// Cache implements Cacher.
func (d *dictionary) Cache(bytes int64, budget *mem.Budget) error {
	if d.reverse.cache.BlockCache != nil {
		return errors.New("kv: these ids have a cache already")
	}
	n := min(bytes/cachedBytes, int64(d.reverse.f.data))
	if n < 1 {
		return nil
	}
	c, err := mem.NewBlockCache(n, BlockBytes, budget, "table of the id cache",
		"blocks of the id dictionary")
	d.reverse.cache = idCache{c}
	return err
}

// CacheStats implements Cacher.
func (d *dictionary) CacheStats() CacheStats {
	r := d.reverse
	s := CacheStats{Hits: r.hits.Load(), Misses: r.f.reads.Load()}
	if r.cache.BlockCache != nil {
		s.Bytes = r.cache.Bytes()
	}
	return s
}
