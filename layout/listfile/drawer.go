package listfile

import (
	"context"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listcode"
)

// Drawer draws entries of lists of Held: of a frontier of nodes at a time. It is for one goroutine.
//
// It finds lists in stages, each a loop over some nodes, and in each asks for the memory that the
// next one reads: first what tells where a list begins, then its head, and what is known of its
// block. While it is on its way other nodes are in the other stages.
type Drawer struct {
	h     *Held
	take  *listcode.Gatherer
	nodes []layout.NodeID
	found []found // parallel to nodes

	// places are what was asked for, in bits.
	places, blocks [findNodes * findStages]uint64
}

// found is where the list of a node is.
type found struct {
	list  listcode.Ref // of the part in its first block; of Count 0: it is empty
	start uint32       // if it goes on after that, the position of the first entry there
	head  uint32       // its first block
	last  uint32       // its last block, and there the position of the first entry
	tail  uint32
}

// foundBytes is the size of a found.
const foundBytes = 48

const (
	// findNodes is how many nodes go from stage to stage together.
	findNodes  = 8
	findStages = 4
)

// NewDrawer returns one without a frontier.
func (h *Held) NewDrawer() *Drawer {
	coding := listcode.Coding{PosBits: h.Shape.posBits}
	return &Drawer{h: h, take: listcode.NewGatherer(coding, h.bytes, h.Shape.BlockBytes)}
}

// Bytes is the memory that it takes for its frontier.
func (d *Drawer) Bytes() int64 { return foundBytes * int64(cap(d.found)) }

// Nodes are the frontier: those of the last Find, as long as it did not fail.
func (d *Drawer) Nodes() []layout.NodeID { return d.nodes }

// Forget ends the frontier.
func (d *Drawer) Forget() { d.nodes = nil }

// atOnce is after how many nodes, or lists, somebody may have ended what takes long.
const atOnce = 1024

// Find makes nodes the frontier, and writes how long their lists are to deg.
func (d *Drawer) Find(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	d.nodes = nil
	for _, v := range nodes {
		if uint64(v) >= d.h.nodes {
			return layout.OutOfRange(v, d.h.nodes)
		}
	}
	d.found = mem.Resize(d.found, len(nodes))
	for at := 0; at < len(nodes)+(findStages-1)*findNodes; at += findNodes {
		if at%atOnce == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		d.ask(nodes, at)
		d.locate(nodes, at-findNodes)
		d.parse(nodes, deg, at-2*findNodes)
		d.end(nodes, deg, at-3*findNodes)
	}
	d.nodes = nodes
	return ctx.Err()
}

// stage are the nodes from number at on that are in a stage, and the slots of what is noted of
// them.
func stage(nodes []layout.NodeID, at int) (some []layout.NodeID, slot int) {
	if at < 0 || at >= len(nodes) {
		return nil, 0
	}
	return nodes[at:min(at+findNodes, len(nodes))], at & (findNodes * (findStages - 1))
}

// ask asks for what tells where lists begin.
func (d *Drawer) ask(nodes []layout.NodeID, at int) {
	some, slot := stage(nodes, at)
	places := d.places[slot:][:len(some)]
	for i, v := range some {
		places[i] = d.h.heads.line(v)
	}
	listcode.Prefetch(d.h.heads.b, places, int(d.h.heads.groupSize))
}

// headBytes is how far the head of a list may be read.
const headBytes = 2 * listcode.Slack

// nowhere is the place of an empty list: that of the header of the first block.
const nowhere = 0

// locate reads it, and asks for the heads of the lists.
func (d *Drawer) locate(nodes []layout.NodeID, at int) {
	some, slot := stage(nodes, at)
	h, places, blocks := d.h, d.places[slot:][:len(some)], d.blocks[slot:][:len(some)]
	size := 8 * uint64(h.Shape.BlockBytes)
	for i, v := range some {
		block, unit, ok := h.head(v, h.heads.at(v))
		if places[i] = uint64(block)*size + unitBits*unit; !ok {
			places[i] = nowhere
		}
		blocks[i] = uint64(block) * indexWords * 64
		d.found[at+i].head = uint32(block)
	}
	listcode.Prefetch(h.bytes, places, headBytes)
	listcode.Prefetch(mem.BytesOf(h.index), blocks, 3*8)
}

// parse reads the heads of lists, and asks for what the last block has of those that go on.
func (d *Drawer) parse(nodes []layout.NodeID, deg []uint32, at int) {
	some, slot := stage(nodes, at)
	h, places := d.h, d.places[slot:][:len(some)]
	long := d.blocks[slot:][:0]
	for i, v := range some {
		f := &d.found[at+i]
		if places[i] == nowhere {
			f.list.Count, f.start, deg[at+i] = 0, 0, 0
			continue
		}
		head := int(f.head)
		h.coding(head).ReadRef(&f.list, h.bytes, places[i])
		f.start, deg[at+i] = 0, f.list.Count
		if h.goesOn(v, head) {
			last := h.Last(v, head)
			f.start, f.last, f.tail = f.list.Count, uint32(last), uint32(h.Key(last))
			long = append(long, uint64(last)*listcode.RefBytes*8)
		}
	}
	listcode.Prefetch(h.firstBytes, long, 1)
}

// end reads where the lists end that go on.
func (d *Drawer) end(nodes []layout.NodeID, deg []uint32, at int) {
	some, _ := stage(nodes, at)
	for i := range some {
		if f := &d.found[at+i]; f.start > 0 {
			deg[at+i] = d.h.end(int(f.last))
		}
	}
}

// Gather writes the entries of the lists at positions pos[off[i]:off[i+1]], each below its length,
// to the same places of out.
func (d *Drawer) Gather(ctx context.Context, off, pos, out []uint32) error {
	for from := 0; from < len(d.nodes); from += atOnce {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(from+atOnce, len(d.nodes))
		ids := out[off[from]:off[end]]
		d.take.Begin(ids)
		for i := from; i < end; i++ {
			if next := i + seekAhead; next < end && d.found[next].start > 0 {
				d.seek(&d.found[next], pos[off[next]:off[next+1]])
			}
			if f := &d.found[i]; f.start == 0 {
				d.take.List(&f.list, pos[off[i]:off[i+1]])
			} else {
				d.parts(f, pos[off[i]:off[i+1]])
			}
		}
		d.take.End()
		if err := checkIDs(ids, d.h.Shape.nodes); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// seekAhead is how many lists before its own the index is asked for the blocks of a long one.
const seekAhead = 8

// seek asks for the first lists of the blocks of positions of a list, as far as they are few.
func (d *Drawer) seek(f *found, pos []uint32) {
	pos = pos[:min(len(pos), len(d.places))]
	places := d.places[:len(pos)]
	for i, p := range pos {
		places[i] = uint64(f.guess(p)) * listcode.RefBytes * 8
	}
	listcode.Prefetch(d.h.firstBytes, places, 1)
}

// guess is about where the block of a position is: those between the first and the last have about
// as many entries each.
func (f *found) guess(pos uint32) int {
	switch {
	case pos < f.start:
		return int(f.head)
	case pos >= f.tail:
		return int(f.last)
	}
	between := uint64(f.last-f.head) - 1
	return int(f.head) + 1 + int(uint64(pos-f.start)*between/uint64(f.tail-f.start))
}

// parts draws entries of a list that is in several blocks.
func (d *Drawer) parts(f *found, pos []uint32) {
	for i, p := range pos {
		list := &f.list
		if p >= f.start {
			list = &d.h.firsts[d.h.of(p, f)]
		}
		d.take.List(list, pos[i:i+1])
	}
}

// of is the block of a position of a list, after those in the first.
func (h *Held) of(pos uint32, f *found) int {
	at := f.guess(pos)
	for pos < h.firsts[at].From {
		at--
	}
	for pos >= h.end(at) {
		at++
	}
	return at
}

// Block is the block that has the entry at a position of the list of node i of the frontier.
func (d *Drawer) Block(i int, pos uint32) int {
	f := &d.found[i]
	if f.start == 0 || pos < f.start {
		return int(f.head)
	}
	return d.h.of(pos, f)
}
