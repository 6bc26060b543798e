//go:build cuda && cgo && linux

package cuda

import (
	"errors"
	"fmt"
	"math"

	"gdb/compute/backend"
	"gdb/internal/cuda"
	"gdb/internal/dense"
	"gdb/internal/mem"
)

// Numbers that the kernels have too: of words of a batch's state, and of values that a block adds
// up.
const (
	stateFailed     = 0
	stateNodeStarts = 1
	stateEdgeStarts = stateNodeStarts + backend.DrawHopsMost + 2
	stateWords      = stateEdgeStarts + backend.DrawHopsMost + 1
	tileItems       = 4 * blockThreads
)

const wordBytes = 4

// Neighbors copies lists to the device.
func (g *gpu) Neighbors(all []backend.Neighbors) (lists backend.NeighborLists, err error) {
	if len(all) != 1 && len(all) != 2 {
		return nil, fmt.Errorf("train: cuda: lists of %d directions: give one, or two", len(all))
	}
	l := &neighborLists{g: g, directions: len(all)}
	for i := range all {
		if err := l.copy(i, &all[i]); err != nil {
			err = fmt.Errorf("train: copy lists of neighbors to the device: %w", err)
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// neighborLists are the lists of one direction or two.
type neighborLists struct {
	g          *gpu
	directions int
	sides      [2]neighborSide
}

// neighborSide is where the lists of a direction are.
type neighborSide struct {
	offsets, ids uint64
	wide         bool
}

// copy copies the lists of direction i.
func (l *neighborLists) copy(i int, from *backend.Neighbors) (err error) {
	side, d := &l.sides[i], &l.g.driver
	side.wide = from.Wide
	width := 4
	if side.wide {
		width = 8
	}
	const what = "lists of neighbors"
	if side.offsets, err = d.alloc(what, width*int(from.Nodes+1)); err != nil {
		return err
	}
	if side.ids, err = d.alloc(what, max(1, wordBytes*int(from.Entries))); err != nil {
		return err
	}
	offsets, ids := side.offsets, side.ids
	first := uint64(0)
	var narrow []uint32
	var wide []uint64
	degrees := func(part []uint32) error {
		narrow, wide = narrow[:0], wide[:0]
		for _, n := range part {
			if side.wide {
				wide = append(wide, first)
			} else {
				narrow = append(narrow, uint32(first))
			}
			first += uint64(n)
		}
		bytes := mem.BytesOf(narrow)
		if side.wide {
			bytes = mem.BytesOf(wide)
		}
		offsets += uint64(len(bytes))
		return d.write(offsets-uint64(len(bytes)), bytes)
	}
	entries := func(part []uint32) error {
		ids += wordBytes * uint64(len(part))
		if ids > side.ids+wordBytes*from.Entries {
			return fmt.Errorf("more than %d entries", from.Entries)
		}
		return d.write(ids-wordBytes*uint64(len(part)), mem.BytesOf(part))
	}
	if err := from.Each(degrees, entries); err != nil {
		return err
	}
	nodes, copied := (offsets-side.offsets)/uint64(width), (ids-side.ids)/wordBytes
	if nodes != from.Nodes || copied != first {
		return fmt.Errorf("%d lists of %d entries, of which %d came, instead of %d", nodes, first,
			copied, from.Nodes)
	}
	return degrees([]uint32{0}) // where the last list ends
}

// Close frees the lists.
func (l *neighborLists) Close() (err error) {
	for _, side := range l.sides {
		for _, p := range []uint64{side.offsets, side.ids} {
			if p != 0 {
				err = errors.Join(err, l.g.driver.free(p))
			}
		}
	}
	l.sides = [2]neighborSide{}
	return err
}

// Drawer takes the memory to draw a sample.
func (l *neighborLists) Drawer(c backend.DrawConfig) (backend.NeighborDrawer, error) {
	if len(c.Fanout) == 0 || len(c.Fanout) > backend.DrawHopsMost {
		return nil, fmt.Errorf("train: cuda: draws of %d hops, not 1 to %d", len(c.Fanout),
			backend.DrawHopsMost)
	}
	for i, f := range c.Fanout {
		if f != backend.AllNeighbors && (f < 0 || f > backend.FanoutMost) {
			return nil, fmt.Errorf("train: cuda: fanout %d of hop %d, at most %d", f, i+1,
				backend.FanoutMost)
		}
	}
	n := &neighborDrawer{g: l.g, config: c}
	if err := n.open(l); err != nil {
		return nil, errors.Join(fmt.Errorf("train: open draws on the device: %w", err), n.Close())
	}
	return n, nil
}

// neighborDrawer draws samples in a stream of its own.
type neighborDrawer struct {
	g       *gpu
	config  backend.DrawConfig
	stream  *cuda.Stream
	kernels map[string]cuda.Function
	device  uint64 // its memory, where the words of the kernels' Drawing are
	at      drawingPieces
	host    *mem.Arena
	locked  bool
	// state, seeds and received are in host's memory: received has what comes from at.received.
	state    []uint64
	seeds    []uint32
	received [5][]uint32
	offsets  []uint32
}

// drawingPieces are places in the device's memory.
type drawingPieces struct {
	state, table, seeds uint64
	// received are nodes, offsets, neighbors, places in the sample, and degrees.
	received [5]uint64
}

// open takes memory, and tells the device where it is.
func (n *neighborDrawer) open(l *neighborLists) (err error) {
	c, d := &n.config, &n.g.driver
	device, host := c.Bytes()
	if n.device, err = d.alloc("draws of neighbors", int(device)); err != nil {
		return err
	}
	if n.host, err = mem.NewArena(n.g.budget, "samples from the device", host); err != nil {
		return err
	}
	if _, err = d.lock(n.host.Bytes()); err != nil {
		return err
	}
	n.locked = true
	n.slice()
	words := n.words(l)
	if err := d.write(n.device, mem.BytesOf(words)); err != nil {
		return err
	}
	return d.on(func() (err error) {
		if n.stream, err = d.device.NewStream(); err != nil {
			return err
		}
		n.kernels = map[string]cuda.Function{}
		for _, name := range []string{"draw_begin", "draw_degrees", "draw_tiles", "draw_offsets",
			"draw_choose", "draw_neighbors", "draw_firsts", "draw_number", "draw_dense"} {
			if n.kernels[name], err = d.module.Function(name); err != nil {
				return err
			}
		}
		return nil
	})
}

// slice gives out the host's memory.
func (n *neighborDrawer) slice() {
	c, rest := &n.config, n.host.Bytes()
	n.state = mem.View[uint64](rest[:stateWords*8])
	words := mem.View[uint32](rest[stateWords*8:])
	take := func(k int) (part []uint32) {
		part, words = words[:k:k], words[k:]
		return part
	}
	n.seeds = take(c.Seeds)
	for i, k := range n.sizes(c.Nodes, c.Nodes, c.Edges) {
		n.received[i] = take(k)
	}
	n.offsets = make([]uint32, len(c.Fanout)+2)
}

// sizes returns how many words are received of a sample, of whose nodes inner have lists.
func (n *neighborDrawer) sizes(nodes, inner, edges int) [5]int {
	all := [5]int{nodes, inner + 1, edges, edges}
	if n.config.Degrees {
		all[4] = nodes
	}
	return all
}

// words gives out the device's memory, behind what it returns: the kernels' Drawing.
func (n *neighborDrawer) words(l *neighborLists) (all []uint64) {
	c := &n.config
	for _, s := range l.sides {
		all = append(all, s.offsets, s.ids, uint64(boolWord(s.wide)))
	}
	log := c.SlotsLog()
	all = append(all, uint64(l.directions), uint64(c.Nodes), uint64(c.Edges), 1<<log,
		uint64(64-log))
	next := n.device + 1<<10
	give := func(bytes int) uint64 {
		p := next
		next += uint64(aligned(bytes))
		all = append(all, p)
		return p
	}
	n.at.state = give(stateWords * 8)
	for _, k := range []int{c.Nodes, c.Nodes, c.Nodes + 1, c.Edges, c.Edges} {
		give(wordBytes * k)
	}
	n.at.table = give(8 << log)
	give(8 * (max(c.Nodes, c.Edges)/tileItems + 1))
	n.at.seeds = give(wordBytes * c.Seeds)
	for i, k := range n.sizes(c.Nodes, c.Nodes, c.Edges) {
		n.at.received[i] = give(wordBytes * k)
	}
	if !c.Degrees {
		all[len(all)-1] = 0
	}
	return all
}

// Draw draws a sample. The host waits twice: for its size, and for the sample.
func (n *neighborDrawer) Draw(keys []uint64, seeds []uint32) (s backend.Sample, drawn bool,
	err error) {
	if len(seeds) == 0 || len(seeds) > n.config.Seeds || len(keys) != len(n.config.Fanout) {
		return s, false, nil
	}
	err = n.g.driver.on(func() error {
		copy(n.seeds, seeds)
		if err := n.queue(keys, len(seeds)); err != nil {
			return err
		}
		state := cuda.DevicePtr(n.at.state)
		if err := n.stream.CopyToHost(mem.BytesOf(n.state), state); err != nil {
			return err
		}
		if err := n.stream.Synchronize(); err != nil {
			return err
		}
		if drawn = n.state[stateFailed] == 0; !drawn {
			return nil
		}
		s, err = n.receive()
		return err
	})
	if err != nil {
		return s, false, fmt.Errorf("train: cuda: draw neighbors: %w", err)
	}
	return s, drawn, nil
}

// queue queues all kernels of a sample, with blocks for the largest: how much there is to do they
// find in the state.
func (n *neighborDrawer) queue(keys []uint64, seeds int) error {
	s, c := n.stream, &n.config
	if err := s.Zero(cuda.DevicePtr(n.at.state), stateWords*8); err != nil {
		return err
	}
	if err := s.Fill(cuda.DevicePtr(n.at.table), math.MaxUint32, 2<<c.SlotsLog()); err != nil {
		return err
	}
	if err := s.CopyToDevice(cuda.DevicePtr(n.at.seeds), mem.BytesOf(n.seeds[:seeds])); err != nil {
		return err
	}
	err := n.launch("draw_begin", blocksFor(seeds), seeds)
	nodes, edges := blocksFor(c.Nodes), blocksFor(c.Edges)
	for hop, key := range keys {
		fanout := c.Fanout[hop]
		if fanout == backend.AllNeighbors {
			fanout = math.MaxInt64
		}
		err = errors.Join(err,
			n.launch("draw_degrees", nodes, hop, fanout), n.launch("draw_tiles", 1, hop, 0),
			n.launch("draw_offsets", nodes, hop, fanout),
			n.launch("draw_choose", nodes, int(key), hop), n.launch("draw_neighbors", edges, hop),
			n.launch("draw_firsts", edges, hop), n.launch("draw_tiles", 1, hop, 1),
			n.launch("draw_number", edges, hop))
		if err != nil {
			return err
		}
	}
	return n.launch("draw_dense", edges, len(keys))
}

// launch queues a kernel, whose first parameter is the Drawing.
func (n *neighborDrawer) launch(name string, blocks int, parameters ...int) error {
	words := []cuda.Argument{cuda.Argument(n.device)}
	for _, p := range parameters {
		words = append(words, cuda.Int(p))
	}
	return n.stream.Launch(n.kernels[name], max(1, blocks), blockThreads, 0, words...)
}

// receive copies a sample to the host.
func (n *neighborDrawer) receive() (s backend.Sample, err error) {
	hops := len(n.config.Fanout)
	starts := n.state[stateNodeStarts:]
	nodes, inner := int(starts[hops+1]), int(starts[hops])
	edges := int(n.state[stateEdgeStarts+hops])
	parts := n.received
	for i, k := range n.sizes(nodes, inner, edges) {
		parts[i] = parts[i][:k]
		if err := n.stream.CopyToHost(mem.BytesOf(parts[i]),
			cuda.DevicePtr(n.at.received[i])); err != nil {
			return s, err
		}
	}
	for h := range n.offsets { // the outermost nodes stand first
		n.offsets[h] = uint32(nodes) - uint32(starts[hops+1-h])
	}
	s = backend.Sample{Nodes: parts[0], Neighbors: parts[2], Lists: dense.Lists{
		NodeIDOffsets: n.offsets, NbrOffsets: parts[1], ReprMap: parts[3], Degrees: parts[4]}}
	return s, n.stream.Synchronize()
}

// Close frees the memory.
func (n *neighborDrawer) Close() (err error) {
	d := &n.g.driver
	if n.stream != nil {
		err = d.on(func() error { return errors.Join(n.stream.Synchronize(), n.stream.Close()) })
	}
	if n.locked {
		err = errors.Join(err, d.unlock(n.host.Bytes()))
	}
	if n.host != nil {
		err = errors.Join(err, n.host.Free())
	}
	if n.device != 0 {
		err = errors.Join(err, d.free(n.device))
	}
	*n = neighborDrawer{g: n.g}
	return err
}
