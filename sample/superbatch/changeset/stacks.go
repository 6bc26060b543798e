package changeset

import "gdb/internal/bug"

// turnStacks are the held rows by the turn of their next use: a stack for each turn, whose rows are
// taken all at once when its turn comes, or from the top when others are to be kept. Of a row its
// slot and the position of its next use are known. A stack is a list of chunks, so that rows are
// read in sequence: in a list of single rows only the row before tells where to wait for the next.
//
// Memory: poolPerSlot for each slot, whatever the number of turns, since the size of a chunk is
// chosen so that a part of one for each turn fits; and 8 bytes for each turn.
type turnStacks struct {
	rows  []uint64 // slot<<32 | position, in chunks of 1<<shift
	link  []uint32 // of each chunk: the one below it in its stack, or +1 the next that is free
	shift int
	mask  uint32 // 1<<shift - 1
	free  uint32 // the first chunk that was given back, +1
	fresh uint32 // chunks from here on were not used yet

	stacks []turnStack
	set    turnSet // of the stacks that are not empty
}

// turnStack is where the chunk on top begins, if there is one, and the number of rows of all.
type turnStack struct{ top, count uint32 }

const (
	rowBytes  = 8
	linkBytes = 4
	// poolPerSlot is the memory for a row and its chunk's link, if each has a chunk of its own.
	poolPerSlot = rowBytes + linkBytes
	// poolSpare is memory for chunks that are read while others are filled.
	poolSpare = 4 * poolPerSlot
	// chunkMostLog bounds chunks: 512 bytes are read at full speed.
	chunkMostLog = 6
)

// PoolBytes is the memory of so many slots' rows.
func PoolBytes(slots int) int64 { return poolPerSlot*int64(slots) + poolSpare }

// stackBytes is the memory of so many turns.
func stackBytes(turns int) int64 { return 8*int64(turns) + TurnSetBytes(turns) }

// ChunkLog is the size of chunks for so many slots and turns: the largest with which as many
// chunks fit in the memory as can be in use, of each turn one that is not full.
func ChunkLog(slots, turns int) int {
	for log := chunkMostLog; log > 0; log-- {
		chunks := int64(slots>>log + min(turns, slots) + 2)
		if chunks*(rowBytes<<log+linkBytes) <= PoolBytes(slots) {
			return log
		}
	}
	return 0
}

// NewTurnStacks makes empty stacks in a pool of poolBytes.
func NewTurnStacks(pool []byte, slots, turns int) turnStacks {
	s := turnStacks{shift: ChunkLog(slots, turns), stacks: make([]turnStack, turns),
		set: NewTurnSet(turns)}
	s.mask = 1<<s.shift - 1
	chunks := len(pool) / (rowBytes<<s.shift + linkBytes)
	s.rows, s.link = Carve[uint64](&pool, chunks<<s.shift), Carve[uint32](&pool, chunks)
	return s
}

// Push puts a row on the stack of a turn.
func (s *turnStacks) Push(turn uint32, row uint64) {
	t := &s.stacks[turn]
	level := t.count & s.mask
	if level == 0 {
		s.grow(t, turn)
	}
	s.rows[t.top+level] = row
	t.count++
}

// grow puts a chunk on top of a stack.
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

// shrink takes the chunk on top off a stack.
func (s *turnStacks) shrink(t *turnStack) {
	chunk := t.top >> s.shift
	t.top = s.link[chunk] << s.shift
	s.link[chunk], s.free = s.free, chunk+1
}

// Pop appends the slots of the n rows on top of a stack, which has as many, to slots.
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

// Len is the number of rows of a turn.
func (s *turnStacks) Len(turn uint32) int { return int(s.stacks[turn].count) }

// Chunk is the part of a stack that is on top; drop takes it off.
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
