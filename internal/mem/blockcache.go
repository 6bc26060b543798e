package mem

import (
	"sync"
)

// FrameBytes is what a frame takes besides its block, in bytes: the frame and its entry in the
// table.
const FrameBytes = 64

// Frames are the frames of a cache. A pinned frame stays. Among the others, one that was not used
// since the clock's hand last passed is replaced first (CLOCK, second chance). Any goroutine may
// call all methods; those with Locked in their names must be called between Lock and Unlock.
type Frames struct {
	budget *Budget // what the frames are counted in; may be nil

	mu struct {
		sync.Mutex
		table  map[uint64]int32 // block to frame
		frames []frame
		pinned int // number of frames with pins
		hand   int
	}
}

type frame struct {
	block  uint64
	pins   int32
	used   bool  // whether it is in the table
	recent bool  // used since the hand passed
	load   *Load // the read that fills it, nil once it is full
}

// Load is one batch of reads; others that find its frames wait for it.
type Load struct {
	Done   chan struct{}
	Failed bool // valid once Done is closed
}

// NewLoad returns a load that is not done.
func NewLoad() *Load { return &Load{Done: make(chan struct{})} }

// NewFrames returns n empty frames. what names them in the error if the budget has no room.
func NewFrames(n int64, budget *Budget, what string) (*Frames, error) {
	if budget != nil {
		if err := budget.Reserve(what, n*FrameBytes); err != nil {
			return nil, err
		}
	}
	c := &Frames{budget: budget}
	c.mu.frames = make([]frame, n)
	c.mu.table = make(map[uint64]int32)
	return c, nil
}

// Release gives the memory back to the budget.
func (c *Frames) Release() {
	if c.budget != nil {
		c.budget.Release(int64(len(c.mu.frames)) * FrameBytes)
	}
}

// Len returns the number of frames.
func (c *Frames) Len() int { return len(c.mu.frames) }

// Share returns how many frames one of this many sessions may take, so that others can go on too.
func (c *Frames) Share(sessions int) int { return max(len(c.mu.frames)/max(sessions, 1), 1) }

// overflowBytes is what a session takes for blocks when they do not fit in the cache: 128 reads of
// 4 KiB keep a disk busy.
const (
	overflowBytes = 512 << 10
	overflowLeast = 4 // blocks
)

// BlockOverflow returns how many blocks a session reads together besides its share of the frames.
func BlockOverflow(blockBytes int) int { return max(overflowBytes/blockBytes, overflowLeast) }

// Lock locks the cache. Callers hold the lock while they look up and claim frames.
func (c *Frames) Lock() { c.mu.Lock() }

// Unlock unlocks the cache.
func (c *Frames) Unlock() { c.mu.Unlock() }

// Each calls fn with every block that is in a frame, in no order.
func (c *Frames) Each(fn func(block uint64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.mu.frames {
		if f := &c.mu.frames[i]; f.used && f.load == nil {
			fn(f.block)
		}
	}
}

// PinLocked pins the frame of a block that is in the cache or being read. If it is being read, on
// is its load.
func (c *Frames) PinLocked(block uint64) (f int32, on *Load, ok bool) {
	f, ok = c.mu.table[block]
	if !ok {
		return -1, nil, false
	}
	fr := &c.mu.frames[f]
	fr.recent = true
	c.addPinLocked(fr)
	return f, fr.load, true
}

func (c *Frames) addPinLocked(fr *frame) {
	if fr.pins == 0 {
		c.mu.pinned++
	}
	fr.pins++
}

// ClaimLocked takes a frame, pinned, for a block that load l will read. It returns false if all
// frames are pinned. If l is nil, the caller fills the frame before Unlock.
func (c *Frames) ClaimLocked(block uint64, l *Load) (int32, bool) {
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

// UnpinLocked removes one pin from a frame.
func (c *Frames) UnpinLocked(f int32) {
	fr := &c.mu.frames[f]
	if fr.pins--; fr.pins == 0 {
		c.mu.pinned--
	}
}

// Unpin removes one pin from each of the frames.
func (c *Frames) Unpin(frames []int32) {
	if len(frames) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range frames {
		c.UnpinLocked(f)
	}
}

// Loaded ends the load of frames. If it failed they leave the table, so that those who waited read
// the blocks themselves and get their own errors.
func (c *Frames) Loaded(l *Load, frames []int32, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.LoadedLocked(l, frames, failed)
}

// LoadedLocked does what Loaded does.
func (c *Frames) LoadedLocked(l *Load, frames []int32, failed bool) {
	for _, f := range frames {
		fr := &c.mu.frames[f]
		fr.load = nil
		if failed {
			delete(c.mu.table, fr.block)
			fr.used = false
		}
	}
	l.Failed = failed
	close(l.Done)
}

// BlockCache is Frames with the memory of their blocks.
type BlockCache struct {
	*Frames
	arena      *Arena
	blockBytes int
}

// NewBlockCache returns a cache with n frames of blockBytes. tables and blocks name its parts in
// the error if the budget has no room. The caller calls Free.
func NewBlockCache(n int64, blockBytes int, budget *Budget,
	tables, blocks string) (*BlockCache, error) {
	frames, err := NewFrames(n, budget, tables)
	if err != nil {
		return nil, err
	}
	arena, err := NewArena(budget, blocks, n*int64(blockBytes))
	if err != nil {
		frames.Release()
		return nil, err
	}
	return &BlockCache{Frames: frames, arena: arena, blockBytes: blockBytes}, nil
}

// Free frees the memory. Nobody may use the cache any more.
func (c *BlockCache) Free() error {
	c.Release()
	return c.arena.Free()
}

// Bytes returns the memory held, in bytes.
func (c *BlockCache) Bytes() int64 { return int64(c.Len()) * int64(FrameBytes+c.blockBytes) }

// BlockBytes returns the size of a block.
func (c *BlockCache) BlockBytes() int { return c.blockBytes }

// Data returns the block of a frame, which the caller must have pinned.
func (c *BlockCache) Data(f int32) []byte {
	at := int(f) * c.blockBytes
	return c.arena.Bytes()[at : at+c.blockBytes : at+c.blockBytes]
}
