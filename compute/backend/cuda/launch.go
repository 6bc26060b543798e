//go:build cuda && cgo && linux

package cuda

import (
	"fmt"
	"slices"

	"gdb/compute/backend"
	"gdb/internal/cuda"
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

// launch queues a kernel of about this number of threads, in whole blocks; without threads it does
// nothing. Arguments have 8 bytes each: see the kernels.
func (g *gpu) launch(name string, threads int, args ...any) {
	if threads <= 0 || g.err != nil {
		return
	}
	words := make([]cuda.Argument, 0, len(args)+2)
	for i, a := range args {
		switch a := a.(type) {
		case uint64:
			words = append(words, cuda.Argument(a))
		case int:
			words = append(words, cuda.Int(a))
		case float64:
			words = append(words, cuda.Float(a))
		case float32:
			words = append(words, cuda.Float(float64(a)))
		case bool:
			words = append(words, boolWord(a))
		case backend.Tensor:
			words = append(words, cuda.Argument(g.at(a)))
		case longLists: // three arguments
			words = append(words, cuda.Argument(a.at), cuda.Argument(a.parts), boolWord(a.join))
		default:
			panic(fmt.Sprintf("BUG: argument %d of %s is a %T", i, name, a))
		}
	}
	if g.err != nil { // a tensor could not be copied
		return
	}
	g.queue.kernel(name, blocksFor(threads), words...)
}

// blocksFor returns the number of blocks that have about this number of threads.
func blocksFor(threads int) int {
	return min(blocksMost, (threads+blockThreads-1)/blockThreads)
}

// boolWord returns 1 for true.
func boolWord(b bool) (word cuda.Argument) {
	if b {
		word = 1
	}
	return word
}

// summed says over which lists a kernel sums, into rows of how many columns.
type summed struct {
	lists, cols int
	wide        int // values that are read at once, 0 for one
	longs       longLists
	words       int // that are written of a part for each column
}

// launchSums queues a kernel that sums over lists, one of whose arguments is s.longs, and where
// there may be hubs a second time, to add up the sums of their parts.
func (g *gpu) launchSums(name string, s summed, args ...any) {
	at := slices.IndexFunc(args, func(a any) bool { return a == any(s.longs) })
	longs := s.longs
	longs.parts = g.takeFloats(longs.mayParts * s.cols * s.words)
	args[at] = longs
	g.launch(name, sumThreads(s.lists, s.cols, s.wide, longs.mayLong), args...)
	if longs.mayHubs > 0 && s.lists > 0 {
		longs.join = true
		args[at] = longs
		g.launch(name, longs.mayHubs*pieces(s.cols, s.wide), args...)
	}
}

// fours reports whether rows of cols values may be read four values at a time: all matrices must
// begin at multiples of four values.
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

// wide returns how many values of rows of cols are read at once: 16 bytes, or 8 of bfloat16, where
// all matrices begin at multiples of these, or 0 for one value.
func (g *gpu) wide(cols int, rows backend.Tensor, others ...backend.Tensor) int {
	all := append([]backend.Tensor{rows}, others...)
	eights := rows.Half && cols%8 == 0
	for _, t := range all {
		eights = eights && g.at(t)%16 == 0
	}
	switch {
	case eights:
		return 8
	case g.fours(cols, all...):
		return 4
	}
	return 0
}

// sumThreads returns how many threads sums over lists of rows of cols values keep busy. A long list
// also has a block for each 32 pieces of its row, up to longBlocks blocks in all.
func sumThreads(lists, cols, wide, longs int) int {
	n := pieces(cols, wide)
	chunks := (n + warpThreads - 1) / warpThreads
	return max(lists*n, min(longs*chunks, longBlocks)*blockThreads)
}

// pieces returns how many threads share a row of cols values.
func pieces(cols, wide int) int { return cols / max(1, wide) }
