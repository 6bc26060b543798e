package changeset

import (
	"fmt"
	"math/bits"

	"gdb/internal/mem"
	"gdb/sample/superbatch/runtimefile"
)

// Ranges says how nodes are cut into ranges, so that the next use of each node of a range fits in
// memory and preferably in the processor's cache. It also says how accesses are cut into windows:
// each window is dealt out to the ranges as a whole.
type Ranges struct {
	Shift  int // a range has 1<<Shift nodes
	Count  int // number of ranges
	Window int // accesses of a window
}

const (
	// bytesPerNode is the memory for the next use of a node of a range, in bytes.
	bytesPerNode = 4
	// wordBytesMost bounds the bytes of an access in its part.
	wordBytesMost = 8
	// bytesPerAccess is the memory for each access of a window, in bytes, in the pass that takes
	// most. In that pass, each of rangesAtOnce goroutines reads two groups of parts, to buffers
	// with a quarter to spare, and holds the next uses of one.
	bytesPerAccess = rangesAtOnce * (2*wordBytesMost*5/4 + 4)
	// bytesPerPart is the memory for each range's part of a window, in bytes: the heads and rests
	// of units of two windows that are read, with a quarter to spare, and what is noted of the
	// part.
	bytesPerPart = 2*(runtimefile.RecordHead+runtimefile.UnitBytes)*5/4 + 64

	// partWanted is the number of accesses that a part should have: a record is then about 40 KiB,
	// half way from a single read to streaming. Parts of less than 512 bytes waste space on heads
	// and padding.
	partWanted              = 8192
	windowMost, windowLeast = 1 << 19, 1 << 11
	// cachedNodesLog is the size of a range, as a logarithm, whose next uses, 1 MiB, stay in the
	// processor's cache.
	cachedNodesLog = 18
	// rangesAtOnce is how many ranges are worked on together: each goroutine takes the memory of a
	// range.
	rangesAtOnce = 2
	// countMost bounds the ranges that are made for speed alone; memory may require more.
	countMost = 64
)

// PlanRanges cuts nodes into ranges for passes that may take this many bytes of memory.
func PlanRanges(nodes uint64, memory int64) (Ranges, error) {
	r := Ranges{Shift: max(0, bits.Len64(max(nodes, 1)-1))}
	r.Count = r.counted(nodes)
	for r.Shift > 0 && r.Shift > cachedNodesLog && r.counted(nodes) < countMost ||
		rangesAtOnce*bytesPerNode<<r.Shift > memory/2 && r.Shift > 0 {
		r.Shift--
		r.Count = r.counted(nodes)
	}
	r.Window = min(windowMost, max(1<<16, 1<<bits.Len(uint(r.Count*partWanted-1))))
	for r.Window > windowLeast && r.Memory() > memory {
		r.Window /= 2
	}
	if need := r.Memory(); need > memory {
		return r, fmt.Errorf("superbatch: planning with %d nodes needs %s at least, %s are given: "+
			"raise --memory", nodes, mem.FormatSize(need), mem.FormatSize(memory))
	}
	return r, nil
}

func (r Ranges) counted(nodes uint64) int { return int((max(nodes, 1)-1)>>r.Shift) + 1 }

// Memory returns the bytes that the passes take.
func (r Ranges) Memory() int64 {
	return rangesAtOnce*bytesPerNode<<r.Shift + bytesPerAccess*int64(r.Window) +
		bytesPerPart*int64(r.Count)
}

// wordBytes returns the bytes of an access in its part: its number in the window, and above it the
// number of its node in the range.
func (r Ranges) wordBytes() int { return max(1, (r.numberBits()+r.Shift+7)/8) }

// numberBits returns how many bits the number of an access in its window takes.
func (r Ranges) numberBits() int { return bits.Len(uint(r.Window - 1)) }
