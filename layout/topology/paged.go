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

// paged reads lists through a cache of blocks, but for those that a neighbor cache has. In memory
// are the index, 8 bytes per block, and the caches.
type paged struct {
	f      *listfile.File
	dir    layout.Direction
	ix     *listfile.Index
	nbrs   *neighborcache.Cache // nil: none
	cache  *mem.BlockCache
	budget *mem.Budget
	types  int                 // that edges may have
	made   neighborcache.Stats // how nbrs came to be

	asked, found atomic.Uint64 // of nbrs

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
		// Before the block cache, whose memory it borrows.
		p.nbrs, p.made, err = neighborcache.Open(ctx, s, dev, dir, p.ix, neighborcache.Options{
			CacheBytes: opt.NeighborBytes, Compress: !opt.NeighborsRaw,
			ScratchBytes: neighborcache.ScratchBytes(opt.Budget, opt.NeighborBytes, opt.CacheBytes),
			Budget:       opt.Budget})
	}
	if err == nil {
		// A cache larger than the file has no use.
		size := min(opt.CacheBytes, max(f.Blocks, 1)*int64(f.BlockBytes))
		p.cache, err = mem.NewBlockCache(max(size/int64(f.BlockBytes), 1), f.BlockBytes, opt.Budget,
			"tables of the block cache", "block cache")
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Nodes is the number of lists.
func (p *paged) Nodes() uint64 { return p.f.Nodes }

// Edges is the number of entries.
func (p *paged) Edges() uint64 { return p.ix.Edges }

// NewSession returns a reader for one goroutine.
func (p *paged) NewSession() Session {
	p.sessions.Add(1)
	return &pagedSession{p: p, count: mem.NewAccount(p.budget, "frontier of the paged reader")}
}

// Stats counts blocks.
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
// now, in no order. A resident reader has none.
func CachedBlocks(t Reader, fn func(first layout.NodeID)) {
	p, ok := t.(*paged)
	if !ok {
		return
	}
	p.cache.Each(func(block uint64) { fn(p.ix.First(int(block))) })
}

// Close frees the cache and closes the file; all sessions were released before.
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

// fetchMost bounds the blocks of one batch of reads: the session looks at its context between two.
const fetchMost = 1 << 14

// held is a block that a session can read now.
type held struct {
	data  []byte // nil once an overflow buffer was used for another block
	frame int32  // -1: an overflow buffer
}

// fetcher makes blocks readable for one session.
type fetcher struct {
	p      *paged
	pins   []int32 // frames that the session has pinned
	over   *mem.Arena
	reqs   []blockdev.Request
	blocks []int64 // the number of the block of each request, from 1
	claims []int32 // frames that this fetch fills
	waits  []*mem.Load
}

// fetch makes blocks readable, from the first on, as many as cache and overflow buffers have room
// for; how many is returned, at least one of them. blocks, counted from 0,
// ascend and are not repeated. All that
// are not in the cache are read in one batch and verified. Frames stay pinned until unpin;
// overflow buffers hold until the next fetch.
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

// claim pins what is cached, takes frames and buffers for what is not, and prepares the reads.
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
	if len(s.claims) > 0 {
		s.waits = append(s.waits, own) // the last: fill closes it before it waits
	}
	p.hits.Add(hits)
	trace.From(ctx).Hit(hits)
	p.misses.Add(uint64(len(s.reqs)))
	return n, nil
}

// placeLocked finds room for a block that is not cached: a frame, or overflow buffer number over.
// The data is nil if there is none.
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

// abandonLocked undoes a claim that failed half way.
func (s *fetcher) abandonLocked(own *mem.Load, err error) error {
	s.p.cache.LoadedLocked(own, s.claims, true)
	s.claims = s.claims[:0]
	return err
}

// fill reads and verifies what was claimed, and then waits for what other sessions are reading.
// It returns true if one of them failed: then the blocks have to be claimed again.
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
			return p.f.Damage(n, s.reqs[i].Off, "%v", err)
		}
	}
	return nil
}

// parse views block n, counted from 0, that was verified before, and checks that it is where the
// index says.
func (s *fetcher) parse(n uint32, b []byte) (listfile.Block, error) {
	k, err := listfile.ParseBlock(&s.p.f.Shape, b)
	if want := s.p.ix.Keys[n]; err == nil && listfile.Key(k.First, k.Start) != want {
		err = fmt.Errorf("%w begins with node %d at %d, the index says %d at %d", listfile.ErrBlock,
			k.First, k.Start, want>>32, uint32(want))
	}
	return k, err
}

// unpin gives back the frames pinned since there were mark of them.
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
