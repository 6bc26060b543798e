package listfile

import (
	"context"
	"math/bits"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listcode"
)

// Drawer draws entries of lists of Held, for a frontier of nodes at a time. One goroutine may use
// it.
//
// It finds lists in stages, each a loop over some nodes, and each stage prefetches the memory that
// the next one reads: first the place where a list begins, then its head and the index of its
// block. While memory is on its way, other nodes go through the other stages.
type Drawer struct {
	h      *Held
	locate locator
	take   *listcode.Gatherer
	nodes  []layout.NodeID
	// lists holds for each node its list, or the part of it in its first block. Count 0 is an empty
	// list.
	lists []listcode.Ref
	found []found // parallel to lists

	stages [findStages]findStage
	places [findNodes]uint64        // bits that are prefetched
	parts  [partsMost]*listcode.Ref // parts that hold entries of a list in several blocks
}

// found is what else is known of the list of a node.
type found struct {
	head  uint32 // its first block
	start uint32 // position of the first entry after that block, 0 if none
	last  uint32 // its last block
	// scale is the number of blocks after the first per entry after it, in 2^-32.
	scale uint32
}

// findStage holds what is known of the nodes that go through the stages together.
type findStage struct {
	at, codings [findNodes]uint64
	blocks      [findNodes]uint32
	some        [findNodes]uint32 // indexes of some of the nodes
	long        int               // how many of them have lists in several blocks
}

// FoundBytes is what a Drawer takes for each node of a frontier, in bytes.
const FoundBytes = listcode.RefBytes + 16

const (
	// findNodes is how many nodes go from stage to stage together.
	findNodes  = 16
	findStages = 3
)

// NewDrawer returns a Drawer without a frontier.
func (h *Held) NewDrawer() *Drawer {
	coding := listcode.Coding{PosBits: h.Shape.posBits}
	return &Drawer{h: h, take: listcode.NewGatherer(coding, h.bytes, h.Shape.BlockBytes),
		locate: locator{directory: &h.heads, Blocks: h.bytes,
			Index:      mem.BytesOf(h.index),
			BlockShift: bits.TrailingZeros(uint(8 * h.Shape.BlockBytes))}}
}

// Bytes returns the memory that the frontier takes, in bytes.
func (d *Drawer) Bytes() int64 { return FoundBytes * int64(cap(d.found)) }

// Forget drops the frontier.
func (d *Drawer) Forget() { d.nodes = nil }

// atOnce is how many nodes, or lists, are done between checks of the context.
const atOnce = 1024

// Find makes nodes the frontier, and writes the lengths of their lists to deg.
func (d *Drawer) Find(ctx context.Context, nodes []layout.NodeID, deg []uint32) error {
	d.nodes = nil
	for _, v := range nodes {
		if uint64(v) >= d.h.nodes {
			return layout.OutOfRange(v, d.h.nodes)
		}
	}
	d.found, d.lists = mem.Resize(d.found, len(nodes)), mem.Resize(d.lists, len(nodes))
	for at := 0; at < len(nodes)+(findStages-1)*findNodes; at += findNodes {
		if at%atOnce == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		d.begin(nodes, at)
		d.read(nodes, deg, at-findNodes)
		d.end(deg, at-2*findNodes)
	}
	d.nodes = nodes
	return ctx.Err()
}

// stage returns the stage of the nodes from index at on, and how many these are.
func (d *Drawer) stage(at, nodes int) (s *findStage, n int) {
	if at < 0 {
		return nil, 0
	}
	return &d.stages[at/findNodes%findStages], min(findNodes, nodes-at)
}

// begin finds where lists begin, and prefetches the memory there.
func (d *Drawer) begin(nodes []layout.NodeID, at int) {
	s, n := d.stage(at, len(nodes))
	if n <= 0 {
		return
	}
	ids := mem.View[uint32](mem.BytesOf(nodes))
	seek := d.locate.Locate(ids, at, s.at[:n], s.blocks[:], s.some[:])
	for _, i := range s.some[:seek] {
		block := d.h.seek(nodes[at+int(i)], int(s.blocks[i]))
		s.at[i] += uint64(block-int(s.blocks[i])) << d.locate.BlockShift
		s.blocks[i] = uint32(block)
		d.places[0] = s.at[i]
		listcode.Prefetch(d.h.bytes, d.places[:1], 2*listcode.Slack)
	}
}

// read reads the heads of lists, and prefetches the last blocks of lists in several blocks.
func (d *Drawer) read(nodes []layout.NodeID, deg []uint32, at int) {
	s, n := d.stage(at, len(nodes))
	if n <= 0 {
		return
	}
	h, all, long := d.h, d.found[at:at+n], 0
	for i, v := range nodes[at : at+n] {
		block := int(s.blocks[i])
		words := h.index[indexWords*block:][:indexWords+1]
		s.codings[i], all[i] = words[1], found{head: uint32(block)}
		// Whether a list is in several blocks cannot be predicted: it is always noted, and counted
		// or not.
		s.some[long] = uint32(i)
		if next := words[indexWords]; next>>32 == uint64(v) && uint32(next) > 0 {
			long++
		}
	}
	heads := listcode.Heads{At: s.at[:n], Codings: s.codings[:n]}
	listcode.ReadRefs(h.bytes, h.Shape.posBits, heads, d.lists[at:], deg[at:])
	s.long = long
	for k, i := range s.some[:long] {
		f := &all[i]
		f.start = deg[at+int(i)]
		f.last = f.head + uint32(h.runAfter(int(f.head)))
		d.places[k] = uint64(f.last) * listcode.RefBytes * 8
	}
	listcode.Prefetch(h.firstBytes, d.places[:long], 1)
}

// end reads where lists in several blocks end.
func (d *Drawer) end(deg []uint32, at int) {
	s, n := d.stage(at, len(d.found))
	if n <= 0 {
		return
	}
	for _, i := range s.some[:s.long] {
		f := &d.found[at+int(i)]
		last := &d.h.firsts[f.last]
		deg[at+int(i)] = last.From + last.Count
		if between := uint64(f.last-f.head) - 1; last.From > f.start {
			f.scale = uint32(between << 32 / uint64(last.From-f.start))
		}
	}
}

// Gather writes the entries at positions pos[off[i]:off[i+1]] of list i, each below its length, to
// the same places of out.
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
				d.take.List(&d.lists[i], pos[off[i]:off[i+1]])
			} else {
				d.drawParts(i, pos[off[i]:off[i+1]])
			}
		}
		d.take.End()
		if err := checkIDs(ids, d.h.Shape.nodes); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// seekAhead is how many lists in advance the blocks of a long list are prefetched.
const seekAhead = 8

// seek prefetches the first lists of the blocks of some positions, as many as there is room for.
func (d *Drawer) seek(f *found, pos []uint32) {
	pos = pos[:min(len(pos), len(d.places))]
	places := d.places[:len(pos)]
	for i, p := range pos {
		places[i] = uint64(f.guess(p)) * listcode.RefBytes * 8
	}
	listcode.Prefetch(d.h.firstBytes, places, 1)
}

// guess returns about which block has a position: the blocks between the first and the last hold
// about the same number of entries each.
func (f *found) guess(pos uint32) uint32 {
	if pos < f.start {
		return f.head
	}
	return min(f.last, f.head+1+uint32(uint64(pos-f.start)*uint64(f.scale)>>32))
}

// partsMost is how many entries of a list in several blocks are drawn together.
const partsMost = 16

// drawParts draws entries of list n of the frontier, which is in several blocks.
func (d *Drawer) drawParts(n int, pos []uint32) {
	f, first := &d.found[n], &d.lists[n]
	for len(pos) > 0 {
		some := pos[:min(len(pos), partsMost)]
		pos = pos[len(some):]
		parts := d.parts[:len(some)]
		for i, p := range some {
			if parts[i] = first; p >= f.start {
				parts[i] = &d.h.firsts[d.h.of(p, f)]
			}
		}
		d.take.Each(parts, some)
	}
}

// of returns the block of a position of a list, if it is not in the first.
func (h *Held) of(pos uint32, f *found) int {
	at := int(f.guess(pos))
	for pos < h.firsts[at].From {
		at--
	}
	for pos >= h.end(at) {
		at++
	}
	return at
}

// Block returns the block that has the entry at a position of the list of node i of the frontier.
func (d *Drawer) Block(i int, pos uint32) int {
	f := &d.found[i]
	if f.start == 0 || pos < f.start {
		return int(f.head)
	}
	return d.h.of(pos, f)
}
