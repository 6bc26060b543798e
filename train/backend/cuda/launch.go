//go:build cuda && cgo && linux

package cuda

import (
	"fmt"

	"gdb/internal/cuda"
	"gdb/train/backend"
)

const (
	// blockThreads is the threads of a block: Threads of the kernels.
	blockThreads = 256
	// blocksMost bounds the blocks of a launch. Threads share more work than there is of them.
	blocksMost = 1 << 14
	// longBlocks bounds the blocks for long lists: about as many as a large device has at once.
	longBlocks = 1 << 10
	// warpThreads are the threads of a warp.
	warpThreads = 32
)

// launch queues a kernel with at least one block and about so many threads, of which there is
// nothing to do for none. Arguments have 8 bytes each: see the kernels.
func (g *gpu) launch(name string, threads int, args ...any) {
	if threads <= 0 || g.err != nil {
		return
	}
	words := make([]cuda.Argument, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case uint64:
			words[i] = cuda.Argument(a)
		case int:
			words[i] = cuda.Int(a)
		case float64:
			words[i] = cuda.Float(a)
		case float32:
			words[i] = cuda.Float(float64(a))
		case bool:
			if a {
				words[i] = 1
			}
		case backend.Tensor:
			words[i] = cuda.Argument(g.at(a))
		default:
			panic(fmt.Sprintf("BUG: argument %d of %s is a %T", i, name, a))
		}
	}
	if g.err != nil { // a tensor could not be copied
		return
	}
	g.queue.kernel(name, blocksFor(threads), words...)
}

// blocksFor is how many blocks have about so many threads.
func blocksFor(threads int) int {
	return min(blocksMost, (threads+blockThreads-1)/blockThreads)
}

// fours says whether rows of so many columns may be read four values at a time: where all matrices
// are at multiples of as many.
func (g *gpu) fours(cols int, ts ...backend.Tensor) bool {
	if cols%4 != 0 {
		return false
	}
	for _, t := range ts {
		if g.at(t)%uint64(4*width(t)) != 0 {
			return false
		}
	}
	return true
}

// sumThreads is how many threads sums over lists keep busy, of rows of so many columns: a block for
// each 32 pieces of a row of a long list too, as far as longBlocks of them are kept busy.
func sumThreads(lists, cols int, fours bool, longs int) int {
	pieces := cols
	if fours {
		pieces /= 4
	}
	chunks := (pieces + warpThreads - 1) / warpThreads
	return max(lists*pieces, min(longs*chunks, longBlocks)*blockThreads)
}
