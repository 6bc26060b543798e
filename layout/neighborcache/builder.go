package neighborcache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
)

// builder chooses the lists of a neighbor cache and reads them.
//
// The choice is by block reads saved per byte. A node is used by each list that it is in: a sample
// of a list of d entries draws it with probability min(1, k/d) (k is useFanout). The sum of these
// is the node's out-degree, with less weight for long lists; divided by the size of its own list it
// is the ratio by which Park, Min and Lee choose (Ginex). Two things are added. First, a batch
// needs a list once, however often it draws the node: a share f of all uses means that a batch
// reads the list with probability 1-exp(-f*useDraws); without this the hubs would win. Second, what
// a hit saves: for a hub, several blocks that hold nothing else; for another list, its share of a
// block that the batch needs for no other list, which has the probability exp(-useDraws/blocks). So
// nodes differ even on an undirected graph, where out-degree over in-degree is 1. An empty list
// takes 10 bytes and saves as much as any other.
//
// One sequential scan of the lists gives the scores, and a histogram of them the least score that
// fits; a second scan reads the chosen lists. Scores take 6 bytes per node. If there is no room for
// all nodes, scores are computed range by range, with a scan for each, and once more to choose.
type builder struct {
	s   *layout.Store
	dev blockdev.Device
	dir layout.Direction
	ix  *listfile.Index
	at  int // last block of ix that begins no later than the scan's node
	opt Options

	uses  []float32 // uses of the nodes of a range
	sizes []uint16  // sizes of their lists, as packed by packSize
	hist  []scoreBucket

	share float64    // share of all uses that occurs once per batch
	saved [4]float64 // blocks that a hit saves, by class of list: see packSize
}

// Options say how a neighbor cache is made.
type Options struct {
	CacheBytes   int64       // most bytes that the cache may take
	Compress     bool        // store lists as differences of ids where that is smaller
	ScratchBytes int64       // bytes that scores may take while the cache is made
	Budget       *mem.Budget // nil counts nothing
}

// ScratchBytes returns how many bytes scores may take while a reader with a neighbor cache and a
// block cache is opened: the room of the block cache, which is made later, or half of what the
// budget has left.
func ScratchBytes(budget *mem.Budget, neighborBytes, blockBytes int64) int64 {
	if budget == nil || budget.Limit() == 0 {
		return math.MaxInt64
	}
	left := budget.Limit() - budget.Used() - neighborBytes
	return max(blockBytes, left/2)
}

type scoreBucket struct{ lists, bytes uint64 }

const (
	// A batch of 1000 seeds with fanouts of 10 draws about this many neighbors whose lists it
	// reads.
	useDraws      = 50_000
	useFanout     = 10
	savedLeast    = 1.0 / 64 // so that nodes differ even if a batch needs every block
	usePerNode    = 6
	scoreBuckets  = 1 << 13 // 32 an octave
	rangeNodesMin = 1 << 16
	sizeNever     = 1<<16 - 1
	sizeBits      = 10
	classBits     = 2
	Least         = 64 << 10 // smallest useful cache, in bytes
)

// build returns a neighbor cache of at most CacheBytes.
func (w *builder) build(ctx context.Context) (c *Cache, err error) {
	nodes := w.lists()
	scratch, step, err := w.scratch()
	if err != nil {
		return nil, err
	}
	if err := w.histogram(ctx, step, nil); err != nil {
		return nil, errors.Join(err, scratch.Free())
	}
	pick := w.pick()
	c, err = w.allocate(pick)
	for first := uint64(0); first < nodes && err == nil; first += step {
		if step < nodes {
			err = w.score(ctx, first, min(first+step, nodes))
		}
		if err == nil {
			w.choose(c, pick, first, min(step, nodes-first))
		}
	}
	err = errors.Join(err, scratch.Free())
	if err == nil {
		err = w.fill(ctx, c)
	}
	if err == nil {
		err = c.index(nodes, w.opt.Budget)
	}
	if err != nil && c != nil {
		return nil, errors.Join(err, c.Free())
	}
	return c, err
}

// scratch makes room for the scores of a range of step nodes.
func (w *builder) scratch() (a *mem.Arena, step uint64, err error) {
	step = min(w.lists(), max(uint64(w.opt.ScratchBytes)/usePerNode, rangeNodesMin))
	a, err = mem.NewArena(w.opt.Budget, "scores of neighbor lists", int64(step)*usePerNode)
	if err != nil {
		return nil, 0, err
	}
	w.uses = mem.View[float32](a.Bytes()[:4*step])
	w.sizes = mem.View[uint16](a.Bytes()[4*step:])
	return a, step, nil
}

// histogram scores all lists, range by range. After each range it calls note, unless that is nil.
func (w *builder) histogram(ctx context.Context, step uint64,
	note func(first, n uint64)) error {
	nodes := w.lists()
	w.hist = make([]scoreBucket, scoreBuckets)
	for first := uint64(0); first < nodes; first += step {
		n := min(step, nodes-first)
		if err := w.score(ctx, first, first+n); err != nil {
			return err
		}
		w.count(n)
		if note != nil {
			note(first, n)
		}
	}
	return nil
}

// score scans all lists for the uses of nodes first … end-1, and for the sizes of their lists.
func (w *builder) score(ctx context.Context, first, end uint64) error {
	uses := w.uses[:end-first]
	clear(uses)
	w.at = 0
	numbers := layout.ListsOf(w.s.Meta(), w.dir)
	var m listMeter
	node, blocks, weight, total := uint64(0), uint64(0), float32(0), float64(0)
	finish := func() {
		if node >= first && node < end {
			n, _ := m.size(w.opt.Compress)
			w.sizes[node-first] = packSize(n, m.entries, blocks)
		}
		m = listMeter{}
	}
	err := listfile.ScanLists(ctx, w.s, w.dev, w.dir, func(v layout.NodeID, cont bool,
		l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			list := l.Nbrs[l.Off[i]:l.Off[i+1]]
			if !cont || i > 0 {
				finish()
				node = uint64(v) + uint64(i)
				var least uint64
				blocks, least = w.blocks(v + layout.NodeID(i))
				weight = useWeight(max(uint64(len(list)), least))
			}
			total += float64(weight) * float64(len(list))
			if node >= first && node < end {
				m.add(mem.View[uint32](mem.BytesOf(list)))
			}
			addUses(uses, first, numbers, list, weight)
		}
		return nil
	})
	finish()
	w.share = max(total, 1) / useDraws
	others := float64(min(useDraws, w.lists())) / float64(max(w.ix.Blocks, 1))
	w.saved = [4]float64{max(math.Exp(-others), savedLeast), 3, 5, useFanout}
	return err
}

// lists returns the number of lists that there are.
func (w *builder) lists() uint64 { return layout.CountLists(w.s.Meta(), w.dir) }

// addUses adds a weight to the uses of the lists of each node in a list. uses begin at list first.
// The nodes are of one type, if types have lists by relation.
func addUses(uses []float32, first uint64, numbers *layout.NodeLists, list []layout.NodeID,
	weight float32) {
	if numbers == nil {
		for _, u := range list {
			if k := uint64(u) - first; k < uint64(len(uses)) {
				uses[k] += weight
			}
		}
		return
	}
	if len(list) == 0 {
		return
	}
	begin, n := numbers.Of(list[0])
	for _, u := range list {
		for j := range uint64(n) {
			if k := uint64(begin) + uint64(u-list[0])*uint64(n) + j - first; k < uint64(len(uses)) {
				uses[k] += weight
			}
		}
	}
}

// blocks returns how many blocks have some of a node's list, and a lower bound of its entries.
func (w *builder) blocks(v layout.NodeID) (blocks, least uint64) {
	if len(w.ix.Keys) == 0 {
		return 1, 0
	}
	for w.at+1 < len(w.ix.Keys) && w.ix.Keys[w.at+1] <= listfile.Key(v, 1<<32-1) {
		w.at++
	}
	if last := w.ix.Keys[w.at]; last>>32 == uint64(v) {
		least = last & (1<<32 - 1)
	}
	return uint64(w.ix.Run(v, w.at)), least
}

// useWeight returns the probability that a sample of a list of d entries has a given one of them.
func useWeight(d uint64) float32 { return float32(min(1, useFanout/float64(max(d, 1)))) }

// packSize packs the size of a list in 16 bits: ten bits, rounded up by less than 1/512, four of
// exponent, and two for the class of its number of blocks: 1, 2 to 3, 4 to 7, or more.
func packSize(n, entries, blocks uint64) uint16 {
	if entries > listEntriesMax {
		return sizeNever
	}
	e := max(bits.Len64(n)-sizeBits, 0)
	m := (n + 1<<e - 1) >> e
	if m>>sizeBits != 0 {
		m, e = m>>1, e+1
	}
	class := min(bits.Len64(blocks)-1, 1<<classBits-1)
	return uint16(e<<(sizeBits+classBits) | class<<sizeBits | int(m))
}

func unpackSize(p uint16) (n uint64, class int) {
	n = uint64(p&(1<<sizeBits-1)) << (p >> (sizeBits + classBits))
	return n, int(p >> sizeBits & (1<<classBits - 1))
}

// bucket returns the place of node k of the range in the histogram, and the size of its list. It
// takes the upper bits of the score, since those of a positive float ascend with it.
func (w *builder) bucket(k uint64) (bucket int, bytes uint64, ok bool) {
	p := w.sizes[k]
	if p == sizeNever {
		return 0, 0, false
	}
	bytes, class := unpackSize(p)
	needed := -math.Expm1(-float64(w.uses[k]) / w.share)
	score := float32(needed * w.saved[class] / float64(bytes+listCost))
	return int(math.Float32bits(score) >> 18), bytes, true
}

// count adds the n nodes of a range to the histogram.
func (w *builder) count(n uint64) {
	for k := range n {
		if b, bytes, ok := w.bucket(k); ok {
			w.hist[b].lists++
			w.hist[b].bytes += bytes
		}
	}
}

// pickedLists is the choice of lists that fit: all lists above a bucket and, of the lists in the
// bucket, the first in the order of ids, until their number or size is used up.
type pickedLists struct {
	bucket       int
	some         scoreBucket // lists and bytes that fit of the bucket
	lists, bytes uint64      // upper bounds over all lists
}

func (w *builder) pick() *pickedLists {
	p := &pickedLists{}
	room := uint64(w.opt.CacheBytes) - layout.PageBytes
	for b := scoreBuckets - 1; b >= 0; b-- {
		h := w.hist[b]
		all := h.bytes + h.lists*listCost
		if p.bucket = b; all > room {
			h.lists = uint64(float64(h.lists) * float64(room) / float64(all))
			h.bytes = room - h.lists*listCost
			all = room
		}
		p.some = h
		p.lists, p.bytes = p.lists+h.lists, p.bytes+h.bytes
		if room -= all; room == 0 {
			break
		}
	}
	return p
}

// allocate returns an empty cache with room for a pick.
func (w *builder) allocate(p *pickedLists) (*Cache, error) {
	c := &Cache{counts: counts{count: p.lists, bytes: p.bytes}}
	var err error
	if c.arenas[0], err = mem.NewArena(w.opt.Budget, "neighbor cache", c.size()); err != nil {
		return nil, err
	}
	c.view()
	c.count, c.bytes = 0, 0
	c.ids, c.lists = c.ids[:0], c.lists[:0]
	return c, nil
}

// choose adds the chosen nodes of a range of n nodes to the cache.
func (w *builder) choose(c *Cache, p *pickedLists, first, n uint64) {
	for k := range n {
		b, bytes, ok := w.bucket(k)
		if !ok || b < p.bucket {
			continue
		}
		if b == p.bucket {
			if p.some.lists == 0 || bytes > p.some.bytes {
				continue
			}
			p.some.lists--
			p.some.bytes -= bytes
		}
		c.ids = append(c.ids, uint32(first+k))
	}
}

// fill reads the chosen lists.
func (w *builder) fill(ctx context.Context, c *Cache) error {
	f := filler{c: c, compress: w.opt.Compress}
	err := listfile.ScanLists(ctx, w.s, w.dev, w.dir, func(v layout.NodeID, cont bool,
		l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			list := l.Nbrs[l.Off[i]:l.Off[i+1]]
			err := f.add(uint32(v)+uint32(i), cont && i == 0, mem.View[uint32](mem.BytesOf(list)))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = f.finish()
	}
	if err == nil && int(c.count) != len(c.ids) {
		err = fmt.Errorf("layout: neighbor cache: %d of %d lists were read", c.count, len(c.ids))
	}
	return err
}

// filler copies lists to a cache as a scan passes them. A list that comes in parts is joined first,
// which takes at most 4 MiB.
type filler struct {
	c        *Cache
	compress bool
	hub      []uint32 // parts so far of the open list
	open     bool     // whether there is an open list
}

func (f *filler) add(node uint32, cont bool, part []uint32) error {
	if !cont {
		if err := f.finish(); err != nil {
			return err
		}
		c := f.c
		f.open = int(c.count) < len(c.ids) && c.ids[c.count] == node
	}
	if f.open {
		f.hub = append(f.hub, part...)
	}
	return nil
}

// finish encodes the open list.
func (f *filler) finish() error {
	if !f.open {
		return nil
	}
	c := f.c
	var m listMeter
	m.add(f.hub)
	n, _ := m.size(f.compress)
	if n+listSpare > uint64(cap(c.lists)-len(c.lists)) {
		return fmt.Errorf("layout: neighbor cache: the list of node %d takes %d bytes, more than "+
			"when it was chosen", c.ids[c.count], n)
	}
	c.lists = appendList(c.lists, f.hub, f.compress)
	c.count++
	c.entries += m.entries
	c.bytes += n
	at := uint64(len(c.lists))
	if c.count%baseLists == 0 {
		c.bases[c.count/baseLists] = at
	}
	c.starts[c.count] = uint32(at - c.bases[c.count/baseLists])
	f.hub, f.open = f.hub[:0], false
	return nil
}

// Sizes of the parts in the arena and the file, in bytes.
func (n *counts) basesBytes() int64  { return 8 * int64(n.count/baseLists+1) }
func (n *counts) idsBytes() int64    { return 4 * int64(n.count) }
func (n *counts) startsBytes() int64 { return 4 * int64(n.count+1) }

// size returns the bytes of all parts, in whole pages.
func (n *counts) size() int64 {
	all := n.basesBytes() + n.idsBytes() + n.startsBytes() + int64(n.bytes) + listSpare
	return (all + layout.PageBytes - 1) &^ (layout.PageBytes - 1)
}

// view sets the parts to views of the arena.
func (c *Cache) view() {
	b := c.arenas[0].Bytes()
	c.bases = mem.View[uint64](b[:c.basesBytes()])
	b = b[c.basesBytes():]
	c.ids = mem.View[uint32](b[:c.idsBytes()])
	b = b[c.idsBytes():]
	c.starts = mem.View[uint32](b[:c.startsBytes()])
	b = b[c.startsBytes():]
	c.lists = b[:c.bytes]
}
