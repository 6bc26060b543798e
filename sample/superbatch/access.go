package superbatch

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"gdb/internal/mem"
	"gdb/sample"
)

// accesses deals the accesses of a superbatch out by node range and writes them to a file, in about
// 5 bytes per access.
//
// A superbatch counts its turns: turn 0 is the rows that the cache holds at the start, in the order
// of slots, and turns 1 … S are its batches. An access is a node of a turn, in the order of the
// batch; all accesses are numbered through, from 0. As a use, an access is one number too: its
// turn, above its position in the turn (see useBits).
//
// accesses are collected until a window is full, then written as one part per range, in order. A
// part holds a word of wordBytes bytes per access: the access's number in the window, and above it
// the node's number in the range. 8 bytes follow the last word, so that each word can be read as 8
// bytes.
type accesses struct {
	ranges
	File   *fileWriter
	arena  *mem.Arena
	memory *mem.Arena // memory that the first records go to instead of the file

	nodes []uint32 // nodes accessed in the current window
	ends  []uint32 // for each part, where its next word goes
	words []byte   // words of all parts of the window

	refs   []ref       // records of parts, window by window; zero if without accesses
	Starts []uint32    // the number of each turn's first access
	most   int         // largest number of accesses of a batch
	Total  uint64      // number of accesses so far
	held   mem.Account // refs and starts
}

// accessesMost bounds the accesses of a superbatch, so that the number after the last still fits.
const accessesMost = math.MaxUint32 - 1

// newAccesses starts the file of a superbatch's accesses, of which the first memory bytes stay in
// memory. The caller calls Free.
func newAccesses(id identity, r ranges, memory int64, budget *mem.Budget) (*accesses,
	error) {
	words := r.Window*r.wordBytes() + 8*r.Count
	arena, err := mem.NewArena(budget, "superbatch accesses",
		4*int64(r.Window)+4*int64(r.Count)+int64(words))
	if err != nil {
		return nil, err
	}
	b := arena.Bytes()
	a := &accesses{ranges: r, arena: arena, nodes: carve[uint32](&b, r.Window)[:0],
		ends: carve[uint32](&b, r.Count), words: carve[uint8](&b, words),
		held: mem.NewAccount(budget, "superbatch index")}
	a.memory, err = mem.NewArena(budget, "superbatch accesses", memory)
	if err == nil {
		a.File, err = id.Create(kindAccesses)
	}
	if err != nil {
		a.Free()
		return nil, err
	}
	a.File.Memory = a.memory.Bytes()
	return a, nil
}

// Add adds the accesses of the next turn.
func (a *accesses) Add(nodes []sample.NodeID) (err error) {
	if a.Total+uint64(len(nodes)) > accessesMost {
		return fmt.Errorf("a superbatch of %d accesses, %d at most: lower --superbatch",
			a.Total+uint64(len(nodes)), uint64(accessesMost))
	}
	if a.Starts, err = push(&a.held, a.Starts, uint32(a.Total)); err != nil {
		return err
	}
	a.Total += uint64(len(nodes))
	if len(a.Starts) > 1 {
		a.most = max(a.most, len(nodes))
	}
	for rest := ids32(nodes); len(rest) > 0; {
		n := len(a.nodes)
		taken := copy(a.nodes[n:cap(a.nodes)], rest)
		a.nodes, rest = a.nodes[:n+taken], rest[taken:]
		if len(a.nodes) == cap(a.nodes) {
			if err := a.deal(); err != nil {
				return err
			}
		}
	}
	return nil
}

// deal writes the parts of the current window.
func (a *accesses) deal() (err error) {
	width := uint32(a.wordBytes())
	a.sort(width)
	begin := uint32(0)
	for _, end := range a.ends {
		var at ref
		if end > begin {
			if at, err = a.File.Append(a.words[begin : end+8]); err != nil {
				return err
			}
			begin = end + 8
		}
		if a.refs, err = push(&a.held, a.refs, at); err != nil {
			return err
		}
	}
	a.nodes = a.nodes[:0]
	return nil
}

// sort writes a word for each access of the window to the part of its range, and sets ends to where
// the words of each part end. The parts that have words lie one after the other, 8 bytes apart.
func (a *accesses) sort(width uint32) {
	clear(a.ends)
	for _, v := range a.nodes {
		a.ends[v>>a.Shift]++
	}
	next := uint32(0)
	for r, n := range a.ends {
		a.ends[r] = next
		if n > 0 {
			next += n*width + 8
		}
	}
	mask, number, words, ends := uint32(1)<<a.Shift-1, a.numberBits(), a.words, a.ends
	for i, v := range a.nodes {
		to := &ends[v>>a.Shift]
		binary.LittleEndian.PutUint64(words[*to:*to+8], uint64(v&mask)<<number|uint64(i))
		*to += width
	}
}

// Finish writes the last window and frees the memory of windows; refs and Starts are kept.
func (a *accesses) Finish() error {
	if len(a.nodes) > 0 {
		if err := a.deal(); err != nil {
			return err
		}
	}
	if err := a.File.Finish(); err != nil {
		return err
	}
	return a.freeWindow()
}

// Full reports whether the next batch may not fit in this superbatch, because its accesses could
// not be numbered. It assumes a batch at most an eighth larger than the largest so far.
func (a *accesses) Full() bool {
	likely := a.most + a.most/8
	return a.Total+uint64(likely) > accessesMost || useBits(len(a.Starts), likely) < 0
}

// useBits returns how many of the 32 bits of a use hold the position in its batch, for this number
// of batches, each with at most this number of nodes. The other bits hold the turn; the turn after
// the last stands for no use. It returns -1 if 32 bits are too few.
func useBits(batches, nodes int) int {
	at := bits.Len(uint(max(nodes, 1) - 1))
	if at+bits.Len(uint(batches+1)) > 32 {
		return -1
	}
	return at
}

// windows returns the number of windows that were written.
func (a *accesses) windows() int { return len(a.refs) / a.Count }

// NextMost bounds the bytes that the next uses take, in whole arenas: 4 per access, and a head and
// the rest of a unit per part.
func (a *accesses) NextMost() int64 {
	return 4*int64(a.Total) + 2<<20 + unitBytes*int64(len(a.refs))
}

func (a *accesses) freeWindow() error {
	a.nodes, a.ends, a.words = nil, nil, nil
	return a.arena.Free()
}

// Free gives all memory back and closes the file, finished or not. The file is not removed.
func (a *accesses) Free() {
	_ = a.freeWindow() // unmapping what was mapped cannot fail
	if a.memory != nil {
		_ = a.memory.Free()
	}
	if a.File != nil {
		_ = a.File.Abort() // the file is not used any more
	}
	a.held.Release()
}

// ids32 returns node ids as numbers, with their capacity. Both share memory.
func ids32(s []sample.NodeID) []uint32 {
	return mem.View[uint32](mem.BytesOf(s[:cap(s)]))[:len(s)]
}

// ranges says how nodes are cut into ranges, so that the next use of each node of a range fits in
// memory and preferably in the processor's cache. It also says how accesses are cut into windows:
// each window is dealt out to the ranges as a whole.
type ranges struct {
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
	bytesPerPart = 2*(recordHead+unitBytes)*5/4 + 64

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

// planRanges cuts nodes into ranges for passes that may take this many bytes of memory.
func planRanges(nodes uint64, memory int64) (ranges, error) {
	r := ranges{Shift: max(0, bits.Len64(max(nodes, 1)-1))}
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

func (r ranges) counted(nodes uint64) int { return int((max(nodes, 1)-1)>>r.Shift) + 1 }

// Memory returns the bytes that the passes take.
func (r ranges) Memory() int64 {
	return rangesAtOnce*bytesPerNode<<r.Shift + bytesPerAccess*int64(r.Window) +
		bytesPerPart*int64(r.Count)
}

// wordBytes returns the bytes of an access in its part: its number in the window, and above it the
// number of its node in the range.
func (r ranges) wordBytes() int { return max(1, (r.numberBits()+r.Shift+7)/8) }

// numberBits returns how many bits the number of an access in its window takes.
func (r ranges) numberBits() int { return bits.Len(uint(r.Window - 1)) }
