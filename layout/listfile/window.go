package listfile

import (
	"context"
	"fmt"
	"slices"
	"unsafe"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listcode"
)

// Window is a run of blocks, and the nodes whose lists are wholly in it: from node From up to the
// node before the next window's From. A block is in two windows if a list begins in it that goes on
// beyond the first window.
type Window struct {
	First, End int // blocks First … End-1, counted from 0
	From       layout.NodeID
}

// Windows cuts a file into windows of at most this number of blocks. ok is false if a list has
// more.
func (ix *Index) Windows(blocks int) (all []Window, ok bool) {
	next := Window{}
	for next.First < len(ix.Keys) {
		w := next
		w.End = min(w.First+blocks, len(ix.Keys))
		all = append(all, w)
		if w.End == len(ix.Keys) {
			break
		}
		next = Window{First: w.End, From: ix.First(w.End)}
		for list := Key(next.From, 0); ix.Keys[next.First] > list; next.First-- {
			if next.First == w.First {
				return nil, false
			}
		}
		if next.First == w.First {
			return nil, false
		}
	}
	return all, true
}

// WindowBlocks holds the blocks of a window in memory, as they are in the file. Its methods count
// blocks from 0, the first of the window.
type WindowBlocks struct {
	f         *File
	ix        *Index
	arena     *mem.Arena
	blocks    []Block        // without Bytes if not wanted
	continued []listcode.Ref // the first list of each block, if it began in an earlier block
	window    Window
	held      mem.Account
}

// WindowBytes returns the memory for windows of this number of blocks, one at a time, in bytes.
func WindowBytes(s *Shape, blocks int) int64 {
	return mem.ArenaBytes(windowArena(s, blocks)) + int64(blocks)*windowBlock
}

// windowBlock is the memory per block besides its bytes.
const windowBlock = int64(unsafe.Sizeof(Block{})) + listcode.RefBytes

// windowArena returns the memory of the blocks, with what a Gatherer may read after the last one.
func windowArena(s *Shape, blocks int) int64 {
	return (int64(blocks)+1)*int64(s.BlockBytes) + listcode.Slack
}

// NewWindowBlocks makes room for windows of at most this number of blocks, one at a time. The
// caller calls Free.
func NewWindowBlocks(f *File, ix *Index, blocks int, budget *mem.Budget) (*WindowBlocks, error) {
	w := &WindowBlocks{f: f, ix: ix, held: mem.NewAccount(budget, "window of topology")}
	if err := w.held.Add(int64(blocks) * windowBlock); err != nil {
		return nil, err
	}
	w.blocks, w.continued = make([]Block, 0, blocks), make([]listcode.Ref, 0, blocks)
	var err error
	w.arena, err = mem.NewArena(budget, "window of topology", windowArena(&f.Shape, blocks))
	if err != nil {
		w.held.Release()
		return nil, err
	}
	return w, nil
}

// Free gives the memory back.
func (w *WindowBlocks) Free() error {
	w.held.Release()
	return w.arena.Free()
}

// Read reads a window in place of the one before. wanted says which of its blocks are needed, nil
// for all; only lists in these blocks may be asked for. Where few blocks lie between needed ones,
// they are read too. read is the number of blocks read.
func (w *WindowBlocks) Read(ctx context.Context, at Window, wanted []bool) (read int, err error) {
	w.window = at
	w.blocks, w.continued = w.blocks[:at.End-at.First], w.continued[:at.End-at.First]
	reqs, read := w.requests(wanted)
	if err := w.f.Dev.ReadBatch(ctx, reqs); err != nil {
		return read, fmt.Errorf("layout: read %d blocks of %s: %w", read, w.f.Path, err)
	}
	var steps pace.Steps
	for i := range w.blocks {
		if w.blocks[i] = (Block{}); wanted != nil && !wanted[i] {
			continue
		}
		if err := w.check(i); err != nil {
			return read, w.Damage(i, err)
		}
		if err := steps.Took(ctx, pace.Block); err != nil {
			return read, err
		}
	}
	return read, nil
}

// gapBlocks is how many blocks between needed ones are read along, since another read costs more.
const gapBlocks = 3

// requests returns the reads of the wanted blocks to their places, and how many blocks they read.
func (w *WindowBlocks) requests(wanted []bool) (reqs []blockdev.Request, read int) {
	size, b := w.f.BlockBytes, w.arena.Bytes()
	add := func(from, to int) {
		if from < to {
			off := BlockOffset(int64(w.window.First+from)+1, size)
			reqs = append(reqs, w.f.Requests(off, b[from*size:to*size])...)
			read += to - from
		}
	}
	if wanted == nil {
		add(0, len(w.blocks))
		return reqs, read
	}
	from, to := 0, 0 // a run of blocks to read
	for i, need := range wanted[:len(w.blocks)] {
		switch {
		case !need:
			continue
		case from == to:
			from = i
		case i > to+gapBlocks:
			add(from, to)
			from = i
		}
		to = i + 1
	}
	add(from, to)
	return reqs, read
}

// check verifies and parses a block that was read, and checks that it begins where the index says.
func (w *WindowBlocks) check(i int) (err error) {
	n, size := w.window.First+i, w.f.BlockBytes
	b := w.arena.Bytes()[i*size : (i+1)*size : (i+1)*size]
	if err := VerifyBlock(w.f.Seed, int64(n)+1, b); err != nil {
		return err
	}
	k := &w.blocks[i]
	if *k, err = ParseBlock(&w.f.Shape, b); err != nil {
		return err
	}
	if Key(k.First, k.Start) != w.ix.Keys[n] {
		return fmt.Errorf("%w begins at position %d of node %d's list, which is not where the "+
			"index says", ErrBlock, k.Start, k.First)
	}
	if k.Start > 0 {
		p, err := w.f.Shape.Part(k, 0)
		if err != nil {
			return err
		}
		w.continued[i] = w.Ref(i, &p)
	}
	return nil
}

// keys returns where the blocks of the window begin: see Index.Keys.
func (w *WindowBlocks) keys() []uint64 { return w.ix.Keys[w.window.First:w.window.End] }

// Last returns the last block that may have some of a node's list, -1 for none. It searches from a
// block on that begins before the list's end.
func (w *WindowBlocks) Last(v layout.NodeID, from int) int {
	return from + Upper(w.keys()[from:], Key(v, 1<<32-1)) - 1
}

// Of returns the block that has a position of the list of a node, which ends in block last.
func (w *WindowBlocks) Of(v layout.NodeID, pos uint32, last int) int {
	keys, key := w.keys()[:last+1], Key(v, pos)
	if keys[last] <= key {
		return last
	}
	at, found := slices.BinarySearch(keys, key)
	if !found {
		at--
	}
	return at
}

// Block returns a block that was read.
func (w *WindowBlocks) Block(i int) *Block { return &w.blocks[i] }

// Part returns the part of a node's list that a block has: nothing, if all its lists are of nodes
// before.
func (w *WindowBlocks) Part(i int, v layout.NodeID) (Part, error) {
	k := &w.blocks[i]
	if k.Bytes == nil {
		return Part{}, fmt.Errorf("%w was not read with the window that has the list of node %d",
			ErrBlock, v)
	}
	slot := uint32(v) - uint32(k.First)
	if slot >= k.Slots {
		return Part{}, nil
	}
	p, err := w.f.Shape.Part(k, slot)
	if err != nil {
		return p, w.Damage(i, err)
	}
	return p, nil
}

// Entry returns, for a Gatherer, the part of a node's list that has the entry at a position. Block
// last is where the list ends.
func (w *WindowBlocks) Entry(v layout.NodeID, pos uint32, last int) (listcode.Ref, error) {
	i := w.Of(v, pos, last)
	list := w.continued[i]
	if k := &w.blocks[i]; k.Start == 0 || k.First != v { // the list begins there
		p, err := w.Part(i, v)
		if err != nil {
			return list, err
		}
		list = w.Ref(i, &p)
	}
	if pos-list.From >= list.Count {
		p := Part{Start: list.From, Count: list.Count}
		return list, w.Damage(i, p.lacks(pos))
	}
	return list, nil
}

// Damage returns err as damage of block i.
func (w *WindowBlocks) Damage(i int, err error) error {
	return w.f.DamageBlock(int64(w.window.First+i)+1, err)
}

// Ref returns what a Gatherer needs to know of a part of a list in block i.
func (w *WindowBlocks) Ref(i int, p *Part) listcode.Ref {
	r := p.list.Ref().Moved(8 * uint64(i*w.f.BlockBytes))
	r.From = p.Start
	return r
}

// NewGatherer returns a Gatherer for the lists of the blocks. The caller checks what it gathers
// with CheckGathered.
func (w *WindowBlocks) NewGatherer() *listcode.Gatherer {
	return listcode.NewGatherer(listcode.Coding{PosBits: w.f.Shape.posBits}, w.arena.Bytes(),
		w.f.BlockBytes)
}

// CheckGathered returns an error unless all ids are nodes of the graph.
func (w *WindowBlocks) CheckGathered(ids []uint32) error { return checkIDs(ids, w.f.Nodes) }
