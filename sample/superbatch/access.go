package superbatch

import (
	"fmt"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/sample"
)

// A superbatch numbers what happens in it: 0 is the rows that the cache holds before, its slots
// being their positions, and 1 … S are its batches. An access is (turn, position).
//
// accesses deals the accesses out by node range, in order; each range fills a block in memory,
// which is written when it is full. A block's record is the runs of accesses of one turn (turn and
// number), then the positions, as differences within a run, and the nodes, as offsets in the range:
// about 4 bytes per access.
type accesses struct {
	ranges
	file   *writer
	arena  *mem.Arena
	memory *mem.Arena // of records
	blocks []accessBlock
	refs   [][]ref // of each range's blocks
	held   ledger  // refs
	enc    codec.Enc
	total  uint64
}

// accessBlock is the accesses of one range that are in memory.
type accessBlock struct {
	turns, counts []uint32 // of each run
	at, node      []uint32 // of each access: its position, and its node's offset
	runs, n       int
}

func newAccessBlock(b *[]byte, block int) accessBlock {
	runs := block/accessesPerRun + 1
	return accessBlock{turns: carve[uint32](b, runs), counts: carve[uint32](b, runs),
		at: carve[uint32](b, block), node: carve[uint32](b, block)}
}

// newAccesses starts the file of a superbatch's accesses, so many bytes of which stay in memory.
func newAccesses(id identity, r ranges, memory int64, budget *mem.Budget) (*accesses, error) {
	arena, err := mem.NewArena(budget, "superbatch accesses", int64(r.count)*blockBytes(r.block))
	if err != nil {
		return nil, err
	}
	a := &accesses{ranges: r, arena: arena, blocks: make([]accessBlock, r.count),
		refs: make([][]ref, r.count), held: ledger{budget: budget, what: "superbatch index"}}
	b := arena.Bytes()
	for i := range a.blocks {
		a.blocks[i] = newAccessBlock(&b, r.block)
	}
	a.memory, err = mem.NewArena(budget, "superbatch accesses", memory)
	if err == nil {
		a.file, err = id.create(kindAccesses)
	}
	if err != nil {
		a.free()
		return nil, err
	}
	a.file.memory = a.memory.Bytes()
	return a, nil
}

// add notes the accesses of a turn, which comes after those before. About 5 ns per access.
func (a *accesses) add(turn uint32, nodes []sample.NodeID) error {
	mask := uint32(1)<<a.shift - 1
	for i, v := range nodes {
		r := int(uint64(v) >> a.shift)
		k := &a.blocks[r]
		if k.n == len(k.at) || k.runs == len(k.turns) && k.turns[k.runs-1] != turn {
			if err := a.flush(r); err != nil {
				return err
			}
		}
		if k.runs == 0 || k.turns[k.runs-1] != turn {
			k.turns[k.runs], k.counts[k.runs] = turn, 0
			k.runs++
		}
		k.counts[k.runs-1]++
		k.at[k.n], k.node[k.n] = uint32(i), uint32(v)&mask
		k.n++
	}
	a.total += uint64(len(nodes))
	return nil
}

// flush writes the block of a range.
func (a *accesses) flush(r int) error {
	k := &a.blocks[r]
	if k.n == 0 {
		return nil
	}
	i := 0
	for _, count := range k.counts[:k.runs] {
		before := uint32(0)
		for end := i + int(count); i < end; i++ {
			k.at[i], before = k.at[i]-before, k.at[i]
		}
	}
	a.enc.B = a.enc.B[:0]
	putArray(&a.enc, k.turns[:k.runs])
	putArray(&a.enc, k.counts[:k.runs])
	putArray(&a.enc, k.at[:k.n])
	putArray(&a.enc, k.node[:k.n])
	k.runs, k.n = 0, 0
	at, err := a.file.append(a.enc.B)
	if err != nil {
		return err
	}
	a.refs[r], err = push(&a.held, a.refs[r], at)
	return err
}

// finish writes the last blocks and frees the memory but for refs.
func (a *accesses) finish() error {
	for r := range a.blocks {
		if err := a.flush(r); err != nil {
			return err
		}
	}
	if err := a.file.finish(); err != nil {
		return err
	}
	return a.freeBlocks()
}

// nextMost is what the next uses take at most, in whole arenas: two numbers each, and for each
// block two heads and the rest of a unit.
func (a *accesses) nextMost() int64 {
	bytes := 8*int64(a.total) + 2<<20
	for _, blocks := range a.refs {
		bytes += 2 * unitBytes * int64(len(blocks))
	}
	return bytes
}

func (a *accesses) freeBlocks() error {
	a.blocks = nil
	return a.arena.Free()
}

// free gives all back, finished or not; the file stays.
func (a *accesses) free() {
	_ = a.freeBlocks() // unmapping what was mapped cannot fail
	if a.memory != nil {
		_ = a.memory.Free()
	}
	if a.file != nil {
		_ = a.file.abort() // the file is not used any more
	}
	a.held.release()
}

// decode reads a block's record. nodes is the size of the range, and turns the last turn.
func (k *accessBlock) decode(payload []byte, nodes, turns uint32) (err error) {
	d := codec.NewDec(payload)
	for _, to := range []*[]uint32{&k.turns, &k.counts, &k.at, &k.node} {
		if *to, err = takeArray(d, (*to)[:cap(*to)], cap(*to)); err != nil {
			return err
		}
	}
	if err := k.check(nodes, turns); err != nil {
		return err
	}
	i := 0
	for _, count := range k.counts {
		before := uint32(0)
		for end := i + int(count); i < end; i++ {
			before += k.at[i]
			k.at[i] = before
		}
	}
	return nil
}

// check holds the arrays of a decoded block against each other.
func (k *accessBlock) check(nodes, turns uint32) error {
	k.runs, k.n = len(k.turns), len(k.at)
	sum := uint64(0)
	for _, c := range k.counts {
		sum += uint64(c)
	}
	if len(k.counts) != k.runs || len(k.node) != k.n || sum != uint64(k.n) {
		return fmt.Errorf("%d and %d runs of %d accesses, %d positions, %d nodes", k.runs,
			len(k.counts), sum, k.n, len(k.node))
	}
	for i, t := range k.turns {
		if t > turns || i > 0 && t <= k.turns[i-1] {
			return fmt.Errorf("run %d is of turn %d of %d", i, t, turns)
		}
	}
	for _, v := range k.node {
		if v >= nodes {
			return fmt.Errorf("node %d of a range of %d", v, nodes)
		}
	}
	return nil
}
