// Package changeset plans the cache of a superbatch from all accesses to come: what each batch
// finds, keeps and gives up, as the optimal policy of Belady does. Accesses and their next uses go
// through files, one range of nodes after the other, so that memory does not grow with their
// number.
package changeset

import (
	"errors"
	"fmt"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/sample"
)

// FramesInPlace is how many batches are in memory if rows are read in place: one is used, and the
// rows that the next one misses are read at the same time, to slots that neither needs for others.
const FramesInPlace = 2

// Changes are what the cache does for one batch.
type Changes struct {
	// From says for each node of the batch where its row comes from: slot+1, or 0 if it is read.
	From []uint32
	// Keep are the positions in the batch of the rows that go to Slots when the batch is
	// assembled, each replacing what the slot held; ascending.
	Keep, Slots []uint32
	// Hits are the nodes that are not read.
	Hits int
	// Alone says that Slots has some that the batch before uses: they are free when it was used.
	Alone bool
}

// CacheState decides which rows a cache of numbered slots holds, when all accesses to come are
// known: after each batch, of the rows it held and those of the batch, it keeps the ones whose next
// use is nearest (Belady's rule over batches, which no other rule reads fewer rows than). A row
// without a known next use is the farthest, and stays while there is room: the superbatch that
// follows may need it.
//
// Held rows stand on stacks by the turn of their next use, so the hits of a turn are one stack, and
// the farthest rows are on the last that is not empty; no node is ever looked up. Memory: 16 bytes
// per slot and 12 per turn.
type CacheState struct {
	arena  *mem.Arena
	nodes  []sample.NodeID // of each slot
	pool   []byte          // of stacks
	used   int             // slots that hold rows: the first ones
	Most   int             // slots that may
	stacks turnStacks      // the last turn is never
	read   readTurns
	bits   int // of a use: see useBits
	held   mem.Account

	// inPlace says that a batch's rows lie in slots while it is used: see pin.
	InPlace bool
	pinned  [FramesInPlace][]pin // of the batches that are used or made ready
}

// pin keeps a slot off the stacks, and so from being taken, until its batch is done with: the rows
// of a batch stay while it is used, and while the rows of the next one are read. It goes on the
// stack of its turn then. A slot that the next batch uses again goes there at once, when the rows
// that the batch at hand misses have their slots: nothing takes it before it is pinned again.
type pin struct{ slot, use uint32 }

// ErrNoSlot says that a batch does not fit.
var ErrNoSlot = errors.New("its rows do not fit in the feature cache: raise --memory or " +
	"--feature-cache, or lower --batch or --fanout")

// readTurns counts the rows of one batch that were read, by the turn of their next use.
type readTurns struct {
	count []uint32
	set   turnSet // of the turns that are not 0
}

// SlotBytes is what cacheState takes per slot.
const SlotBytes = 4 + poolPerSlot

// NewCacheState is an empty cache of so many slots.
func NewCacheState(slots int, budget *mem.Budget) (*CacheState, error) {
	pool := PoolBytes(slots)
	arena, err := mem.NewArena(budget, "superbatch cache index", pool+4*int64(slots))
	if err != nil {
		return nil, err
	}
	b := arena.Bytes()
	return &CacheState{arena: arena, Most: slots, pool: Carve[uint8](&b, int(pool)),
		nodes: Carve[sample.NodeID](&b, slots),
		held:  mem.NewAccount(budget, "superbatch turns")}, nil
}

// Begin starts a superbatch of so many batches, whose uses have so many bits of position; resume is
// called for all held rows before the first step.
func (c *CacheState) Begin(batches, useBits int) error {
	c.held.Release()
	c.bits = useBits
	turns := batches + 2
	if err := c.held.Add(stackBytes(turns) + 4*int64(turns) + TurnSetBytes(turns)); err != nil {
		return err
	}
	c.stacks = NewTurnStacks(c.pool, len(c.nodes), turns)
	c.read = readTurns{count: make([]uint32, turns), set: NewTurnSet(turns)}
	return nil
}

// Resume takes the next uses of the held rows, from a slot on, but for those that may not stay.
func (c *CacheState) Resume(slot int, next []uint32) {
	for i, use := range next[:min(len(next), max(0, c.Most-slot))] {
		c.push(use, uint32(slot+i))
	}
}

// push puts a slot on the stack of its next use.
func (c *CacheState) push(use, slot uint32) {
	c.stacks.Push(use>>c.bits, uint64(slot)<<32|uint64(use&(1<<c.bits-1)))
}

// Rows are the nodes whose rows are held, in the order of slots.
func (c *CacheState) Rows() []sample.NodeID { return c.nodes[:c.used] }

// Trim empties the slots from so many on.
func (c *CacheState) Trim(slots int) { c.used = min(c.used, slots) }

// Step decides for the batch of a turn, which follows those before. next are the next uses of its
// nodes, each of which comes once; out's memory is reused. Amortized O(1) per node.
func (c *CacheState) Step(now uint32, nodes []sample.NodeID, next []uint32, out *Changes) error {
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
	for i, s := range out.From { // without a branch, which would be a guess
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

// hit takes the rows that are held for a turn, and holds them for their next use.
func (c *CacheState) hit(now uint32, nodes []sample.NodeID, next []uint32, out *Changes) error {
	pins := &c.pinned[now%FramesInPlace]
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

// placeNearest gives slots to those of the rows that were read, which are out.Keep, that are kept.
func (c *CacheState) placeNearest(nodes []sample.NodeID, next []uint32, out *Changes) {
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

// makeRoom takes rows off so that those of out.Keep that stay can be placed, in out.Slots: the ones
// used before the turn last, and so many of that turn. Of rows that are used at the same turn the
// held ones stay: nothing needs to be copied.
func (c *CacheState) makeRoom(next []uint32, out *Changes) (last uint32, quota int) {
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

// placeAll gives all rows of a batch that are read a slot, and pins the batch's slots. If there are
// too few, the batch before is unpinned, and the batch is not read before that one is done with.
func (c *CacheState) placeAll(now uint32, nodes []sample.NodeID, next []uint32,
	out *Changes) error {
	stacked := c.used - len(out.Slots) - len(c.pinned[0]) - len(c.pinned[1])
	if out.Alone = len(out.Keep)-len(out.Slots) > stacked; out.Alone {
		c.unpin(now - 1)
	}
	for len(out.Slots) < len(out.Keep) {
		if c.stacks.set.Empty() {
			return ErrNoSlot
		}
		last := c.stacks.set.Last()
		n := min(len(out.Keep)-len(out.Slots), c.stacks.Len(last))
		out.Slots = c.stacks.Pop(last, n, out.Slots)
	}
	pins := &c.pinned[now%FramesInPlace]
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

// unpin is for the slots of the batch that is done with, whose memory that of a turn takes.
func (c *CacheState) unpin(now uint32) {
	pins := &c.pinned[now%FramesInPlace]
	for _, p := range *pins {
		c.push(p.use, p.slot)
	}
	*pins = (*pins)[:0]
}

// UnpinAll forgets the pins at the end of a superbatch, whose slots all have new uses in the next.
func (c *CacheState) UnpinAll() { c.pinned = [FramesInPlace][]pin{} }

// Close gives the memory back.
func (c *CacheState) Close() error {
	c.held.Release()
	return c.arena.Free()
}

// add counts a row.
func (r *readTurns) add(turn uint32) {
	if r.count[turn] == 0 {
		r.set.Add(turn)
	}
	r.count[turn]++
}

// take is the number of rows of a turn, which are not counted any more.
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
