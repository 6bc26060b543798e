package changeset

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
type Accesses struct {
	Ranges
	File   *runtimefile.Writer
	arena  *mem.Arena
	memory *mem.Arena // of records

	nodes []uint32 // of the window at hand
	ends  []uint32 // of each part: where its next word goes
	words []byte

	refs   []runtimefile.Ref // of the parts, window by window; of those without accesses none
	Starts []uint32          // of each turn, its first access
	most   int               // of a batch
	Total  uint64
	held   mem.Account // refs and starts
}

// accessesMost bounds the accesses of a superbatch, and the one after the last is still a number.
const accessesMost = math.MaxUint32 - 1

// NewAccesses starts the file of a superbatch's accesses, so many bytes of which stay in memory.
func NewAccesses(id runtimefile.Identity, r Ranges, memory int64, budget *mem.Budget) (*Accesses,
	error) {
	words := r.Window*r.wordBytes() + 8*r.Count
	arena, err := mem.NewArena(budget, "superbatch accesses",
		4*int64(r.Window)+4*int64(r.Count)+int64(words))
	if err != nil {
		return nil, err
	}
	b := arena.Bytes()
	a := &Accesses{Ranges: r, arena: arena, nodes: Carve[uint32](&b, r.Window)[:0],
		ends: Carve[uint32](&b, r.Count), words: Carve[uint8](&b, words),
		held: mem.NewAccount(budget, "superbatch index")}
	a.memory, err = mem.NewArena(budget, "superbatch accesses", memory)
	if err == nil {
		a.File, err = id.Create(runtimefile.KindAccesses)
	}
	if err != nil {
		a.Free()
		return nil, err
	}
	a.File.Memory = a.memory.Bytes()
	return a, nil
}

// Add notes the accesses of the next turn.
func (a *Accesses) Add(nodes []sample.NodeID) (err error) {
	if a.Total+uint64(len(nodes)) > accessesMost {
		return fmt.Errorf("a superbatch of %d accesses, %d at most: lower --superbatch",
			a.Total+uint64(len(nodes)), uint64(accessesMost))
	}
	if a.Starts, err = Push(&a.held, a.Starts, uint32(a.Total)); err != nil {
		return err
	}
	a.Total += uint64(len(nodes))
	if len(a.Starts) > 1 {
		a.most = max(a.most, len(nodes))
	}
	for rest := IDs32(nodes); len(rest) > 0; {
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
func (a *Accesses) deal() (err error) {
	width := uint32(a.wordBytes())
	a.sort(width)
	begin := uint32(0)
	for _, end := range a.ends {
		var at runtimefile.Ref
		if end > begin {
			if at, err = a.File.Append(a.words[begin : end+8]); err != nil {
				return err
			}
			begin = end + 8
		}
		if a.refs, err = Push(&a.held, a.refs, at); err != nil {
			return err
		}
	}
	a.nodes = a.nodes[:0]
	return nil
}

// sort puts a word for each access of the window to the part of its range, one part after the
// other, and has in ends where each ends: 8 bytes before the next, if there are any words.
func (a *Accesses) sort(width uint32) {
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

// Finish writes the last window and frees the memory but for refs and starts.
func (a *Accesses) Finish() error {
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

// Full says that the next batch, if it is not much larger than all before, is to be of another
// superbatch: its accesses cannot be numbered.
func (a *Accesses) Full() bool {
	likely := a.most + a.most/8
	return a.Total+uint64(likely) > accessesMost || UseBits(len(a.Starts), likely) < 0
}

// UseBits is how many of the 32 bits of a use are its position in one of so many batches of so many
// nodes at most. The others are the turn; the one after the last stands for no use. It is -1 if
// there are too few bits.
func UseBits(batches, nodes int) int {
	at := bits.Len(uint(max(nodes, 1) - 1))
	if at+bits.Len(uint(batches+1)) > 32 {
		return -1
	}
	return at
}

// windows is how many there are.
func (a *Accesses) windows() int { return len(a.refs) / a.Count }

// NextMost is what the next uses take at most, in whole arenas: a number each, and for each part a
// head and the rest of a unit.
func (a *Accesses) NextMost() int64 {
	return 4*int64(a.Total) + 2<<20 + runtimefile.UnitBytes*int64(len(a.refs))
}

func (a *Accesses) freeWindow() error {
	a.nodes, a.ends, a.words = nil, nil, nil
	return a.arena.Free()
}

// Free gives all back, finished or not; the file stays.
func (a *Accesses) Free() {
	_ = a.freeWindow() // unmapping what was mapped cannot fail
	if a.memory != nil {
		_ = a.memory.Free()
	}
	if a.File != nil {
		_ = a.File.Abort() // the file is not used any more
	}
	a.held.Release()
}

// IDs32 sees node ids as numbers, with their capacity.
func IDs32(s []sample.NodeID) []uint32 {
	return mem.View[uint32](mem.BytesOf(s[:cap(s)]))[:len(s)]
}
