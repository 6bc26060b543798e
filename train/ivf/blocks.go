package ivf

import (
	"context"

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
		err := c.x.file.Dev.ReadBatch(ctx, reads)
		for i, f := range own {
			if err == nil {
				err = c.x.verify(numbers[i], c.Data(f))
			}
		}
		c.Loaded(load, own, err != nil)
		if err != nil {
			return to, err
		}
	}
	for _, w := range waits {
		<-w.Done
		if w.Failed {
			return to, c.x.file.Damage(-1, 0, "another search could not read it: ask again")
		}
	}
	return to, nil
}
