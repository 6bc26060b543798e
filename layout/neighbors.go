package layout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"gdb/internal/codec"
	"gdb/internal/mem"
)

// neighborCache keeps the lists of some nodes in memory, so that sampling them reads no block. It
// is made once (see neighborBuilder) and does not change: any number of goroutines read it without
// a lock.
//
// Everything lies in one arena, in this order, which is that of its file too:
//
//	bases   u64 for 256 lists: where the first of them begins
//	ids     u32 a list: the cached nodes, ascending
//	starts  u32 a list and one more: where it begins, counted from its base
//	lists   see appendList
//	zeros   16 at least, so that the decoder may read past the last list
//
// A second arena has the directory: for every 2^shift ids, which list is the first. It has at most
// one entry for 8 lists, so a list costs 8.6 bytes beside its own (listCost counts 9).
type neighborCache struct {
	arenas [2]*mem.Arena
	neighborCounts

	bases  []uint64
	ids    []uint32
	starts []uint32
	lists  []byte // with the zeros as spare capacity
	dir    []uint32
	shift  int
}

// neighborCounts say how large a neighbor cache is.
type neighborCounts struct {
	count   uint64 // lists
	entries uint64 // of all lists
	bytes   uint64 // of all lists
}

const (
	baseLists = 256 // lists with one base: of listEntriesMax each they stay below 4 GiB
	listCost  = 9
	listSpare = 16
	// listEntriesMax bounds a cached list. A longer one is read from its blocks: k neighbors in k
	// reads.
	listEntriesMax = 1 << 20
	// listChunk is how many entries are encoded together: of a long list only those chunks are
	// decoded that a position is in, about 0.4 µs each.
	listChunk = 1024
)

const _ uint = 1<<32 - 1 - baseLists*(listEntriesMax*5+listEntriesMax/listChunk*8)

// errList is the cause of a cached list that cannot be decoded.
var errList = errors.New("cached list")

// listMeter computes what a list that comes in parts takes in a neighbor cache.
type listMeter struct {
	entries uint64
	data    uint64 // bytes of its deltas, if compressed
	prev    uint32
}

func (m *listMeter) add(part []uint32) {
	for len(part) > 0 {
		at := m.entries % listChunk
		if at == 0 {
			m.prev = 0
		}
		n := min(uint64(len(part)), listChunk-at)
		m.data += uint64(codec.DeltasData(m.prev, part[:n]))
		m.prev = part[n-1]
		m.entries += n
		part = part[n:]
	}
}

// size is what the list takes; compressed says in which form.
func (m *listMeter) size(compress bool) (n uint64, compressed bool) {
	n = idBytes * m.entries
	if deltas := m.data + (m.entries+3)/4 + chunkDirectory(m.entries); compress && deltas < n {
		n, compressed = deltas, true
	}
	return n + headBytes(m.entries), compressed
}

// chunkDirectory is the size of the ends of the chunks of a compressed list.
func chunkDirectory(entries uint64) uint64 {
	if entries <= listChunk {
		return 0
	}
	return (entries + listChunk - 1) / listChunk * 4
}

// headBytes is the size of the head of a list.
func headBytes(entries uint64) uint64 { return uint64(bits.Len64(entries<<1|1)+6) / 7 }

// appendList appends a list to b:
//
//	head    uvarint: 2 * entries, + 1 if it is raw
//	raw     u32 an entry; where that is not larger than
//	deltas  codec.AppendDeltas of each listChunk entries; before them, if they are several, u32
//	        a chunk: where it ends, counted from the end of these
//
// A short list often is raw: of two entries deltas may take seven bytes or nine.
func appendList(b []byte, list []uint32, compress bool) []byte {
	var m listMeter
	m.add(list)
	n := uint64(len(list))
	if _, compressed := m.size(compress); !compressed {
		b = binary.AppendUvarint(b, n<<1|1)
		return append(b, mem.BytesOf(list)...)
	}
	b = binary.AppendUvarint(b, n<<1)
	if n <= listChunk {
		return codec.AppendDeltas(b, list)
	}
	at := len(b)
	b = append(b, make([]byte, chunkDirectory(n))...)
	from := len(b)
	for ; len(list) > 0; at += 4 {
		k := min(len(list), listChunk)
		b = codec.AppendDeltas(b, list[:k])
		binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-from))
		list = list[k:]
	}
	return b
}

// cachedList is a list in the cache.
type cachedList struct {
	entries uint32
	raw     bool
	b       []byte // after the head
}

// parseList reads the head of a list.
func parseList(b []byte) (cachedList, error) {
	// Heads of one byte, of lists below 64 entries, are most.
	head, n := uint64(0), 1
	if len(b) > 0 && b[0] < 128 {
		head = uint64(b[0])
	} else {
		head, n = binary.Uvarint(b)
	}
	l := cachedList{entries: uint32(head >> 1), raw: head&1 != 0}
	if n <= 0 || head>>1 > listEntriesMax {
		return l, fmt.Errorf("%w has no head", errList)
	}
	l.b = b[n:]
	if l.raw && len(l.b) != int(l.entries)*idBytes {
		return l, fmt.Errorf("%w of %d raw entries has %d bytes", errList, l.entries, len(l.b))
	}
	return l, nil
}

// gather writes the entries at positions pos, which are below l.entries, to out. scratch has
// listChunk entries.
func (l *cachedList) gather(pos, scratch []uint32, out []NodeID) error {
	out = out[:len(pos)]
	if l.raw {
		for j, x := range pos {
			out[j] = NodeID(binary.LittleEndian.Uint32(l.b[x*idBytes:]))
		}
		return nil
	}
	if l.entries > listChunk {
		return l.gatherChunks(pos, scratch, out)
	}
	if len(pos) == int(l.entries) && ascending(pos) { // the whole list
		return codec.DecodeDeltas(mem.View[uint32](mem.BytesOf(out)), l.b)
	}
	scratch = scratch[:l.entries]
	if err := codec.DecodeDeltas(scratch, l.b); err != nil {
		return err
	}
	for j, x := range pos {
		out[j] = NodeID(scratch[x])
	}
	return nil
}

// ascending says whether pos is 0, 1, 2, ….
func ascending(pos []uint32) bool {
	for j, x := range pos {
		if x != uint32(j) {
			return false
		}
	}
	return true
}

// gatherChunks is gather of a list of several chunks.
func (l *cachedList) gatherChunks(pos, scratch []uint32, out []NodeID) error {
	now := uint32(1<<32 - 1)
	for j, x := range pos {
		if k := x / listChunk; k != now {
			if err := l.chunk(k, scratch[:min(listChunk, l.entries-k*listChunk)]); err != nil {
				return err
			}
			now = k
		}
		out[j] = NodeID(scratch[x%listChunk])
	}
	return nil
}

// chunk decodes chunk k.
func (l *cachedList) chunk(k uint32, out []uint32) error {
	ends := chunkDirectory(uint64(l.entries))
	if uint64(len(l.b)) < ends {
		return fmt.Errorf("%w ends before its chunks", errList)
	}
	data, from := l.b[ends:], uint32(0)
	if k > 0 {
		from = binary.LittleEndian.Uint32(l.b[4*(k-1):])
	}
	to := binary.LittleEndian.Uint32(l.b[4*k:])
	if from > to || uint64(to) > uint64(len(data)) {
		return fmt.Errorf("%w has its chunk %d at bytes %d to %d of %d", errList, k, from, to,
			len(data))
	}
	return codec.DecodeDeltas(out, data[from:to])
}

// find returns the number of the list of a node.
func (c *neighborCache) find(v NodeID) (i uint32, ok bool) {
	k := uint32(v) >> c.shift
	lo, hi := c.dir[k], c.dir[k+1]
	for hi-lo > 8 {
		if m := lo + (hi-lo)/2; c.ids[m] <= uint32(v) {
			lo = m
		} else {
			hi = m
		}
	}
	for i, x := range c.ids[lo:hi] {
		if x >= uint32(v) {
			return lo + uint32(i), x == uint32(v)
		}
	}
	return 0, false
}

// list returns list number i.
func (c *neighborCache) list(i uint32) (cachedList, error) {
	from := c.bases[i/baseLists] + uint64(c.starts[i])
	to := c.bases[(i+1)/baseLists] + uint64(c.starts[i+1])
	if from > to || to > uint64(len(c.lists)) {
		return cachedList{}, fmt.Errorf("%w at bytes %d to %d of %d", errList, from, to,
			len(c.lists))
	}
	return parseList(c.lists[from:to])
}

// index makes the directory.
func (c *neighborCache) index(nodes uint64, budget *mem.Budget) (err error) {
	for c.shift = 3; c.shift < 32 && nodes>>c.shift+2 > c.count/8; {
		c.shift++
	}
	n := max(nodes, 1)>>c.shift + 2
	c.arenas[1], err = mem.NewArena(budget, "directory of the neighbor cache", int64(n)*4)
	if err != nil {
		return err
	}
	c.dir = mem.View[uint32](c.arenas[1].Bytes())
	k := 0
	for i, v := range c.ids {
		for ; k <= int(v>>c.shift); k++ {
			c.dir[k] = uint32(i)
		}
	}
	for ; k < len(c.dir); k++ {
		c.dir[k] = uint32(len(c.ids))
	}
	return nil
}

// held is the memory of the cache.
func (c *neighborCache) held() int64 {
	return int64(len(c.arenas[0].Bytes()) + len(c.arenas[1].Bytes()))
}

func (c *neighborCache) free() (err error) {
	for _, a := range c.arenas {
		if a != nil {
			err = errors.Join(err, a.Free())
		}
	}
	return err
}
