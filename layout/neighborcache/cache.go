// Package neighborcache keeps the lists of the nodes that are sampled most in memory, behind a
// paged topology, so that no block is read for them. A Trial forecasts what such a cache would
// save.
package neighborcache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
)

// Cache holds the lists of some nodes in memory. It is made once (see builder) and does not change,
// so any number of goroutines may read it without a lock.
//
// Everything lies in one arena, in this order, which is also that of its file:
//
//	bases   u64 for 256 lists: where the first of them begins
//	ids     u32 a list: the cached nodes, ascending
//	starts  u32 a list and one more: where it begins, counted from its base
//	lists   see appendList
//	zeros   16 at least, so that the decoder may read past the last list
//
// A second arena holds the directory: for every 2^shift ids, which list is the first. It has at
// most one entry for 8 lists, so a list costs 8.6 bytes besides its entries (listCost counts 9).
type Cache struct {
	arenas [2]*mem.Arena
	counts

	bases  []uint64
	ids    []uint32
	starts []uint32
	lists  []byte // with the zeros as spare capacity
	dir    []uint32
	shift  int
}

// counts say how large a neighbor cache is.
type counts struct {
	count   uint64 // lists
	entries uint64 // of all lists
	bytes   uint64 // of all lists
}

// Stats say what the neighbor cache of a reader of lists holds and did.
type Stats struct {
	Requests  uint64 // lists asked for, to sample from
	Hits      uint64 // requests for lists in the cache, which read no block
	Bytes     int64  // memory held, which the reader's own count includes
	Lists     uint64 // lists held, including empty ones
	Entries   uint64 // neighbors in them
	ListBytes uint64 // bytes of the lists, without the index
	Made      bool   // made by this reader, not loaded from prep
	Note      string // for the user: an earlier cache was damaged, or this one could not be kept
}

// Ratio returns how many times smaller the lists are than entries of 4 bytes, or 0 without entries.
func (s *Stats) Ratio() float64 {
	if s.ListBytes == 0 {
		return 0
	}
	return float64(s.Entries) * listfile.IDBytes / float64(s.ListBytes)
}

const (
	baseLists = 256 // lists that share a base: even of listEntriesMax entries they stay below 4 GiB
	listCost  = 9
	listSpare = 16
	// listEntriesMax bounds a cached list. A longer one is read from its blocks: k neighbors take k
	// reads.
	listEntriesMax = 1 << 20
	// ChunkEntries is how many entries are encoded together: of a long list only the chunks with
	// wanted positions are decoded, about 0.4 µs each.
	ChunkEntries = 1024
)

const _ uint = 1<<32 - 1 - baseLists*(listEntriesMax*5+listEntriesMax/ChunkEntries*8)

// errList is wrapped by errors of a cached list that cannot be decoded.
var errList = errors.New("cached list")

// listMeter computes the size in a neighbor cache of a list that comes in parts.
type listMeter struct {
	entries uint64
	data    uint64 // bytes of its deltas, if compressed
	prev    uint32
}

func (m *listMeter) add(part []uint32) {
	for len(part) > 0 {
		at := m.entries % ChunkEntries
		if at == 0 {
			m.prev = 0
		}
		n := min(uint64(len(part)), ChunkEntries-at)
		m.data += uint64(codec.DeltasData(m.prev, part[:n]))
		m.prev = part[n-1]
		m.entries += n
		part = part[n:]
	}
}

// size returns the bytes of the list, and whether it is compressed.
func (m *listMeter) size(compress bool) (n uint64, compressed bool) {
	n = listfile.IDBytes * m.entries
	if deltas := m.data + (m.entries+3)/4 + chunkDirectory(m.entries); compress && deltas < n {
		n, compressed = deltas, true
	}
	return n + headBytes(m.entries), compressed
}

// chunkDirectory returns the size of the ends of chunks of a compressed list, in bytes.
func chunkDirectory(entries uint64) uint64 {
	if entries <= ChunkEntries {
		return 0
	}
	return (entries + ChunkEntries - 1) / ChunkEntries * 4
}

// headBytes returns the size of the head of a list, in bytes.
func headBytes(entries uint64) uint64 { return uint64(bits.Len64(entries<<1|1)+6) / 7 }

// appendList appends a list to b:
//
//	head    uvarint: 2 * entries, + 1 if it is raw
//	raw     u32 an entry; where that is not larger than
//	deltas  codec.AppendDeltas of each ChunkEntries entries; before them, if they are several, u32
//	        a chunk: where it ends, counted from the end of these
//
// A short list is often raw: deltas of two entries may take seven bytes or nine.
func appendList(b []byte, list []uint32, compress bool) []byte {
	var m listMeter
	m.add(list)
	n := uint64(len(list))
	if _, compressed := m.size(compress); !compressed {
		b = binary.AppendUvarint(b, n<<1|1)
		return append(b, mem.BytesOf(list)...)
	}
	b = binary.AppendUvarint(b, n<<1)
	if n <= ChunkEntries {
		return codec.AppendDeltas(b, list)
	}
	at := len(b)
	b = append(b, make([]byte, chunkDirectory(n))...)
	from := len(b)
	for ; len(list) > 0; at += 4 {
		k := min(len(list), ChunkEntries)
		b = codec.AppendDeltas(b, list[:k])
		binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-from))
		list = list[k:]
	}
	return b
}

// List is a list in the cache.
type List struct {
	Entries uint32
	raw     bool
	b       []byte // after the head
}

// parseList parses the head of a list.
func parseList(b []byte) (List, error) {
	// Heads of one byte, of lists below 64 entries, are most.
	head, n := uint64(0), 1
	if len(b) > 0 && b[0] < 128 {
		head = uint64(b[0])
	} else {
		head, n = binary.Uvarint(b)
	}
	l := List{Entries: uint32(head >> 1), raw: head&1 != 0}
	if n <= 0 || head>>1 > listEntriesMax {
		return l, fmt.Errorf("%w has no head", errList)
	}
	l.b = b[n:]
	if l.raw && len(l.b) != int(l.Entries)*listfile.IDBytes {
		return l, fmt.Errorf("%w of %d raw entries has %d bytes", errList, l.Entries, len(l.b))
	}
	return l, nil
}

// gather writes the entries at positions pos, which must be below l.Entries, to out. scratch has
// ChunkEntries entries.
func (l *List) gather(pos, scratch []uint32, out []layout.NodeID) error {
	out = out[:len(pos)]
	if l.raw {
		for j, x := range pos {
			out[j] = layout.NodeID(binary.LittleEndian.Uint32(l.b[x*listfile.IDBytes:]))
		}
		return nil
	}
	if l.Entries > ChunkEntries {
		return l.gatherChunks(pos, scratch, out)
	}
	if len(pos) == int(l.Entries) && ascending(pos) { // the whole list
		return codec.DecodeDeltas(mem.View[uint32](mem.BytesOf(out)), l.b)
	}
	scratch = scratch[:l.Entries]
	if err := codec.DecodeDeltas(scratch, l.b); err != nil {
		return err
	}
	for j, x := range pos {
		out[j] = layout.NodeID(scratch[x])
	}
	return nil
}

// ascending reports whether pos is 0, 1, 2, ….
func ascending(pos []uint32) bool {
	for j, x := range pos {
		if x != uint32(j) {
			return false
		}
	}
	return true
}

// gatherChunks does what gather does, for a list of several chunks.
func (l *List) gatherChunks(pos, scratch []uint32, out []layout.NodeID) error {
	now := uint32(1<<32 - 1)
	for j, x := range pos {
		if k := x / ChunkEntries; k != now {
			if err := l.chunk(k, scratch[:min(ChunkEntries,
				l.Entries-k*ChunkEntries)]); err != nil {
				return err
			}
			now = k
		}
		out[j] = layout.NodeID(scratch[x%ChunkEntries])
	}
	return nil
}

// chunk decodes chunk k.
func (l *List) chunk(k uint32, out []uint32) error {
	ends := chunkDirectory(uint64(l.Entries))
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

// Find returns the number of the list of a node, and false if it is not cached.
func (c *Cache) Find(v layout.NodeID) (i uint32, ok bool) {
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

// List returns list number i.
func (c *Cache) List(i uint32) (List, error) {
	from := c.bases[i/baseLists] + uint64(c.starts[i])
	to := c.bases[(i+1)/baseLists] + uint64(c.starts[i+1])
	if from > to || to > uint64(len(c.lists)) {
		return List{}, fmt.Errorf("%w at bytes %d to %d of %d", errList, from, to,
			len(c.lists))
	}
	return parseList(c.lists[from:to])
}

// Gather writes entries of list number i to out, and checks that they are below nodes. scratch has
// room for ChunkEntries entries.
func (c *Cache) Gather(i uint32, pos, scratch []uint32, nodes uint64, out []layout.NodeID) error {
	l, err := c.List(i)
	if err == nil {
		err = l.gather(pos, scratch, out)
	}
	if err == nil && uint64(codec.Max(mem.View[uint32](mem.BytesOf(out)))) >= nodes {
		err = fmt.Errorf("%w has a neighbor that is not below %d", errList, nodes)
	}
	return err
}

// index makes the directory.
func (c *Cache) index(nodes uint64, budget *mem.Budget) (err error) {
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

// Node returns the node of list number i.
func (c *Cache) Node(i uint32) layout.NodeID { return layout.NodeID(c.ids[i]) }

// Held sets the fields of n that say what the cache holds.
func (c *Cache) Held(n *Stats) {
	n.Bytes = int64(len(c.arenas[0].Bytes()) + len(c.arenas[1].Bytes()))
	n.Lists, n.Entries, n.ListBytes = c.count, c.entries, c.bytes
}

// Free gives the memory back. Nobody may read the cache any more.
func (c *Cache) Free() (err error) {
	for _, a := range c.arenas {
		if a != nil {
			err = errors.Join(err, a.Free())
		}
	}
	return err
}
