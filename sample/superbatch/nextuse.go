package superbatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/sample"
)

// nextUses tells for every access of a superbatch when its node is accessed next: for each block of
// accesses a record of two arrays, by how many turns later (0: never), and at which position.
type nextUses struct {
	ranges
	id     identity
	refs   [][]ref
	held   ledger     // refs
	memory *mem.Arena // of records
}

// nextOptions are how much memory keeps next uses from being written, and how many goroutines find
// them, rangesAtOnce at most.
type nextOptions struct {
	memory  int64
	workers int
}

// findNextUses goes backward over the accesses of each range, with the next use of each node of the
// range in memory. About 15 ns per access and goroutine.
func findNextUses(ctx context.Context, id identity, dev blockdev.Device, a *accesses, turns uint32,
	opt nextOptions, budget *mem.Budget) (n *nextUses, err error) {
	n = &nextUses{ranges: a.ranges, id: id, refs: make([][]ref, a.count),
		held: ledger{budget: budget, what: "superbatch index"}}
	if n.memory, err = mem.NewArena(budget, "superbatch next uses", opt.memory); err != nil {
		return nil, err
	}
	for r, blocks := range a.refs {
		if err := n.held.add(8 * int64(len(blocks))); err != nil {
			return nil, errors.Join(err, n.free())
		}
		n.refs[r] = make([]ref, len(blocks))
	}
	p := &nextPass{nextUses: n, turns: turns, accesses: a}
	if err := errors.Join(p.runAll(ctx, dev, opt.workers, budget), p.close()); err != nil {
		return nil, errors.Join(err, n.free())
	}
	return n, nil
}

// free gives the memory back; the file stays.
func (n *nextUses) free() error {
	n.held.release()
	return n.memory.Free()
}

// nextPass is what findNextUses does.
type nextPass struct {
	*nextUses
	accesses *accesses
	turns    uint32
	in       *reader
	due      atomic.Int64 // the next range

	mu  sync.Mutex // of out
	out *writer
}

// runAll opens the files, and does all ranges.
func (p *nextPass) runAll(ctx context.Context, dev blockdev.Device, workers int,
	budget *mem.Budget) (err error) {
	if p.in, err = p.id.open(ctx, dev, kindAccesses); err != nil {
		return err
	}
	p.in.memory = p.accesses.memory.Bytes()
	if p.out, err = p.id.create(kindNext); err != nil {
		return err
	}
	p.out.memory = p.memory.Bytes()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, max(1, min(workers, rangesAtOnce, p.count)))
	var all sync.WaitGroup
	for w := range errs {
		all.Go(func() {
			if errs[w] = p.work(ctx, budget); errs[w] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	for _, err := range errs { // the cause before what it led to
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(errors.Join(errs...), p.out.finish())
}

// work takes the memory for one range at a time, and does ranges until none is left.
func (p *nextPass) work(ctx context.Context, budget *mem.Budget) (err error) {
	arena, err := mem.NewArena(budget, "superbatch next uses", bytesPerNode<<p.shift+
		blockBytes(p.ranges.block)+8*int64(p.ranges.block))
	if err != nil {
		return err
	}
	b := arena.Bytes()
	w := &nextWorker{nextPass: p, buf: buffer{budget: budget}, last: carve[uint64](&b, 1<<p.shift),
		block: newAccessBlock(&b, p.ranges.block), after: carve[uint32](&b, p.ranges.block),
		at: carve[uint32](&b, p.ranges.block)}
	defer func() { err = errors.Join(err, w.buf.free(), arena.Free()) }()
	for {
		r := int(p.due.Add(1)) - 1
		if r >= p.count {
			return nil
		}
		if err := w.run(ctx, r, p.accesses.refs[r]); err != nil {
			return err
		}
	}
}

// nextWorker is the memory of one goroutine of findNextUses.
type nextWorker struct {
	*nextPass
	buf   buffer
	last  []uint64 // of each node: turn<<32 | position of the access found last, or none
	block accessBlock

	after, at []uint32 // of the block's accesses
	enc       codec.Enc
	records   []record
}

// blocksAtOnce are read at a time, so that the device has some to do: about 500 KiB.
const blocksAtOnce = 16

const none = math.MaxUint64

// run does one range, its last block first.
func (p *nextWorker) run(ctx context.Context, r int, blocks []ref) error {
	for i := range p.last {
		p.last[i] = none
	}
	for end := len(blocks); end > 0; end -= blocksAtOnce {
		first := max(0, end-blocksAtOnce)
		p.records = p.records[:0]
		for _, at := range blocks[first:end] {
			p.records = append(p.records, record{p.in, at})
		}
		payloads, err := p.buf.read(ctx, p.records...)
		if err != nil {
			return err
		}
		for i := len(payloads) - 1; i >= 0; i-- {
			if err := p.one(payloads[i], blocks[first+i], &p.refs[r][first+i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// one does one block: payload is the record of its accesses, and to the place of the result.
func (p *nextWorker) one(payload []byte, at ref, to *ref) (err error) {
	if err := p.block.decode(payload, uint32(len(p.last)), p.turns); err != nil {
		return p.in.damage(at.off(), "%v", err)
	}
	if err := p.backward(); err != nil {
		return p.in.damage(at.off(), "%v", err)
	}
	p.enc.B = p.enc.B[:0]
	putArray(&p.enc, p.after[:p.block.n])
	putArray(&p.enc, p.at[:p.block.n])
	p.mu.Lock()
	defer p.mu.Unlock()
	*to, err = p.out.append(p.enc.B)
	return err
}

// backward finds the next uses of a block's accesses. There is no branch in the inner loop: the
// reads of last are spread over a range's nodes, and go on while one waits for memory.
func (p *nextWorker) backward() error {
	k, end := &p.block, p.block.n
	for r := k.runs - 1; r >= 0; r-- {
		turn, first := k.turns[r], end-int(k.counts[r])
		if !nextUsesOf(p.last, turn, k.node[first:end], k.at[first:end], p.after[first:end],
			p.at[first:end]) {
			return fmt.Errorf("turn %d accesses a node twice", turn)
		}
		end = first
	}
	return nil
}

// nextUsesOf gives the accesses of one turn, at positions where, their next uses, and makes them
// those of the turns before. It is false if a node is accessed twice.
func nextUsesOf(last []uint64, turn uint32, node, where, after, at []uint32) bool {
	where, after, at = where[:len(node)], after[:len(node)], at[:len(node)]
	once := true
	for i, v := range node {
		next := last[v]
		last[v] = uint64(turn)<<32 | uint64(where[i])
		later := uint32(next >> 32)
		once = once && later > turn // none is later than all
		by, pos := later-turn, uint32(next)
		if next == none {
			by, pos = 0, 0
		}
		after[i], at[i] = by, pos
	}
	return once
}

func (p *nextPass) close() (err error) {
	if p.in != nil {
		err = p.in.close()
	}
	if p.out != nil {
		err = errors.Join(err, p.out.abort())
	}
	return err
}

// nextReader gives the next uses in the order of turns: it merges the ranges' blocks, each node's
// range telling which is next.
type nextReader struct {
	*nextUses
	in    *reader
	buf   buffer
	arena *mem.Arena
	heads []nextHead
}

// nextHead is the block of one range that is being read.
type nextHead struct {
	after, at []uint32
	block, i  int // the number of blocks read, and of accesses taken of the last
}

// read opens the next uses for one pass.
func (n *nextUses) read(ctx context.Context, dev blockdev.Device,
	budget *mem.Budget) (*nextReader, error) {
	in, err := n.id.open(ctx, dev, kindNext)
	if err != nil {
		return nil, err
	}
	in.memory = n.memory.Bytes()
	arena, err := mem.NewArena(budget, "superbatch next uses", 8*int64(n.count)*int64(n.block))
	if err != nil {
		return nil, errors.Join(err, in.close())
	}
	r := &nextReader{nextUses: n, in: in, buf: buffer{budget: budget}, arena: arena,
		heads: make([]nextHead, n.count)}
	b := arena.Bytes()
	for i := range r.heads {
		h := &r.heads[i]
		h.after, h.at = carve[uint32](&b, n.block)[:0], carve[uint32](&b, n.block)[:0]
	}
	return r, nil
}

// of writes the next uses of the nodes of a turn, which follows those before and has so many after
// it: after is by how many turns later, 0 for never, and at the position.
func (r *nextReader) of(ctx context.Context, nodes []sample.NodeID, left uint32,
	after, at []uint32) error {
	for i, v := range nodes {
		h := &r.heads[uint64(v)>>r.shift]
		if h.i == len(h.after) {
			if err := r.load(ctx, int(uint64(v)>>r.shift)); err != nil {
				return err
			}
		}
		after[i], at[i] = h.after[h.i], h.at[h.i]
		if after[i] > left {
			return r.in.damage(r.refs[uint64(v)>>r.shift][h.block-1].off(),
				"node %d is used %d turns later, there are %d", v, after[i], left)
		}
		h.i++
	}
	return nil
}

// load reads the next block of a range.
func (r *nextReader) load(ctx context.Context, i int) error {
	h := &r.heads[i]
	if h.block == len(r.refs[i]) {
		return r.in.damage(0, "range %d has fewer accesses than its batches", i)
	}
	at := r.refs[i][h.block]
	payload, err := r.in.read(ctx, at, &r.buf)
	if err != nil {
		return err
	}
	if err := h.decode(payload); err != nil {
		return r.in.damage(at.off(), "%v", err)
	}
	h.block, h.i = h.block+1, 0
	return nil
}

// decode reads a block's record, which is not empty.
func (h *nextHead) decode(payload []byte) (err error) {
	d := codec.NewDec(payload)
	for _, to := range []*[]uint32{&h.after, &h.at} {
		if *to, err = takeArray(d, (*to)[:cap(*to)], cap(*to)); err != nil {
			return err
		}
	}
	if len(h.after) == 0 || len(h.after) != len(h.at) {
		return fmt.Errorf("%d next uses, %d positions", len(h.after), len(h.at))
	}
	return nil
}

func (r *nextReader) close() error {
	return errors.Join(r.buf.free(), r.arena.Free(), r.in.close())
}
