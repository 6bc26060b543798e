package neighborcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/listfile"

	"github.com/cockroachdb/errors/oserror"
)

// AllEntries as the Draws of a Frontier means that whole lists are read.
const AllEntries = math.MaxInt

// Frontier is what a hop of a batch reads: the lists of some nodes, at most Draws entries of each.
type Frontier struct {
	Nodes []layout.NodeID
	Draws int
}

// Caches are sizes of the caches of a paged topology, which this number of sessions share.
type Caches struct {
	Blocks, Neighbors int64 // bytes
	Sessions          int
}

// Counts are what frontiers took from the caches and the device.
type Counts struct {
	Lists, Hits uint64 // lists asked for, and found in the neighbor cache
	Reads       uint64 // number of blocks read
}

// Trial forecasts what frontiers would read with caches of any size, without making the caches. One
// scan of the topology tells which lists a neighbor cache would hold, and the block cache is
// simulated. It takes 16 bytes of memory for each node of a frontier, and 6 for each node of the
// graph while it is made; with less budget, the graph is scanned range by range.
type Trial struct {
	w     builder // with its histogram
	count mem.Account
	tried []triedList // hop by hop, sorted by node in each
	ends  []int
	draws []int
}

// triedList is a list that a frontier reads.
type triedList struct {
	node, block  uint32 // block is the first one, if a hub has several
	bucket, size uint16
	blocks       uint16 // number of blocks of the list; 0 if it is in none
}

const (
	triedBytes = 16 // of a triedList
	emptySize  = 1  // size of a list without entries
)

// NewTrial prepares a trial of frontiers, in the order in which they are read. The caller calls
// Close.
func NewTrial(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	hops []Frontier,
	budget *mem.Budget) (made *Trial, err error) {
	return newTrial(ctx, builder{s: s, dev: dev, dir: dir, opt: Options{Budget: budget}}, hops,
		true)
}

// NewBlockTrial prepares a trial without the scan, which cannot tell what a neighbor cache holds.
// It does not know either which lists are empty and takes all for empty, so that a block cache
// without room for the blocks of a frontier never reads fewer blocks than forecast.
func NewBlockTrial(ctx context.Context, s *layout.Store, dev blockdev.Device,
	dir layout.Direction, hops []Frontier, budget *mem.Budget) (*Trial, error) {
	return newTrial(ctx, builder{s: s, dev: dev, dir: dir, opt: Options{Budget: budget}}, hops,
		false)
}

// newTrial prepares a trial of what w reads, with or without a scan.
func newTrial(ctx context.Context, w builder, hops []Frontier, scan bool) (made *Trial, err error) {
	budget := w.opt.Budget
	ix, err := listfile.LoadIndex(ctx, w.s, w.dev, w.dir, budget)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ix.Free()) }()
	n := 0
	for _, h := range hops {
		n += len(h.Nodes)
	}
	if numbers := layout.ListsOf(w.s.Meta(), w.dir); numbers != nil {
		n *= numbers.Most()
	}
	t := &Trial{w: w}
	t.w.ix, t.w.opt.Compress = ix, true
	t.count = mem.NewAccount(budget, "lists that are tried")
	if err := t.count.AtLeast(triedBytes * int64(n)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	t.w.opt.ScratchBytes = ScratchBytes(budget, 0, 0)
	t.tried = make([]triedList, 0, n)
	numbers := layout.ListsOf(w.s.Meta(), w.dir)
	for _, h := range hops {
		lists := h.Nodes
		if numbers != nil {
			if lists, _, err = numbers.Expand(h.Nodes, nil, nil); err != nil {
				return nil, err
			}
		}
		for _, v := range lists {
			if n := w.lists(); uint64(v) >= n {
				return nil, layout.OutOfRange(v, n)
			}
			t.tried = append(t.tried, triedList{node: uint32(v)})
		}
		t.add(h.Draws)
	}
	if scan {
		if err := t.scan(ctx); err != nil {
			return nil, err
		}
	}
	t.w.ix, t.w.uses, t.w.sizes = nil, nil, nil
	return t, nil
}

// scan scores all lists.
func (t *Trial) scan(ctx context.Context) error {
	scratch, step, err := t.w.scratch()
	if err != nil {
		return err
	}
	return errors.Join(t.w.histogram(ctx, step, t.note), scratch.Free())
}

// add ends a hop: it sorts the lists of the hop and looks up their blocks.
func (t *Trial) add(draws int) {
	from := 0
	if len(t.ends) > 0 {
		from = t.ends[len(t.ends)-1]
	}
	hop, keys, at := t.tried[from:], t.w.ix.Keys, 0
	slices.SortFunc(hop, func(a, b triedList) int { return cmp.Compare(a.node, b.node) })
	for i := range hop {
		l := &hop[i]
		v := layout.NodeID(l.node)
		at += listfile.Upper(keys[at:], listfile.Key(v, 1<<32-1))
		if at == 0 {
			continue // before the first block
		}
		blocks := t.w.ix.Run(v, at-1)
		l.block, l.blocks = uint32(at-blocks), uint16(min(blocks, math.MaxUint16))
	}
	t.ends, t.draws = append(t.ends, len(t.tried)), append(t.draws, draws)
}

// note keeps the scores of the tried lists among nodes first … first+n-1.
func (t *Trial) note(first, n uint64) {
	for i := range t.tried {
		l := &t.tried[i]
		k := uint64(l.node) - first
		if k >= n {
			continue
		}
		l.size = t.w.sizes[k]
		if bucket, _, ok := t.w.bucket(k); ok {
			l.bucket = uint16(bucket)
		}
	}
}

// Close gives the memory back.
func (t *Trial) Close() { t.count.Release() }

// Reads simulates the hops with caches of these sizes, and counts from hop number from on.
func (t *Trial) Reads(c Caches, from int) (r Counts, err error) {
	block := max(t.w.s.Meta().BlockBytes, listfile.BlockMin)
	frames := max(c.Blocks/int64(block), 1)
	cache, err := mem.NewFrames(frames, t.w.opt.Budget, "trial of a block cache")
	if err != nil {
		return r, err
	}
	defer cache.Release()
	p := trialPlay{cache: cache, draw: rng.NewStream(1),
		share: cache.Share(c.Sessions), over: mem.BlockOverflow(block)}
	var pick *pickedLists
	if c.Neighbors >= Least {
		w := t.w
		w.opt.CacheBytes = c.Neighbors
		pick = w.pick()
	}
	begin := 0
	for h, end := range t.ends {
		if h == from {
			p.Counts = Counts{}
		}
		p.hop(t, pick, t.tried[begin:end], t.draws[h])
		begin = end
	}
	return p.Counts, nil
}

// holds reports whether a picked cache has a list. From the last bucket, it has the first lists in
// the order of ids.
func (t *Trial) holds(p *pickedLists, l *triedList) bool {
	switch {
	case p == nil || l.size == sizeNever:
		return false
	case int(l.bucket) != p.bucket:
		return int(l.bucket) > p.bucket
	}
	all := max(t.w.hist[p.bucket].lists, 1)
	return uint64(l.node) < t.w.lists()*p.some.lists/all
}

// trialPlay simulates a session on a block cache that starts empty.
type trialPlay struct {
	Counts
	cache *mem.Frames
	draw  rng.Stream
	share int // frames that the session may pin
	over  int // blocks that fit besides the frames
	pins  []int32
	need  []uint32 // scratch: blocks of the lists, then of what Gather takes
}

// hop reads a frontier as a session does: first the last block of each list, which stays pinned
// while there are frames; then the blocks that entries of hubs are drawn from, and blocks that did
// not stay.
func (p *trialPlay) hop(t *Trial, pick *pickedLists, hop []triedList, draws int) {
	p.cache.Unpin(p.pins)
	p.pins, p.need = p.pins[:0], p.need[:0]
	var late []uint32
	last, stays := int64(-1), false
	for i := range hop {
		l := &hop[i]
		p.Lists++
		if t.holds(pick, l) {
			p.Hits++
			continue
		}
		if l.blocks == 0 {
			continue
		}
		b := l.block + uint32(l.blocks) - 1
		if int64(b) != last {
			last = int64(b)
			stays = p.visit(b)
		}
		switch {
		case l.blocks > 1:
			late = p.drawn(late, l, draws)
		case !stays && l.size > emptySize:
			late = append(late, b)
		}
	}
	slices.Sort(late)
	mark := len(p.pins)
	for i, b := range slices.Compact(late) {
		p.visit(b)
		if i%p.over == p.over-1 {
			p.unpin(mark)
		}
	}
	p.unpin(mark)
}

// visit looks a block up, and reads it if it is not cached. It returns whether the block stays.
func (p *trialPlay) visit(b uint32) bool {
	if f, _, ok := p.cache.PinLocked(uint64(b)); ok {
		p.pins = append(p.pins, f)
		return true
	}
	p.Reads++
	if len(p.pins) < p.share {
		if f, ok := p.cache.ClaimLocked(uint64(b), nil); ok {
			p.pins = append(p.pins, f)
			return true
		}
	}
	return false
}

// unpin unpins what was pinned after the first mark pins.
func (p *trialPlay) unpin(mark int) {
	p.cache.Unpin(p.pins[mark:])
	p.pins = p.pins[:mark]
}

// drawn adds the blocks that entries of a hub are drawn from.
func (p *trialPlay) drawn(late []uint32, l *triedList, draws int) []uint32 {
	n := uint32(l.blocks)
	if uint64(draws) >= 4*uint64(n) { // nearly all of them
		for k := range n {
			late = append(late, l.block+k)
		}
		return late
	}
	for range draws {
		late = append(late, l.block+uint32(p.draw.Below(uint64(n))))
	}
	return late
}

// Kept reports whether a neighbor cache of this size is kept in prep/. Whether it is intact shows
// only when it is opened.
func Kept(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	bytes int64) (ok bool, err error) {
	f, err := s.OpenFile(dev, filePath(dir))
	if oserror.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("layout: open the neighbor cache: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = (&Cache{}).readHeader(ctx, s, f, dir,
		Options{CacheBytes: bytes, Compress: true})
	return err == nil, ctx.Err()
}

// Scans returns how many scans of in-lists it takes to make a neighbor cache, and to try one,
// with this many bytes for scores.
func Scans(s *layout.Store, scratchBytes int64) (made, tried int) {
	step := max(uint64(max(scratchBytes, 0))/usePerNode, rangeNodesMin)
	tried = int((layout.CountLists(s.Meta(), layout.In) + step - 1) / step)
	if made = tried + 1; tried > 1 {
		made = 2*tried + 1
	}
	return made, tried
}
