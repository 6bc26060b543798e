package superbatch

import (
	"fmt"
	"math/bits"

	"gdb/internal/mem"
)

// ranges is how nodes are cut into ranges, so that the next use of each node of a range fits in
// memory.
type ranges struct {
	shift int // a range is 1<<shift nodes
	count int
	block int // most accesses of a range that are held in memory and written as one record
}

const (
	// What a pass takes in memory: for each node of a range its next use, and for each range the
	// accesses of a block, their batches in runs.
	bytesPerNode   = 8
	bytesPerAccess = 8
	bytesPerRun    = 8
	accessesPerRun = 4 // so many on average before a block is written early

	// A block of 8192 accesses is about 30 KiB on disk, half way from one read to streaming; with
	// 256 B each record pays for its head and padding.
	blockMost, blockLeast = 8192, 256
	// cachedNodes is the size of range whose next uses, 4 MiB, stay near the core.
	cachedNodesLog = 19
	// rangesAtOnce are done at a time: more goroutines would each take the memory of a range.
	rangesAtOnce = 2
	// countMost bounds the ranges that are made for the sake of speed alone.
	countMost = 256
)

// blockBytes is the memory of one range's block.
func blockBytes(block int) int64 {
	return int64(block*bytesPerAccess + (block/accessesPerRun+1)*bytesPerRun)
}

// planRanges cuts so many nodes into ranges for passes that may take so many bytes. All ranges'
// blocks are in memory at a time, and the nodes of rangesAtOnce.
func planRanges(nodes uint64, memory int64) (ranges, error) {
	r := ranges{shift: max(0, bits.Len64(max(nodes, 1)-1)), block: blockMost}
	r.count = r.counted(nodes)
	for r.shift > 0 && r.shift > cachedNodesLog && r.counted(nodes) < countMost ||
		rangesAtOnce*bytesPerNode<<r.shift > memory/2 && r.shift > 0 {
		r.shift--
		r.count = r.counted(nodes)
	}
	for r.block > blockLeast && r.blocks() > memory/2 {
		r.block /= 2
	}
	if need := r.memory(); need > memory {
		return r, fmt.Errorf("superbatch: planning with %d nodes needs %s at least, %s are given: "+
			"raise --memory", nodes, mem.FormatSize(need), mem.FormatSize(memory))
	}
	return r, nil
}

func (r ranges) counted(nodes uint64) int { return int((max(nodes, 1)-1)>>r.shift) + 1 }

// blocks is the memory of the blocks of all ranges, and of those that are read at once.
func (r ranges) blocks() int64 {
	return int64(r.count+rangesAtOnce*blocksAtOnce) * blockBytes(r.block)
}

// memory is what the passes take.
func (r ranges) memory() int64 { return rangesAtOnce*bytesPerNode<<r.shift + r.blocks() }
