package superbatch

import (
	"errors"
	"fmt"

	"gdb/internal/bug"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/sample"
)

// framesInPlace is how many batches are in memory if rows are read in place: one is used, and the
// rows that the next one misses are read meanwhile, to slots that hold no row of either.
const framesInPlace = 2

// changes say what the cache does for one batch.
type changes struct {
	// From holds, for each node of the batch, slot+1 of its row, or 0 if the row is read.
	From []uint32
	// Keep holds the positions in the batch of the rows to keep, ascending, and Slots the slot of
	// each. The row replaces the slot's row once the batch is assembled.
	Keep, Slots []uint32
	// Hits is the number of nodes whose row is in a slot.
	Hits int
	// Alone is set if Slots has slots whose rows the previous batch uses: read to them only once
	// that batch is done with.
	Alone bool
}

// cacheState decides which rows a cache of numbered slots holds when all accesses to come are
// known. After each batch it keeps, of the rows held and the rows of the batch, those whose next
// use is nearest (Belady's rule over batches; no other rule reads fewer rows). A row without a
// known next use counts as farthest, and stays while there is room, since the next superbatch may
// need it.
//
// Held rows stand on stacks by the turn of their next use. So the hits of a turn are one stack, the
// farthest rows are on the last stack that is not empty, and no node is ever looked up. It takes 16
// bytes of memory per slot and 12 per turn.
type cacheState struct {
	arena  *mem.Arena
	nodes  []sample.NodeID // the node whose row each slot holds
	pool   []byte          // memory of stacks
	used   int             // number of slots that hold rows, which are the first ones
	Most   int             // number of slots that may hold rows
	stacks turnStacks      // a row that is never used again stands on the last
	read   readTurns
	bits   int // bits of a use that hold the position: see useBits
	held   mem.Account

	// InPlace is set if a batch reads its rows in their slots while it is used: see pin.
	InPlace bool
	pinned  [framesInPlace][]pin // slots of the batches in use or made ready
}

// pin keeps a slot from being taken, by keeping it off the stacks, until its batch is done with: a
// batch's rows must stay while it is used, and while the rows of the next batch are read. After
// that, the slot goes on the stack of its next use. A slot that the next batch uses again goes
// there as soon as the current batch's rows have slots, since nothing can take it before it is
// pinned again.
type pin struct{ slot, use uint32 }

// errNoSlot is returned if the rows of a batch do not fit in the cache.
var errNoSlot = errors.New("its rows do not fit in the feature cache: raise --memory or " +
	"--feature-cache, or lower --batch or --fanout")

// readTurns counts the rows of one batch that were read, by the turn of their next use.
type readTurns struct {
	count []uint32
	set   turnSet // turns whose count is not 0
}

// cacheSlotBytes is the memory that cacheState takes per slot, in bytes.
const cacheSlotBytes = 4 + poolPerSlot

// newCacheState returns an empty cache with this number of slots. The caller calls Close.
func newCacheState(slots int, budget *mem.Budget) (*cacheState, error) {
	pool := poolBytes(slots)
	arena, err := mem.NewArena(budget, "superbatch cache index", pool+4*int64(slots))
	if err != nil {
		return nil, err
	}
	b := arena.Bytes()
	return &cacheState{arena: arena, Most: slots, pool: carve[uint8](&b, int(pool)),
		nodes: carve[sample.NodeID](&b, slots),
		held:  mem.NewAccount(budget, "superbatch turns")}, nil
}

// Begin starts a superbatch of this number of batches. useBits is the number of bits of a use that
// hold the position. Resume must be called for all held rows before the first Step.
func (c *cacheState) Begin(batches, useBits int) error {
	c.held.Release()
	c.bits = useBits
	turns := batches + 2
	if err := c.held.Add(stackBytes(turns) + 4*int64(turns) + turnSetBytes(turns)); err != nil {
		return err
	}
	c.stacks = newTurnStacks(c.pool, len(c.nodes), turns)
	c.read = readTurns{count: make([]uint32, turns), set: newTurnSet(turns)}
	return nil
}

// Resume sets the next uses of the rows held in the slots from slot on. Slots from c.Most on are
// left out.
func (c *cacheState) Resume(slot int, next []uint32) {
	for i, use := range next[:min(len(next), max(0, c.Most-slot))] {
		c.push(use, uint32(slot+i))
	}
}

// push puts a slot on the stack of its next use.
func (c *cacheState) push(use, slot uint32) {
	c.stacks.Push(use>>c.bits, uint64(slot)<<32|uint64(use&(1<<c.bits-1)))
}

// Rows returns the nodes whose rows are held, in the order of slots. It is valid until the next
// Step.
func (c *cacheState) Rows() []sample.NodeID { return c.nodes[:c.used] }

// Trim empties all slots but the first ones.
func (c *cacheState) Trim(slots int) { c.used = min(c.used, slots) }

// Step decides for the batch of turn now, which must be one more than in the call before. next
// holds the next use of each node; a node comes once in a batch. The result goes to out, whose
// memory is reused. Amortized O(1) per node.
func (c *cacheState) Step(now uint32, nodes []sample.NodeID, next []uint32, out *changes) error {
	if cap(out.From) < len(nodes) || cap(out.Keep) < len(nodes) {
		out.From = make([]uint32, len(nodes), len(nodes)+len(nodes)/8)
		out.Keep = make([]uint32, 0, cap(out.From))
	}
	out.From, out.Slots, out.Hits = out.From[:len(nodes)], out.Slots[:0], 0
	out.Alone = false
	clear(out.From)
	if c.InPlace {
		c.unpin(now)
	}
	if err := c.hit(now, nodes, next, out); err != nil {
		return err
	}
	out.Keep = out.Keep[:len(nodes)]
	n := 0
	for i, s := range out.From { // without a branch, which would often be mispredicted
		out.Keep[n] = uint32(i)
		n += int((uint64(s) - 1) >> 63)
	}
	out.Keep = out.Keep[:n]
	for ; c.used < c.Most && len(out.Slots) < n; c.used++ {
		out.Slots = append(out.Slots, uint32(c.used))
	}
	if c.InPlace {
		return c.placeAll(now, nodes, next, out)
	}
	c.placeNearest(nodes, next, out)
	return nil
}

// hit takes the rows held for turn now off their stack, and holds them for their next use.
func (c *cacheState) hit(now uint32, nodes []sample.NodeID, next []uint32, out *changes) error {
	pins := &c.pinned[now%framesInPlace]
	for rows := c.stacks.Chunk(now); len(rows) > 0; rows = c.stacks.Chunk(now) {
		for _, row := range rows {
			slot, i := uint32(row>>32), uint32(row)
			if int(i) >= len(nodes) || out.From[i] != 0 {
				return fmt.Errorf("node %d is not at position %d of %d", c.nodes[slot], i,
					len(nodes))
			}
			out.From[i] = slot + 1
			if c.InPlace {
				*pins = append(*pins, pin{slot, next[i]})
			} else {
				c.push(next[i], slot)
			}
		}
		out.Hits += len(rows)
		c.stacks.Drop(now)
	}
	if bug.Checking {
		for i, s := range out.From {
			bug.Check(s == 0 || c.nodes[s-1] == nodes[i], "superbatch: slot %d", s)
		}
	}
	return nil
}

// placeNearest chooses which of the read rows, out.Keep, are kept, and gives these a slot.
func (c *cacheState) placeNearest(nodes []sample.NodeID, next []uint32, out *changes) {
	last, quota := c.makeRoom(next, out)
	keep := out.Keep[:0]
	for _, i := range out.Keep {
		turn := next[i] >> c.bits
		if turn > last || turn == last && quota == 0 {
			continue
		}
		if turn == last {
			quota--
		}
		slot := out.Slots[len(keep)]
		keep = append(keep, i)
		c.nodes[slot] = nodes[i]
		c.push(next[i], slot)
	}
	out.Keep = keep
	bug.Check(len(keep) == len(out.Slots), "superbatch: %d rows for %d slots", len(keep),
		len(out.Slots))
}

// makeRoom takes rows off the stacks, and adds their slots to out.Slots, so that the rows of
// out.Keep that stay have a slot each. Those that stay are used before turn last, or are the first
// quota rows used in that turn. Among rows used in the same turn, held ones stay rather than read
// ones, since they need not be copied.
func (c *cacheState) makeRoom(next []uint32, out *changes) (last uint32, quota int) {
	excess := len(out.Keep) - len(out.Slots)
	if excess == 0 {
		return uint32(len(c.read.count)), 0
	}
	for _, i := range out.Keep {
		c.read.add(next[i] >> c.bits)
	}
	for excess > 0 {
		last = max(c.stacks.set.Last(), c.read.set.Last())
		n := int(c.read.take(last))
		quota = max(0, n-excess)
		excess -= n - quota
		if n = min(excess, c.stacks.Len(last)); n > 0 {
			out.Slots = c.stacks.Pop(last, n, out.Slots)
			excess -= n
		}
	}
	c.read.clear()
	return last, quota
}

// placeAll gives all read rows of a batch a slot, and pins the batch's slots. If there are too few
// slots, it also takes those of the previous batch and sets out.Alone.
func (c *cacheState) placeAll(now uint32, nodes []sample.NodeID, next []uint32,
	out *changes) error {
	stacked := c.used - len(out.Slots) - len(c.pinned[0]) - len(c.pinned[1])
	if out.Alone = len(out.Keep)-len(out.Slots) > stacked; out.Alone {
		c.unpin(now - 1)
	}
	for len(out.Slots) < len(out.Keep) {
		if c.stacks.set.Empty() {
			return errNoSlot
		}
		last := c.stacks.set.Last()
		n := min(len(out.Keep)-len(out.Slots), c.stacks.Len(last))
		out.Slots = c.stacks.Pop(last, n, out.Slots)
	}
	pins := &c.pinned[now%framesInPlace]
	for k, i := range out.Keep {
		c.nodes[out.Slots[k]] = nodes[i]
		*pins = append(*pins, pin{out.Slots[k], next[i]})
	}
	later := (*pins)[:0]
	for _, p := range *pins {
		if p.use>>c.bits == now+1 {
			c.push(p.use, p.slot)
		} else {
			later = append(later, p)
		}
	}
	*pins = later
	return nil
}

// unpin puts the pinned slots of a batch on the stacks. That batch is done with, and turn now has
// the same place in c.pinned.
func (c *cacheState) unpin(now uint32) {
	pins := &c.pinned[now%framesInPlace]
	for _, p := range *pins {
		c.push(p.use, p.slot)
	}
	*pins = (*pins)[:0]
}

// UnpinAll forgets the pins at the end of a superbatch. In the next one, all slots get new uses.
func (c *cacheState) UnpinAll() { c.pinned = [framesInPlace][]pin{} }

// Close gives the memory back.
func (c *cacheState) Close() error {
	c.held.Release()
	return c.arena.Free()
}

// add counts a read row whose next use is in turn.
func (r *readTurns) add(turn uint32) {
	if r.count[turn] == 0 {
		r.set.Add(turn)
	}
	r.count[turn]++
}

// take returns the number of read rows of a turn, and no longer counts them.
func (r *readTurns) take(turn uint32) uint32 {
	n := r.count[turn]
	if n > 0 {
		r.count[turn] = 0
		r.set.Remove(turn)
	}
	return n
}

func (r *readTurns) clear() {
	for !r.set.Empty() {
		r.take(r.set.Last())
	}
}

// Encode appends the record of a batch's changes: about 3 bytes per node for a million slots, and 4
// for each row that is kept. gaps is scratch memory, which it returns.
func (c *changes) Encode(e *codec.Enc, gaps []uint32) []uint32 {
	gaps = gaps[:0]
	before := uint32(0)
	for _, i := range c.Keep {
		gaps = append(gaps, i-before)
		before = i
	}
	e.U32(word(c.Alone))
	putArray(e, c.From)
	putArray(e, gaps)
	putArray(e, c.Slots)
	return gaps
}

// word returns 1 for true and 0 for false.
func word(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// Decode reads what Encode wrote, and checks it for a batch of this number of nodes and a cache of
// this number of slots.
func (c *changes) Decode(payload []byte, nodes, slots int) (err error) {
	d := codec.NewDec(payload)
	c.Alone = d.U32() != 0
	for _, to := range []*[]uint32{&c.From, &c.Keep, &c.Slots} {
		if *to, err = takeArray(d, *to, nodes); err != nil {
			return err
		}
	}
	if len(c.From) != nodes || len(c.Keep) != len(c.Slots) {
		return fmt.Errorf("%d nodes of %d, %d kept in %d slots", len(c.From), nodes, len(c.Keep),
			len(c.Slots))
	}
	c.Hits = 0
	for _, s := range c.From {
		if s != 0 {
			c.Hits++
		}
		if int(s) > slots {
			return fmt.Errorf("a row comes from slot %d of %d", s-1, slots)
		}
	}
	at := uint64(0)
	for k, gap := range c.Keep {
		at += uint64(gap)
		if at >= uint64(nodes) || int(c.Slots[k]) >= slots {
			return fmt.Errorf("row %d of %d goes to slot %d of %d", at, nodes, c.Slots[k], slots)
		}
		c.Keep[k] = uint32(at)
	}
	return nil
}
