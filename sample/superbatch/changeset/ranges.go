package changeset

import (
	"fmt"
	"math/bits"

	"gdb/internal/mem"
	"gdb/sample/superbatch/runtimefile"
)

// Ranges is how nodes are cut into ranges, so that the next use of each node of a range fits in
// memory, and near the core if it can be, and how accesses are cut into windows, each of which is
// dealt out to the ranges at once.
type Ranges struct {
	Shift  int // a range is 1<<shift nodes
	Count  int
	Window int // accesses
}

const (
	// bytesPerNode is the memory for the next use of a node of a range.
	bytesPerNode = 4
	// wordBytesMost is what an access takes where it is dealt out.
	wordBytesMost = 8
	// bytesPerAccess is the memory of a window for each access, in the pass that takes most: each
	// of rangesAtOnce goroutines reads two groups of parts, to buffers with a quarter to spare, and
	// makes next uses of one.
	bytesPerAccess = rangesAtOnce * (2*wordBytesMost*5/4 + 4)
	// bytesPerPart is the memory of a window for each range: the heads and rests of units of two
	// windows that are read, with a quarter to spare, and what is noted of the part.
	bytesPerPart = 2*(runtimefile.RecordHead+runtimefile.UnitBytes)*5/4 + 64

	// With 8192 accesses to a part, a record is about 40 KiB, half way from one read to streaming;
	// parts of less than 512 bytes pay for their heads and padding.
	partWanted              = 8192
	windowMost, windowLeast = 1 << 19, 1 << 11
	// cachedNodesLog is the size of range whose next uses, 1 MiB, stay near the core.
	cachedNodesLog = 18
	// rangesAtOnce are done at a time: more goroutines would each take the memory of a range.
	rangesAtOnce = 2
	// countMost bounds the ranges that are made for the sake of speed alone.
	countMost = 64
)

// PlanRanges cuts so many nodes into ranges for passes that may take so many bytes.
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

// Memory is what the passes take.
func (r Ranges) Memory() int64 {
	return rangesAtOnce*bytesPerNode<<r.Shift + bytesPerAccess*int64(r.Window) +
		bytesPerPart*int64(r.Count)
}

// wordBytes is what an access takes where it is dealt out: its number in the window, and above it
// that of its node in the range.
func (r Ranges) wordBytes() int { return max(1, (r.numberBits()+r.Shift+7)/8) }

// numberBits is what the number of an access in the window takes.
func (r Ranges) numberBits() int { return bits.Len(uint(r.Window - 1)) }
