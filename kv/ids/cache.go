package ids

import (
	"errors"

	"gdb/internal/mem"
)

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
