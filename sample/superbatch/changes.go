package superbatch

import (
	"errors"
	"fmt"

	"gdb/internal/invariants"
	"gdb/internal/mem"
	"gdb/sample"
)

// Changes are what the cache does for one batch.
type Changes struct {
	// From says for each node of the batch where its row comes from: slot+1, or 0 if it is read.
	From []uint32
	// Keep are the positions in the batch of the rows that go to Slots when the batch is
	// assembled, each replacing what the slot held; ascending.
	Keep, Slots []uint32
	// Hits are the nodes that are not read.
	Hits int
}

// cacheState decides which rows a cache of numbered slots holds, when all accesses to come are
// known: after each batch, of the rows it held and those of the batch, it keeps the ones whose next
// use is nearest (Belady's rule over batches, which no other rule reads fewer rows than). A row
// without a known next use is the farthest, and stays while there is room: the superbatch that
// follows may need it.
//
// Held slots stand in one list for each turn of their next use, so that the hits of a turn are had
// by walking its list, and the farthest is the head of the last list that is not empty. Memory: 12
// bytes per slot and 4 per turn; no node is ever looked up.
type cacheState struct {
	arena *mem.Arena
	nodes []sample.NodeID // of each slot
	at    []uint32        // of each slot: the position of its next use
	link  []uint32        // of each slot: the next one in its list, +1; 0 ends it
	used  int             // slots that hold rows: the first ones
	turns superTurns

	// inPlace says that a batch's rows lie in slots while it is used: see pin.
	inPlace bool
	pinned  [FramesInPlace][]pin // of the batches that are used or made ready
}

// pin keeps a slot out of the lists, and so from being taken, until its batch is done with: the
// rows of a batch stay while it is used, and while the rows of the next one are read. It is listed
// for its turn then. A slot that the next batch uses again is listed at once, when the rows that
// the batch at hand misses have their slots: nothing takes it before it is pinned again.
type pin struct{ slot, turn uint32 }

// errNoSlot says that two batches do not fit.
var errNoSlot = errors.New("its rows and those of the batch before do not fit in the feature " +
	"cache together: raise --memory or --feature-cache, or lower --batch or --fanout")

// superTurns are the lists of one superbatch.
type superTurns struct {
	head []uint32 // of each turn's list: slot+1, or 0. The last turn is never.
	set  turnSet  // of the lists that are not empty
	held ledger
}

// slotBytes is what cacheState takes per slot.
const slotBytes = 12

func newCacheState(slots int, budget *mem.Budget) (*cacheState, error) {
	arena, err := mem.NewArena(budget, "superbatch cache index", slotBytes*int64(slots))
	if err != nil {
		return nil, err
	}
	b := arena.Bytes()
	return &cacheState{arena: arena, nodes: carve[sample.NodeID](&b, slots),
		at: carve[uint32](&b, slots), link: carve[uint32](&b, slots),
		turns: superTurns{held: ledger{budget: budget, what: "superbatch turns"}}}, nil
}

// begin starts a superbatch of so many batches; resume is called for all held rows before the first
// step.
func (c *cacheState) begin(batches int) error {
	c.turns.held.release()
	lists := batches + 2
	if err := c.turns.held.add(4*int64(lists) + turnSetBytes(lists)); err != nil {
		return err
	}
	c.turns.head, c.turns.set = make([]uint32, lists), newTurnSet(lists)
	return nil
}

// resume takes the next uses of the held rows, from a slot on.
func (c *cacheState) resume(slot int, after, at []uint32) {
	for i := range after {
		c.list(uint32(slot+i), c.turn(0, after[i]), at[i])
	}
}

// held are the nodes whose rows are held, in the order of slots.
func (c *cacheState) held() []sample.NodeID { return c.nodes[:c.used] }

// turn is the turn so many after another.
func (c *cacheState) turn(now, after uint32) uint32 {
	if after == 0 {
		return uint32(len(c.turns.head) - 1)
	}
	return now + after
}

// list puts a slot into the list of its next use.
func (c *cacheState) list(slot, turn, at uint32) {
	invariants.Check(int(turn) < len(c.turns.head), "superbatch: turn %d of %d", turn,
		len(c.turns.head))
	if c.turns.head[turn] == 0 {
		c.turns.set.add(turn)
	}
	c.at[slot], c.link[slot] = at, c.turns.head[turn]
	c.turns.head[turn] = slot + 1
}

// step decides for the batch of a turn, which follows those before. after and at are the next uses
// of its nodes, each of which comes once; out's memory is reused. Amortized O(1) per node.
func (c *cacheState) step(now uint32, nodes []sample.NodeID, after, at []uint32,
	out *Changes) error {
	if cap(out.From) < len(nodes) {
		out.From = make([]uint32, len(nodes), len(nodes)+len(nodes)/8)
	}
	out.From = out.From[:len(nodes)]
	clear(out.From)
	out.Keep, out.Slots, out.Hits = out.Keep[:0], out.Slots[:0], 0
	if c.inPlace {
		c.unpin(now)
	}
	if err := c.hit(now, nodes, out); err != nil {
		return err
	}
	if c.inPlace {
		return c.placeAll(now, nodes, after, at, out)
	}
	for i, s := range out.From {
		if s != 0 {
			c.list(s-1, c.turn(now, after[i]), at[i])
		}
	}
	for i, s := range out.From {
		if s == 0 {
			c.place(uint32(i), nodes[i], c.turn(now, after[i]), at[i], out)
		}
	}
	c.settle(nodes, out)
	return nil
}

// hit finds the rows of a batch that are held: the list of its turn.
func (c *cacheState) hit(now uint32, nodes []sample.NodeID, out *Changes) error {
	for s := c.turns.head[now]; s != 0; s = c.link[s-1] {
		i := c.at[s-1]
		if int(i) >= len(nodes) || nodes[i] != c.nodes[s-1] {
			return fmt.Errorf("node %d is not at position %d of %d", c.nodes[s-1], i, len(nodes))
		}
		out.From[i] = s
		out.Hits++
	}
	if out.Hits > 0 {
		c.turns.head[now] = 0
		c.turns.set.remove(now)
	}
	return nil
}

// placeAll gives all rows of a batch that are read a slot, and pins the batch's slots.
func (c *cacheState) placeAll(now uint32, nodes []sample.NodeID, after, at []uint32,
	out *Changes) error {
	for i, s := range out.From {
		if s != 0 {
			continue
		}
		slot, ok := c.take()
		if !ok {
			return errNoSlot
		}
		c.nodes[slot] = nodes[i]
		out.Keep, out.Slots = append(out.Keep, uint32(i)), append(out.Slots, slot)
	}
	pins, k := &c.pinned[now%FramesInPlace], 0
	for i, s := range out.From {
		slot := s - 1
		if s == 0 {
			slot = out.Slots[k]
			k++
		}
		if turn := c.turn(now, after[i]); turn == now+1 {
			c.list(slot, turn, at[i])
		} else {
			c.at[slot] = at[i]
			*pins = append(*pins, pin{slot, turn})
		}
	}
	return nil
}

// unpin lists the slots of the batch that is done with when that of a turn takes its memory.
func (c *cacheState) unpin(now uint32) {
	pins := &c.pinned[now%FramesInPlace]
	for _, p := range *pins {
		c.list(p.slot, p.turn, c.at[p.slot])
	}
	*pins = (*pins)[:0]
}

// unpinAll forgets the pins at the end of a superbatch, whose slots all have new uses in the next.
func (c *cacheState) unpinAll() { c.pinned = [FramesInPlace][]pin{} }

// take returns a slot that holds nothing yet, or else the one that is used last.
func (c *cacheState) take() (slot uint32, ok bool) {
	if c.used < len(c.nodes) {
		c.used++
		return uint32(c.used - 1), true
	}
	last, ok := c.turns.set.last()
	if !ok {
		return 0, false
	}
	return c.pop(last), true
}

// pop takes the first slot out of a list that is not empty.
func (c *cacheState) pop(turn uint32) (slot uint32) {
	slot = c.turns.head[turn] - 1
	if c.turns.head[turn] = c.link[slot]; c.turns.head[turn] == 0 {
		c.turns.set.remove(turn)
	}
	return slot
}

// place gives a slot to a row that was read, if its next use is not the farthest.
func (c *cacheState) place(i uint32, v sample.NodeID, turn, at uint32, out *Changes) {
	if c.used == len(c.nodes) {
		if last, ok := c.turns.set.last(); !ok || turn >= last {
			return
		}
	}
	slot, _ := c.take()
	c.nodes[slot] = v
	c.list(slot, turn, at)
	out.Keep, out.Slots = append(out.Keep, i), append(out.Slots, slot)
}

// settle takes out the rows whose slot went to a later one of the batch.
func (c *cacheState) settle(nodes []sample.NodeID, out *Changes) {
	n := 0
	for k, i := range out.Keep {
		if s := out.Slots[k]; c.nodes[s] == nodes[i] {
			out.Keep[n], out.Slots[n] = i, s
			n++
		}
	}
	out.Keep, out.Slots = out.Keep[:n], out.Slots[:n]
}

func (c *cacheState) close() error {
	c.turns.held.release()
	return c.arena.Free()
}
