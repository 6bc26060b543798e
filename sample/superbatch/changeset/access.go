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

// Accesses deals the accesses of a superbatch out by node range and writes them to a file, in about
// 5 bytes per access.
//
// A superbatch counts its turns: turn 0 is the rows that the cache holds at the start, in the order
// of slots, and turns 1 … S are its batches. An access is a node of a turn, in the order of the
// batch; all accesses are numbered through, from 0. As a use, an access is one number too: its
// turn, above its position in the turn (see UseBits).
//
// Accesses are collected until a window is full, then written as one part per range, in order. A
// part holds a word of wordBytes bytes per access: the access's number in the window, and above it
// the node's number in the range. 8 bytes follow the last word, so that each word can be read as 8
// bytes.
type Accesses struct {
	Ranges
	File   *runtimefile.Writer
	arena  *mem.Arena
	memory *mem.Arena // memory that the first records go to instead of the file

	nodes []uint32 // nodes accessed in the current window
	ends  []uint32 // for each part, where its next word goes
	words []byte   // words of all parts of the window

	refs   []runtimefile.Ref // records of parts, window by window; zero if without accesses
	Starts []uint32          // the number of each turn's first access
	most   int               // largest number of accesses of a batch
	Total  uint64            // number of accesses so far
	held   mem.Account       // refs and starts
}

// accessesMost bounds the accesses of a superbatch, so that the number after the last still fits.
const accessesMost = math.MaxUint32 - 1

// NewAccesses starts the file of a superbatch's accesses, of which the first memory bytes stay in
// memory. The caller calls Free.
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

// Add adds the accesses of the next turn.
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

// deal writes the parts of the current window.
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

// sort writes a word for each access of the window to the part of its range, and sets ends to where
// the words of each part end. The parts that have words lie one after the other, 8 bytes apart.
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

// Finish writes the last window and frees the memory of windows; refs and Starts are kept.
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

// Full reports whether the next batch may not fit in this superbatch, because its accesses could
// not be numbered. It assumes a batch at most an eighth larger than the largest so far.
func (a *Accesses) Full() bool {
	likely := a.most + a.most/8
	return a.Total+uint64(likely) > accessesMost || UseBits(len(a.Starts), likely) < 0
}

// UseBits returns how many of the 32 bits of a use hold the position in its batch, for this number
// of batches, each with at most this number of nodes. The other bits hold the turn; the turn after
// the last stands for no use. It returns -1 if 32 bits are too few.
func UseBits(batches, nodes int) int {
	at := bits.Len(uint(max(nodes, 1) - 1))
	if at+bits.Len(uint(batches+1)) > 32 {
		return -1
	}
	return at
}

// windows returns the number of windows that were written.
func (a *Accesses) windows() int { return len(a.refs) / a.Count }

// NextMost bounds the bytes that the next uses take, in whole arenas: 4 per access, and a head and
// the rest of a unit per part.
func (a *Accesses) NextMost() int64 {
	return 4*int64(a.Total) + 2<<20 + runtimefile.UnitBytes*int64(len(a.refs))
}

func (a *Accesses) freeWindow() error {
	a.nodes, a.ends, a.words = nil, nil, nil
	return a.arena.Free()
}

// Free gives all memory back and closes the file, finished or not. The file is not removed.
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

// IDs32 returns node ids as numbers, with their capacity. Both share memory.
func IDs32(s []sample.NodeID) []uint32 {
	return mem.View[uint32](mem.BytesOf(s[:cap(s)]))[:len(s)]
}
