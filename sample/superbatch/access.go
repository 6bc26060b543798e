package superbatch

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/superbatch/runtimefile"
)

// A superbatch counts what happens in it twice. Turn 0 is the rows that the cache holds before, by
// slot, and 1 … S are its batches. An access is a node of a turn, in the order of the batch, and
// all are counted through, from 0. As a use, an access is one number too, its turn above its
// position: see useBits.
//
// accesses deals the accesses out by node range. So many as a window has are collected, and then
// written to a part of the window for each range, in order: for each access a word of a whole
// number of bytes, the number in the window below the node in the range, and at the end 8 bytes,
// so that a word can be read as 8 bytes. 5 bytes per access or so.
type accesses struct {
	ranges
	file   *runtimefile.Writer
	arena  *mem.Arena
	memory *mem.Arena // of records

	nodes []uint32 // of the window at hand
	ends  []uint32 // of each part: where its next word goes
	words []byte

	refs   []runtimefile.Ref // of the parts, window by window; of those without accesses none
	starts []uint32          // of each turn, its first access
	most   int               // of a batch
	total  uint64
	held   mem.Account // refs and starts
}

// accessesMost bounds the accesses of a superbatch, and the one after the last is still a number.
const accessesMost = math.MaxUint32 - 1

// newAccesses starts the file of a superbatch's accesses, so many bytes of which stay in memory.
func newAccesses(id runtimefile.Identity, r ranges, memory int64, budget *mem.Budget) (*accesses,
	error) {
	words := r.window*r.wordBytes() + 8*r.count
	arena, err := mem.NewArena(budget, "superbatch accesses",
		4*int64(r.window)+4*int64(r.count)+int64(words))
	if err != nil {
		return nil, err
	}
	b := arena.Bytes()
	a := &accesses{ranges: r, arena: arena, nodes: carve[uint32](&b, r.window)[:0],
		ends: carve[uint32](&b, r.count), words: carve[uint8](&b, words),
		held: mem.NewAccount(budget, "superbatch index")}
	a.memory, err = mem.NewArena(budget, "superbatch accesses", memory)
	if err == nil {
		a.file, err = id.Create(runtimefile.KindAccesses)
	}
	if err != nil {
		a.free()
		return nil, err
	}
	a.file.Memory = a.memory.Bytes()
	return a, nil
}

// add notes the accesses of the next turn.
func (a *accesses) add(nodes []sample.NodeID) (err error) {
	if a.total+uint64(len(nodes)) > accessesMost {
		return fmt.Errorf("a superbatch of %d accesses, %d at most: lower --superbatch",
			a.total+uint64(len(nodes)), uint64(accessesMost))
	}
	if a.starts, err = push(&a.held, a.starts, uint32(a.total)); err != nil {
		return err
	}
	a.total += uint64(len(nodes))
	if len(a.starts) > 1 {
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

// deal writes the parts of a window.
func (a *accesses) deal() (err error) {
	width := uint32(a.wordBytes())
	a.sort(width)
	begin := uint32(0)
	for _, end := range a.ends {
		var at runtimefile.Ref
		if end > begin {
			if at, err = a.file.Append(a.words[begin : end+8]); err != nil {
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

// sort puts a word for each access of the window to the part of its range, one part after the
// other, and has in ends where each ends: 8 bytes before the next, if there are any words.
func (a *accesses) sort(width uint32) {
	clear(a.ends)
	for _, v := range a.nodes {
		a.ends[v>>a.shift]++
	}
	next := uint32(0)
	for r, n := range a.ends {
		a.ends[r] = next
		if n > 0 {
			next += n*width + 8
		}
	}
	mask, number, words, ends := uint32(1)<<a.shift-1, a.numberBits(), a.words, a.ends
	for i, v := range a.nodes {
		to := &ends[v>>a.shift]
		binary.LittleEndian.PutUint64(words[*to:*to+8], uint64(v&mask)<<number|uint64(i))
		*to += width
	}
}

// finish writes the last window and frees the memory but for refs and starts.
func (a *accesses) finish() error {
	if len(a.nodes) > 0 {
		if err := a.deal(); err != nil {
			return err
		}
	}
	if err := a.file.Finish(); err != nil {
		return err
	}
	return a.freeWindow()
}

// full says that the next batch, if it is not much larger than all before, is to be of another
// superbatch: its accesses cannot be numbered.
func (a *accesses) full() bool {
	likely := a.most + a.most/8
	return a.total+uint64(likely) > accessesMost || useBits(len(a.starts), likely) < 0
}

// useBits is how many of the 32 bits of a use are its position in one of so many batches of so many
// nodes at most. The others are the turn; the one after the last stands for no use. It is -1 if
// there are too few bits.
func useBits(batches, nodes int) int {
	at := bits.Len(uint(max(nodes, 1) - 1))
	if at+bits.Len(uint(batches+1)) > 32 {
		return -1
	}
	return at
}

// windows is how many there are.
func (a *accesses) windows() int { return len(a.refs) / a.count }

// nextMost is what the next uses take at most, in whole arenas: a number each, and for each part a
// head and the rest of a unit.
func (a *accesses) nextMost() int64 {
	return 4*int64(a.total) + 2<<20 + runtimefile.UnitBytes*int64(len(a.refs))
}

func (a *accesses) freeWindow() error {
	a.nodes, a.ends, a.words = nil, nil, nil
	return a.arena.Free()
}

// free gives all back, finished or not; the file stays.
func (a *accesses) free() {
	_ = a.freeWindow() // unmapping what was mapped cannot fail
	if a.memory != nil {
		_ = a.memory.Free()
	}
	if a.file != nil {
		_ = a.file.Abort() // the file is not used any more
	}
	a.held.Release()
}
