package superbatch

import (
	"math/bits"

	"gdb/internal/bug"
)

// turnStacks holds the held rows by the turn of their next use, on one stack per turn. The rows of
// a turn are taken all at once when the turn comes, or from the top when other rows are kept
// instead. A row is known by its slot and the position of its next use. A stack is a list of
// chunks, so that rows are read in sequence; in a list of single rows, each read would wait for the
// one before.
//
// It takes poolPerSlot bytes of memory per slot, whatever the number of turns, since chunks are
// small enough that one chunk that is partly filled fits for each turn. It takes 8 bytes for each
// turn besides.
type turnStacks struct {
	rows  []uint64 // slot<<32 | position, in chunks of 1<<shift
	link  []uint32 // the chunk below in its stack, or the next free chunk +1
	shift int
	mask  uint32 // 1<<shift - 1
	free  uint32 // the first free chunk +1, or 0
	fresh uint32 // number of chunks that were ever used

	stacks []turnStack
	set    turnSet // turns whose stack is not empty
}

// turnStack says where the top chunk's rows begin, if count is not 0, and how many rows the stack
// has.
type turnStack struct{ top, count uint32 }

const (
	rowBytes  = 8
	linkBytes = 4
	// poolPerSlot is the memory for a row and its chunk's link, if each has a chunk of its own.
	poolPerSlot = rowBytes + linkBytes
	// poolSpare is memory for chunks that are read while others are filled, in bytes.
	poolSpare = 4 * poolPerSlot
	// chunkMostLog bounds the size of chunks, as a logarithm: 512 bytes are read at full speed.
	chunkMostLog = 6
)

// poolBytes returns the memory of the rows of this number of slots, in bytes.
func poolBytes(slots int) int64 { return poolPerSlot*int64(slots) + poolSpare }

// stackBytes returns the memory of the stacks' heads and set for this number of turns, in bytes.
func stackBytes(turns int) int64 { return 8*int64(turns) + turnSetBytes(turns) }

// chunkLog returns the logarithm of the size of chunks: the largest size with which as many chunks
// fit in poolBytes as can be in use, given that each turn may have one chunk that is not full.
func chunkLog(slots, turns int) int {
	for log := chunkMostLog; log > 0; log-- {
		chunks := int64(slots>>log + min(turns, slots) + 2)
		if chunks*(rowBytes<<log+linkBytes) <= poolBytes(slots) {
			return log
		}
	}
	return 0
}

// newTurnStacks returns empty stacks in pool, which has poolBytes(slots) bytes.
func newTurnStacks(pool []byte, slots, turns int) turnStacks {
	s := turnStacks{shift: chunkLog(slots, turns), stacks: make([]turnStack, turns),
		set: newTurnSet(turns)}
	s.mask = 1<<s.shift - 1
	chunks := len(pool) / (rowBytes<<s.shift + linkBytes)
	s.rows, s.link = carve[uint64](&pool, chunks<<s.shift), carve[uint32](&pool, chunks)
	return s
}

// Push puts a row, slot<<32 | position, on the stack of a turn.
func (s *turnStacks) Push(turn uint32, row uint64) {
	t := &s.stacks[turn]
	level := t.count & s.mask
	if level == 0 {
		s.grow(t, turn)
	}
	s.rows[t.top+level] = row
	t.count++
}

// grow puts an empty chunk on top of a stack.
func (s *turnStacks) grow(t *turnStack, turn uint32) {
	chunk := s.free
	if chunk != 0 {
		s.free = s.link[chunk-1]
	} else {
		s.fresh++
		chunk = s.fresh
	}
	if s.link[chunk-1] = t.top >> s.shift; t.count == 0 {
		s.set.Add(turn)
	}
	t.top = (chunk - 1) << s.shift
}

// shrink frees the chunk on top of a stack.
func (s *turnStacks) shrink(t *turnStack) {
	chunk := t.top >> s.shift
	t.top = s.link[chunk] << s.shift
	s.link[chunk], s.free = s.free, chunk+1
}

// Pop takes n rows off a stack, which must have them, and appends their slots to slots.
func (s *turnStacks) Pop(turn uint32, n int, slots []uint32) []uint32 {
	t := &s.stacks[turn]
	bug.Check(n <= int(t.count), "superbatch: %d of %d rows", n, t.count)
	for ; n > 0; n-- {
		t.count--
		level := t.count & s.mask
		slots = append(slots, uint32(s.rows[t.top+level]>>32))
		if level == 0 {
			s.shrink(t)
		}
	}
	if t.count == 0 {
		s.set.Remove(turn)
	}
	return slots
}

// Len returns the number of rows of a turn.
func (s *turnStacks) Len(turn uint32) int { return int(s.stacks[turn].count) }

// Chunk returns the rows of a stack's top chunk, or nil if the stack is empty. Drop takes them off.
func (s *turnStacks) Chunk(turn uint32) []uint64 {
	t := &s.stacks[turn]
	if t.count == 0 {
		return nil
	}
	return s.rows[t.top : t.top+(t.count-1)&s.mask+1]
}

func (s *turnStacks) Drop(turn uint32) {
	t := &s.stacks[turn]
	t.count = (t.count - 1) &^ s.mask
	if s.shrink(t); t.count == 0 {
		s.set.Remove(turn)
	}
}

// turnSet is a set of turns whose largest is found in O(log64 n). It is levels of bitmaps: a bit of
// one level says that a word of the level below is not zero.
type turnSet struct{ Levels [][]uint64 }

// turnSetBytes returns the memory of a set of turns below n, in bytes.
func turnSetBytes(n int) int64 {
	total := int64(0)
	for n > 1 || total == 0 {
		n = (n + 63) / 64
		total += 8 * int64(n)
	}
	return total
}

// newTurnSet returns an empty set of turns below n.
func newTurnSet(n int) turnSet {
	var s turnSet
	for n > 1 || len(s.Levels) == 0 {
		n = (n + 63) / 64
		s.Levels = append(s.Levels, make([]uint64, n))
	}
	return s
}

func (s turnSet) Add(t uint32) {
	for _, l := range s.Levels {
		l[t>>6] |= 1 << (t & 63)
		t >>= 6
	}
}

func (s turnSet) Remove(t uint32) {
	for _, l := range s.Levels {
		l[t>>6] &^= 1 << (t & 63)
		if l[t>>6] != 0 {
			return
		}
		t >>= 6
	}
}

func (s turnSet) Empty() bool { return s.Levels[len(s.Levels)-1][0] == 0 }

// Last returns the largest turn of the set, or 0 if it is empty.
func (s turnSet) Last() (t uint32) {
	for i := len(s.Levels) - 1; i >= 0; i-- {
		t = t<<6 | uint32(max(bits.Len64(s.Levels[i][t])-1, 0))
	}
	return t
}
