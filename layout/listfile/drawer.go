package listfile

import (
	"context"
	"fmt"
	"math/bits"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listcode"
)

// Drawer draws entries of lists of Held: of a frontier of nodes at a time. It is for one goroutine.
//
// It finds lists in stages, each a loop over some nodes, and in each asks for the memory that the
// next one reads: first what tells where a list ends, then of its block where that begins, then the
// head of the list. While it is on its way other nodes are in the other stages.
type Drawer struct {
	h     *Held
	take  *listcode.Gatherer
	nodes []layout.NodeID
	found []found // parallel to nodes

	// Of the nodes that are between stages: what was asked for, and where lists end.
	places, more [findNodes * findStages]uint64
	spans        [findNodes * findStages]listSpan
}

// found is where the list of a node is.
type found struct {
	list  listcode.Ref // of the part in its last block
	start uint32       // the position of the first entry there
	head  uint32       // the block where the list begins, if it begins before its last
	last  uint32       // its last block; nowhere: it is empty
}

// foundBytes is the size of a found.
const foundBytes = 32

// listSpan is where the list of a node ends in its last block, and where that of the node before
// it does.
type listSpan struct{ from, to uint32 }

// nowhere is the block of a list that is empty.
const nowhere = 1<<32 - 1

const (
	// findNodes is how many nodes go from stage to stage together.
	findNodes  = 16
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
		d.parse(nodes, deg, at-3*findNodes)
		d.locate(nodes, at-2*findNodes)
		d.skip(nodes, at-findNodes)
		d.ask(nodes, at)
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

// ask asks for what tells where lists end, and for the blocks to begin with.
func (d *Drawer) ask(nodes []layout.NodeID, at int) {
	some, slot := stage(nodes, at)
	places, more := d.places[slot:][:len(some)], d.more[slot:][:len(some)]
	width := uint64(d.h.Shape.endBits)
	for i, v := range some {
		places[i], more[i] = uint64(v)*width, uint64(v/skipNodes)*4*8
	}
	listcode.Prefetch(d.h.ends, places)
	listcode.Prefetch(mem.BytesOf(d.h.skip), more)
}

// skip reads them, and asks for where the blocks begin.
func (d *Drawer) skip(nodes []layout.NodeID, at int) {
	some, slot := stage(nodes, at)
	h, places, spans := d.h, d.places[slot:][:len(some)], d.spans[slot:][:len(some)]
	for i, v := range some {
		spans[i].from, spans[i].to = h.span(v)
		places[i] = uint64(h.skip[v/skipNodes]) * indexWords * 64
	}
	listcode.Prefetch(mem.BytesOf(h.index), places)
}

// locate finds the lists, and asks for their heads.
func (d *Drawer) locate(nodes []layout.NodeID, at int) {
	some, slot := stage(nodes, at)
	h, places, spans := d.h, d.places[slot:][:len(some)], d.spans[slot:][:len(some)]
	more := d.more[slot:][:len(some)]
	for i, v := range some {
		n := h.lastFrom(int(places[i]/(indexWords*64)), v)
		f := &d.found[at+i]
		*f = found{last: nowhere}
		places[i] = 0
		if n < 0 {
			continue
		}
		s, key, head := &spans[i], h.index[indexWords*n], h.index[indexWords*n+1]
		if key>>32 == uint64(v) {
			s.from = 0
			if uint32(key) > 0 && s.to > 0 {
				f.start, f.head = uint32(key), uint32(h.Head(v, n))
			}
		}
		if s.from < s.to {
			f.last = uint32(n)
			places[i] = h.listsAt(n, head) + unitBits*uint64(s.from)
			more[i] = head
		}
	}
	listcode.Prefetch(h.bytes, places)
}

// lastFrom is Last, if the first n blocks are not after the node's list. It is nearly always one
// of the next two.
func (h *Held) lastFrom(n int, v layout.NodeID) int {
	key := Key(v, 1<<32-1)
	two := h.index[indexWords*n:][: indexWords+1 : indexWords+1]
	_, above := bits.Sub64(key, two[0], 0)
	_, above2 := bits.Sub64(key, two[indexWords], 0)
	n += 2 - int(above+above2)
	if above2 == 0 {
		n = h.upper(min(n, h.blocks), key)
	}
	return n - 1
}

// parse reads the heads of lists.
func (d *Drawer) parse(nodes []layout.NodeID, deg []uint32, at int) {
	some, slot := stage(nodes, at)
	h, places, more := d.h, d.places[slot:][:len(some)], d.more[slot:][:len(some)]
	for i := range some {
		f := &d.found[at+i]
		if f.last == nowhere {
			deg[at+i] = 0
			continue
		}
		f.list = h.coding(more[i]).RefAt(h.bytes, places[i])
		deg[at+i] = f.start + f.list.Count
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
				d.parts(d.nodes[i], f, pos[off[i]:off[i+1]])
			}
		}
		if err := d.take.End(); err != nil {
			return fmt.Errorf("blocks say otherwise than others how long lists are: %w", err)
		}
		if err := checkIDs(ids, d.h.Shape.nodes); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// seekAhead is how many lists before its own the index is asked for the blocks of a long one.
const seekAhead = 8

// seek asks for where the blocks of positions of a list begin, as far as they are few.
func (d *Drawer) seek(f *found, pos []uint32) {
	pos = pos[:min(len(pos), len(d.places))]
	places := d.places[:len(pos)]
	for i, p := range pos {
		places[i] = uint64(f.guess(min(p, f.start-1))) * indexWords * 64
	}
	listcode.Prefetch(mem.BytesOf(d.h.index), places)
}

// guess is about where the block of a position is, before the last one: blocks have about as many
// entries each.
func (f *found) guess(pos uint32) int {
	return int(f.head) + int(uint64(pos)*uint64(f.last-f.head)/uint64(f.start))
}

// parts draws entries of a list that is in several blocks.
func (d *Drawer) parts(v layout.NodeID, f *found, pos []uint32) {
	h := d.h
	for _, p := range pos {
		if p >= f.start {
			p -= f.start
			d.take.List(&f.list, []uint32{p})
			continue
		}
		b := h.of(v, p, f)
		key, head := h.index[indexWords*b], h.index[indexWords*b+1]
		at := h.listsAt(b, head)
		if key>>32 == uint64(v) {
			p -= uint32(key)
		} else {
			from, _ := h.span(v)
			at += unitBits * uint64(from)
		}
		d.take.Entry(h.coding(head), at, p)
	}
}

// of is the block of a position, before those in the last, of the list of a node.
func (h *Held) of(v layout.NodeID, pos uint32, f *found) int {
	key := Key(v, pos)
	at := f.guess(pos)
	for h.Key(at) > key {
		at--
	}
	for h.Key(at+1) <= key {
		at++
	}
	return at
}

// Block is the block that has the entry at a position of the list of node i of the frontier.
func (d *Drawer) Block(i int, pos uint32) int {
	if f := &d.found[i]; pos < f.start {
		return d.h.of(d.nodes[i], pos, f)
	}
	return int(d.found[i].last)
}
