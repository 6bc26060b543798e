package ivf

import (
	"context"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
)

// blockCache keeps blocks of codes.
type blockCache struct {
	*mem.BlockCache
	x *Index
}

func newBlockCache(x *Index, frames int64, budget *mem.Budget) (*blockCache, error) {
	c, err := mem.NewBlockCache(frames, blockBytes, budget, "blocks of an index of vectors",
		"blocks of an index of vectors")
	if err != nil {
		return nil, err
	}
	return &blockCache{c, x}, nil
}

// most returns how many blocks a search may pin at a time: all, if there is a frame for each.
func (c *blockCache) most() int {
	if int64(c.Len()) >= c.x.shape.blocks() {
		return c.Len()
	}
	return c.Len() / searchesMost
}

// pin pins the frames of some blocks, at most most of them, and reads those that are not in memory.
// It appends the frames to to. The caller unpins them, also after an error.
func (c *blockCache) pin(ctx context.Context, blocks []uint32, to []int32) ([]int32, error) {
	for had := len(to); ; to = to[:had] {
		out, again, err := c.claim(ctx, blocks, to)
		if to = out; err != nil || !again {
			return to, err
		}
		c.Unpin(to[had:])
	}
}

// claim does what pin does. It returns true if another search was reading some of the blocks, and
// failed: then they must be claimed again.
func (c *blockCache) claim(ctx context.Context, blocks []uint32, to []int32) (out []int32,
	again bool, err error) {
	load := mem.NewLoad()
	var waits []*mem.Load
	var reads []blockdev.Request
	var numbers []int64
	var own []int32
	c.Lock()
	for _, b := range blocks {
		f, on, found := c.PinLocked(uint64(b))
		if !found {
			f, found = c.ClaimLocked(uint64(b), load)
			if !found {
				panic("BUG: ivf: searches pin more blocks than there are frames")
			}
			own = append(own, f)
			numbers = append(numbers, int64(b))
			reads = append(reads, blockdev.Request{File: c.x.file.Handle, Buf: c.Data(f),
				Off: c.x.firstBlock() + int64(b)*blockBytes})
		} else if on != nil {
			waits = append(waits, on)
		}
		to = append(to, f)
	}
	c.Unlock()
	if len(own) > 0 {
		err := c.read(ctx, own, reads, numbers)
		c.Loaded(load, own, err != nil)
		if err != nil {
			return to, false, err
		}
	}
	for _, w := range waits {
		select {
		case <-w.Done:
			again = again || w.Failed
		case <-ctx.Done():
			return to, false, ctx.Err()
		}
	}
	return to, again, nil
}

// read reads and verifies blocks into frames.
func (c *blockCache) read(ctx context.Context, frames []int32, reads []blockdev.Request,
	numbers []int64) error {
	if err := c.x.file.Dev.ReadBatch(ctx, reads); err != nil {
		return fmt.Errorf("read %d blocks of %s: %w", len(reads), c.x.file.Path, err)
	}
	for i, f := range frames {
		if err := c.x.verify(numbers[i], c.Data(f)); err != nil {
			return err
		}
	}
	return nil
}
