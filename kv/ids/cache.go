package ids

import (
	"errors"
	"sync"

	"gdb/internal/mem"
)

// idFrameBytes is what a frame takes besides its block: itself, and its entry in the table.
const idFrameBytes = 64

// idCache keeps verified blocks of ids/reverse.ids in a fixed number of frames: where names of many
// nodes are asked for in parts, each part needs blocks that the ones before it read. What was not
// asked for since the hand passed last goes first (CLOCK, second chance). Blocks are copied out and
// in, a tenth of a microsecond each, so that nobody holds a frame. A nil cache keeps nothing.
type idCache struct {
	arena  *mem.Arena
	budget *mem.Budget

	mu struct {
		sync.Mutex
		table  map[uint64]int32 // block to frame
		frames []idFrame
		hand   int
	}
}

type idFrame struct {
	block  uint64 // 0, which is the header, in a frame without a block
	recent bool   // asked for since the hand passed
}

func newIDCache(bytes int64, budget *mem.Budget) (*idCache, error) {
	n := bytes / (BlockBytes + idFrameBytes)
	if n < 1 {
		return nil, nil
	}
	if err := budget.Reserve("table of the id cache", n*idFrameBytes); err != nil {
		return nil, err
	}
	arena, err := mem.NewArena(budget, "blocks of the id dictionary", n*BlockBytes)
	if err != nil {
		budget.Release(n * idFrameBytes)
		return nil, err
	}
	c := &idCache{arena: arena, budget: budget}
	c.mu.table, c.mu.frames = make(map[uint64]int32), make([]idFrame, n)
	return c, nil
}

func (c *idCache) free() error {
	if c == nil {
		return nil
	}
	c.budget.Release(int64(len(c.mu.frames)) * idFrameBytes)
	return c.arena.Free()
}

// data is the block of a frame.
func (c *idCache) data(f int32) []byte {
	at := int(f) * BlockBytes
	return c.arena.Bytes()[at : at+BlockBytes]
}

// get copies those of blocks that are kept to their places in buf and returns the others' places.
func (c *idCache) get(blocks []uint64, buf []byte, missed []int) []int {
	if c == nil {
		for i := range blocks {
			missed = append(missed, i)
		}
		return missed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, b := range blocks {
		f, ok := c.mu.table[b]
		if !ok {
			missed = append(missed, i)
			continue
		}
		c.mu.frames[f].recent = true
		copy(buf[i*BlockBytes:(i+1)*BlockBytes], c.data(f))
	}
	return missed
}

// put keeps blocks, by their places in buf.
func (c *idCache) put(blocks []uint64, buf []byte, places []int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range places {
		if _, ok := c.mu.table[blocks[i]]; ok {
			continue // another lookup read it too
		}
		f := c.takeLocked()
		c.mu.frames[f] = idFrame{block: blocks[i]}
		c.mu.table[blocks[i]] = f
		copy(c.data(f), buf[i*BlockBytes:(i+1)*BlockBytes])
	}
}

// takeLocked empties a frame.
func (c *idCache) takeLocked() int32 {
	for {
		f := c.mu.hand
		if c.mu.hand++; c.mu.hand == len(c.mu.frames) {
			c.mu.hand = 0
		}
		fr := &c.mu.frames[f]
		if fr.recent {
			fr.recent = false
			continue
		}
		if fr.block != 0 {
			delete(c.mu.table, fr.block)
		}
		return int32(f)
	}
}

// Cache implements Cacher.
func (d *dictionary) Cache(bytes int64, budget *mem.Budget) error {
	if d.reverse.cache != nil {
		return errors.New("kv: these ids have a cache already")
	}
	all := int64(d.reverse.f.data) * (BlockBytes + idFrameBytes)
	c, err := newIDCache(min(bytes, all), budget)
	d.reverse.cache = c
	return err
}

// CacheStats implements Cacher.
func (d *dictionary) CacheStats() CacheStats {
	r := d.reverse
	s := CacheStats{Hits: r.hits.Load(), Misses: r.f.reads.Load()}
	if r.cache != nil {
		s.Bytes = int64(len(r.cache.mu.frames)) * (BlockBytes + idFrameBytes)
	}
	return s
}
