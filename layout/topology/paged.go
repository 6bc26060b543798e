package topology

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/internal/trace"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/neighborcache"
)

// paged reads lists through a cache of blocks, and some lists from a neighbor cache. It holds the
// index in memory, 8 bytes per block, and the caches.
type paged struct {
	f      *listfile.File
	dir    layout.Direction
	ix     *listfile.Index
	nbrs   *neighborcache.Cache // nil if there is none
	cache  *mem.BlockCache
	budget *mem.Budget
	types  int                 // number of edge types
	made   neighborcache.Stats // statistics of how nbrs was made

	asked, found atomic.Uint64 // requests to nbrs, and those it answered

	sessions                 atomic.Int64
	hits, misses, blocksRead atomic.Uint64
}

func openPaged(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	opt Options) (*paged, error) {
	f, err := listfile.Open(ctx, s, dev, dir)
	if err != nil {
		return nil, err
	}
	p := &paged{f: f, dir: dir, budget: opt.Budget, types: len(s.Meta().EdgeTypes)}
	if p.ix, err = listfile.LoadIndex(ctx, s, dev, dir, opt.Budget); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	switch {
	case p.ix.Fields != f.Fields || p.ix.Blocks != f.Blocks:
		err = f.Damage(-1, 0, "file has %d blocks of %d bytes, its index tells of %d of %d",
			f.Blocks, f.BlockBytes, p.ix.Blocks, p.ix.BlockBytes)
	case p.ix.Edges != s.Meta().Edges:
		err = f.Damage(-1, 0, "the index tells of %d edges, the store has %d", p.ix.Edges,
			s.Meta().Edges)
	case opt.NeighborBytes >= neighborcache.Least:
		// It comes before the block cache, whose memory it borrows while it is made.
		p.nbrs, p.made, err = neighborcache.Open(ctx, s, dev, dir, p.ix, neighborcache.Options{
			CacheBytes: opt.NeighborBytes, Compress: !opt.NeighborsRaw,
			ScratchBytes: neighborcache.ScratchBytes(opt.Budget, opt.NeighborBytes, opt.CacheBytes),
			Budget:       opt.Budget})
	}
	if err == nil {
		// A cache larger than the file would be of no use.
		size := min(opt.CacheBytes, max(f.Blocks, 1)*int64(f.BlockBytes))
		p.cache, err = mem.NewBlockCache(max(size/int64(f.BlockBytes), 1), f.BlockBytes, opt.Budget,
			"tables of the block cache", "block cache")
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Nodes returns the number of lists.
func (p *paged) Nodes() uint64 { return p.f.Lists }

// Edges returns the number of entries.
func (p *paged) Edges() uint64 { return p.ix.Edges }

// NewSession returns a session for one goroutine.
func (p *paged) NewSession() Session {
	p.sessions.Add(1)
	return &pagedSession{p: p, count: mem.NewAccount(p.budget, "frontier of the paged reader")}
}

// Stats returns the counters of blocks and of the neighbor cache.
func (p *paged) Stats() Stats {
	read := p.blocksRead.Load()
	st := Stats{Kind: "paged",
		Bytes: p.ix.Bytes() + p.cache.Bytes(),
		Hits:  p.hits.Load(), Misses: p.misses.Load(), BlocksRead: read,
		BytesRead: read * uint64(p.f.BlockBytes), Neighbors: p.made}
	if c, n := p.nbrs, &st.Neighbors; c != nil {
		c.Held(n)
		n.Requests, n.Hits = p.asked.Load(), p.found.Load()
		st.Bytes += n.Bytes
	}
	return st
}

// CachedBlocks calls fn with the first node of each block that the cache of a paged reader holds
// now, in no order. For other readers it does nothing.
func CachedBlocks(t Reader, fn func(first layout.NodeID)) {
	lists, numbers := ByList(t)
	p, ok := lists.(*paged)
	if !ok {
		return
	}
	p.cache.Each(func(block uint64) {
		first := p.ix.First(int(block))
		if numbers != nil {
			first, _ = numbers.Node(first)
		}
		fn(first)
	})
}

// Close frees the caches and closes the file. All sessions must have been released.
func (p *paged) Close() error {
	err := p.f.Close()
	if p.ix != nil {
		err = errors.Join(err, p.ix.Free())
	}
	if p.nbrs != nil {
		err = errors.Join(err, p.nbrs.Free())
	}
	if p.cache != nil {
		err = errors.Join(err, p.cache.Free())
	}
	return err
}

// fetchMost bounds the blocks that are read in one batch: the context is checked between batches.
const fetchMost = 1 << 14

// held is a block that a session can read for now.
type held struct {
	data  []byte // nil once its overflow buffer serves another block
	frame int32  // -1 for an overflow buffer
}

// fetcher makes blocks readable for one session.
type fetcher struct {
	p      *paged
	pins   []int32 // frames that the session has pinned
	over   *mem.Arena
	reqs   []blockdev.Request // overflow buffers, or nil until they are needed
	blocks []int64            // number of the block of each request, from 1
	claims []int32            // frames that this fetch fills
	waits  []*mem.Load        // loads of other sessions to wait for
}

// fetch makes blocks readable, from the first on: as many as cache and overflow buffers have room
// for, at least one. It returns how many. blocks are counted from 0 and must ascend without
// repeats. Those that are not cached are read in one batch and verified. Frames stay pinned until
// unpin; overflow buffers are valid until the next fetch.
func (s *fetcher) fetch(ctx context.Context, blocks []uint32, out []held) (int, error) {
	blocks = blocks[:min(len(blocks), fetchMost)]
	for {
		mark := len(s.pins)
		retry := false
		n, err := s.claim(ctx, blocks, out)
		if err == nil {
			retry, err = s.fill(ctx)
		}
		if err == nil && !retry {
			return n, nil
		}
		s.unpin(mark)
		if err != nil {
			return 0, err
		}
	}
}

// claim pins cached blocks, takes frames and buffers for the others, and prepares their reads.
func (s *fetcher) claim(ctx context.Context, blocks []uint32, out []held) (n int, err error) {
	s.reqs, s.blocks = s.reqs[:0], s.blocks[:0]
	s.claims, s.waits = s.claims[:0], s.waits[:0]
	p, c := s.p, s.p.cache
	own, over := mem.NewLoad(), 0
	c.Lock()
	defer c.Unlock()
	share := c.Share(int(p.sessions.Load()))
	hits := uint64(0)
	for n < len(blocks) {
		b := blocks[n]
		if f, on, ok := c.PinLocked(uint64(b)); ok {
			hits++
			s.pins = append(s.pins, f)
			out[n] = held{data: c.Data(f), frame: f}
			if on != nil {
				s.waits = append(s.waits, on)
			}
			n++
			continue
		}
		h, err := s.placeLocked(b, own, share, over)
		if err != nil {
			return 0, s.abandonLocked(own, err)
		}
		if h.data == nil {
			break
		}
		if h.frame < 0 {
			over++
		}
		out[n] = h
		n++
		s.reqs = append(s.reqs, blockdev.Request{File: p.f.Handle, Buf: h.data,
			Off: listfile.BlockOffset(int64(b)+1, p.f.BlockBytes)})
		s.blocks = append(s.blocks, int64(b)+1)
	}
	if len(s.claims) > 0 { // last, since fill closes it before it waits
		s.waits = append(s.waits, own) // the last: fill closes it before it waits
	}
	p.hits.Add(hits)
	trace.From(ctx).Hit(hits)
	p.misses.Add(uint64(len(s.reqs)))
	return n, nil
}

// placeLocked finds room for a block that is not cached: a frame, or overflow buffer number over.
// Its data is nil if there is no room.
func (s *fetcher) placeLocked(b uint32, own *mem.Load, share, over int) (held, error) {
	c := s.p.cache
	if len(s.pins) < share {
		if f, ok := c.ClaimLocked(uint64(b), own); ok {
			s.pins = append(s.pins, f)
			s.claims = append(s.claims, f)
			return held{data: c.Data(f), frame: f}, nil
		}
	}
	size := c.BlockBytes()
	if s.over == nil {
		var err error
		s.over, err = mem.NewArena(s.p.budget, "blocks beyond the block cache",
			int64(mem.BlockOverflow(size)*size))
		if err != nil {
			return held{}, err
		}
	}
	if buf := s.over.Bytes(); (over+1)*size <= len(buf) {
		return held{data: buf[over*size : (over+1)*size : (over+1)*size], frame: -1}, nil
	}
	return held{frame: -1}, nil
}

// abandonLocked undoes a claim that failed half way, and returns err.
func (s *fetcher) abandonLocked(own *mem.Load, err error) error {
	s.p.cache.LoadedLocked(own, s.claims, true)
	s.claims = s.claims[:0]
	return err
}

// fill reads and verifies what was claimed, then waits for blocks that other sessions are reading.
// It returns true if one of these failed, so that blocks must be claimed again.
func (s *fetcher) fill(ctx context.Context) (retry bool, err error) {
	if len(s.reqs) > 0 {
		err = s.read(ctx)
	}
	waits := s.waits
	if len(s.claims) > 0 {
		own := waits[len(waits)-1]
		waits = waits[:len(waits)-1]
		s.p.cache.Loaded(own, s.claims, err != nil)
	}
	if err != nil {
		return false, err
	}
	for _, l := range waits {
		select {
		case <-l.Done:
			retry = retry || l.Failed
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return retry, nil
}

func (s *fetcher) read(ctx context.Context) error {
	p := s.p
	if err := p.f.Dev.ReadBatch(ctx, s.reqs); err != nil {
		return fmt.Errorf("layout: read %d blocks of %s: %w", len(s.reqs), p.f.Path, err)
	}
	p.blocksRead.Add(uint64(len(s.reqs)))
	var steps pace.Steps
	for i, n := range s.blocks {
		if err := steps.Took(ctx, pace.Block); err != nil {
			return err
		}
		b := s.reqs[i].Buf
		err := listfile.VerifyBlock(p.f.Seed, n, b)
		if err == nil {
			var k listfile.Block
			if k, err = s.parse(uint32(n-1), b); err == nil {
				err = k.CheckIDs(p.f.Nodes)
			}
		}
		if err != nil {
			return p.f.DamageBlock(n, err)
		}
	}
	return nil
}

// parse parses block n, counted from 0, which was verified, and checks that it begins where the
// index says.
func (s *fetcher) parse(n uint32, b []byte) (listfile.Block, error) {
	k, err := listfile.ParseBlock(&s.p.f.Shape, b)
	if want := s.p.ix.Keys[n]; err == nil && listfile.Key(k.First, k.Start) != want {
		err = fmt.Errorf("%w begins with node %d at %d, the index says %d at %d", listfile.ErrBlock,
			k.First, k.Start, want>>32, uint32(want))
	}
	return k, err
}

// unpin unpins the frames that were pinned after the first mark ones.
func (s *fetcher) unpin(mark int) {
	s.p.cache.Unpin(s.pins[mark:])
	s.pins = s.pins[:mark]
}

func (s *fetcher) release() {
	s.unpin(0)
	if s.over != nil {
		_ = s.over.Free() // unmapping what was mapped cannot fail
		s.over = nil
	}
}
