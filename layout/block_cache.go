package layout

import (
	"sync"

	"gdb/internal/mem"
)

// frameBytes is what a frame of the cache takes besides its block: the frame itself and its entry
// in the table.
const frameBytes = 64

// blockCache keeps blocks of one file in a fixed number of frames. A frame that a session has
// pinned stays; among the others the one that was not used since the clock's hand passed last goes
// first (CLOCK, second chance). All methods but those with Locked may be called from any
// goroutine.
type blockCache struct {
	arena      *mem.Arena
	budget     *mem.Budget // what the tables are counted in; may be nil
	blockBytes int

	mu struct {
		sync.Mutex
		table  map[uint32]int32 // block to frame
		frames []frame
		pinned int // frames with pins
		hand   int
	}
}

type frame struct {
	block  uint32
	pins   int32
	used   bool  // in the table
	recent bool  // used since the hand passed
	load   *load // the read that fills it, nil once it is full
}

// load is one batch of reads; other sessions that find its frames wait for it.
type load struct {
	done   chan struct{}
	failed bool // valid once done is closed
}

func newBlockCache(cacheBytes int64, blockBytes int, budget *mem.Budget) (*blockCache, error) {
	n := max(cacheBytes/int64(blockBytes), 1)
	if budget != nil {
		if err := budget.Reserve("tables of the block cache", n*frameBytes); err != nil {
			return nil, err
		}
	}
	arena, err := mem.NewArena(budget, "block cache", n*int64(blockBytes))
	if err != nil {
		if budget != nil {
			budget.Release(n * frameBytes)
		}
		return nil, err
	}
	c := &blockCache{arena: arena, budget: budget, blockBytes: blockBytes}
	c.mu.frames = make([]frame, n)
	c.mu.table = make(map[uint32]int32)
	return c, nil
}

func (c *blockCache) free() error {
	if c.budget != nil {
		c.budget.Release(int64(len(c.mu.frames)) * frameBytes)
	}
	return c.arena.Free()
}

// data is the block of a frame.
func (c *blockCache) data(f int32) []byte {
	at := int(f) * c.blockBytes
	return c.arena.Bytes()[at : at+c.blockBytes : at+c.blockBytes]
}

// pinLocked pins the frame of a block that is in the cache or on its way.
func (c *blockCache) pinLocked(block uint32) (f int32, on *load, ok bool) {
	f, ok = c.mu.table[block]
	if !ok {
		return -1, nil, false
	}
	fr := &c.mu.frames[f]
	fr.recent = true
	c.addPinLocked(fr)
	return f, fr.load, true
}

func (c *blockCache) addPinLocked(fr *frame) {
	if fr.pins == 0 {
		c.mu.pinned++
	}
	fr.pins++
}

// claimLocked takes a frame for a block that l will read, pinned; false if all are pinned.
func (c *blockCache) claimLocked(block uint32, l *load) (int32, bool) {
	if c.mu.pinned == len(c.mu.frames) {
		return -1, false
	}
	for {
		f := c.mu.hand
		if c.mu.hand++; c.mu.hand == len(c.mu.frames) {
			c.mu.hand = 0
		}
		fr := &c.mu.frames[f]
		if fr.pins > 0 {
			continue
		}
		if fr.used && fr.recent {
			fr.recent = false
			continue
		}
		if fr.used {
			delete(c.mu.table, fr.block)
		}
		*fr = frame{block: block, used: true, load: l}
		c.addPinLocked(fr)
		c.mu.table[block] = int32(f)
		return int32(f), true
	}
}

// unpin takes one pin off each frame.
func (c *blockCache) unpin(frames []int32) {
	if len(frames) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range frames {
		fr := &c.mu.frames[f]
		if fr.pins--; fr.pins == 0 {
			c.mu.pinned--
		}
	}
}

// loaded ends the read l of frames. If it failed they leave the table, so that whoever waited
// reads them himself and gets his own error.
func (c *blockCache) loaded(l *load, frames []int32, failed bool) {
	c.mu.Lock()
	for _, f := range frames {
		fr := &c.mu.frames[f]
		fr.load = nil
		if failed {
			delete(c.mu.table, fr.block)
			fr.used = false
		}
	}
	l.failed = failed
	c.mu.Unlock()
	close(l.done)
}
