package sample

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/internal/rng"
	"gdb/layout/topology"
)

// Config says how batches are sampled.
type Config struct {
	// Fanout is how many neighbors of a node are drawn at each hop, the first hop being the one
	// next to the seeds; All takes whole lists. Without any, a batch is its seeds.
	Fanout []int
	// LayerSize draws the neighbors of all nodes of a hop together, about so many at each hop, the
	// first hop being the one next to the seeds; see draw.LayerDrawer. It takes the place of
	// Fanout.
	LayerSize []int
	// Draw is how the neighbors of a node are drawn; layers are drawn in a way of their own, and
	// take DrawUniform. By weight and by time, the topologies have topology.ColumnReader sessions.
	// Default DrawUniform.
	Draw Draw
	Extras
	// Seed is the root of all draws.
	Seed uint64
	// Delta is how the nodes new to a batch are found. Default DeltaTable.
	Delta Delta
	// Budget counts the sampler's scratch memory; nil for none.
	Budget *mem.Budget
}

// Extras are what a batch has on request beside its nodes and their neighbors, of one direction.
type Extras struct {
	// Degrees asks for the lengths of the lists of all nodes of a batch, those of the last hop too:
	// a paged reader reads the blocks of these for nothing else.
	Degrees bool
	// EdgeWeights and EdgeTypes ask for those of the edges drawn. The topology has
	// topology.AttributeReader sessions.
	EdgeWeights, EdgeTypes bool
	// WeightSums asks for the sums of the weights of the whole lists of all nodes of a batch: every
	// entry of these is looked at. The topology has topology.ColumnReader sessions.
	WeightSums bool
}

// NodeBytes is what they take for each node of a batch.
func (x Extras) NodeBytes() (n int64) {
	for _, asked := range []bool{x.Degrees, x.WeightSums} {
		if asked {
			n += 4
		}
	}
	return n
}

// EntryBytes is what they take for each neighbor.
func (x Extras) EntryBytes() (n int64) {
	for _, asked := range []bool{x.EdgeWeights, x.EdgeTypes} {
		if asked {
			n += 4
		}
	}
	return n
}

// hopsMost is the largest number of hops of a sample. After some ten, every node that can be
// reached
// has been.
const hopsMost = 64

// Validate reports what is wrong with a configuration.
func (c Config) Validate() error {
	if len(c.LayerSize) > 0 {
		return c.validateLayers()
	}
	if len(c.Fanout) > hopsMost {
		return fmt.Errorf("sample: fanouts for %d hops, at most %d", len(c.Fanout), hopsMost)
	}
	for i, f := range c.Fanout {
		if f != All && (f < 1 || f > math.MaxInt32) {
			return fmt.Errorf("sample: fanout %d of hop %d: give a positive number, or all", f, i+1)
		}
	}
	return nil
}

// validateLayers reports what is wrong with a configuration of layers.
func (c Config) validateLayers() error {
	switch {
	case len(c.Fanout) > 0:
		return errors.New("sample: fanouts and layer sizes: give one of both, a number a hop")
	case len(c.LayerSize) > hopsMost:
		return fmt.Errorf("sample: layer sizes for %d hops, at most %d", len(c.LayerSize), hopsMost)
	case c.Draw == DrawWeighted:
		return errors.New("sample: layers are drawn by what nodes are to the sums over lists, " +
			"and not by the weights of edges: ask for the weights, which count in those sums")
	case c.Draw != DrawUniform:
		return errors.New("sample: layers are drawn by what nodes are to the sums over lists, " +
			"and not by the times of edges: draw uniformly, from a reader of the edges before " +
			"a time")
	}
	for i, n := range c.LayerSize {
		if n < 1 || n > math.MaxInt32 {
			return fmt.Errorf("sample: layer size %d of hop %d: give a positive number", n, i+1)
		}
	}
	return nil
}

// hops is the number of hops.
func (c *Config) hops() int { return max(len(c.Fanout), len(c.LayerSize)) }

// Sampler draws multi-hop samples. It is for one goroutine; make one for each.
//
// A hop goes over the whole frontier in stages, each a tight loop: degrees, offsets, positions,
// gather, and delta with relabeling. That is about twice as fast as node by node, and lets the
// paged reader fetch all blocks of a hop at once. Nothing is allocated once the scratch memory has
// grown to the size of a batch: 8 bytes per sampled edge (16 over two directions), 12 per node, and
// 16 to 32 per node for the table; a quarter more to spare. Weights and types of edges take 4 bytes
// each per sampled edge more, and draws by weight or time 16 per neighbor that the fanouts of the
// widest hop allow; layers take 28 to 44 per neighbor that the widest frontier has, drawn or not.
type Sampler struct {
	cfg   Config
	total uint64 // nodes of the graph
	sides []side
	delta deltaSet
	held  mem.Account

	growing

	deg       []uint32   // of the frontier
	chosen    []uint32   // slots of the position set of large fanouts
	selection *selection // of draws by weight or time; else nil
	layers    *layers    // of layers; else nil
	shift     []uint32   // by delta: a node's index in the Dense minus that by discovery
}

// growing is a batch under construction, in the order of discovery: seeds first. starts[h] is where
// the nodes found at hop h start in nodes (hop 0: the seeds). The neighbors of nodes[i] are
// nbrs[off[i]:off[i+1]]; loc holds their positions in their lists until they are gathered, then
// their indexes in nodes. weights and types are those of the edges to nbrs, if they are asked for.
type growing struct {
	nodes   []NodeID
	starts  []uint32
	off     []uint32
	nbrs    []NodeID
	loc     []uint32
	weights []float32
	types   []uint32
}

// side is the lists of one direction, and what is drawn from them when there are two.
type side struct {
	lists topology.Session
	deg   []uint32
	off   []uint32
	pos   []uint32
	nbrs  []NodeID
}

// NewSampler returns a sampler over the lists of topos: one direction, or two, of which a node's
// lists are then taken as one, the first topology's entries first.
func NewSampler(topos []topology.Reader, cfg Config) (*Sampler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(topos) != 1 && len(topos) != 2 {
		return nil, fmt.Errorf("sample: %d topologies: give one direction, or two", len(topos))
	}
	s := &Sampler{cfg: cfg, total: topos[0].Nodes(), shift: make([]uint32, cfg.hops()+1)}
	if last := topos[len(topos)-1].Nodes(); last != s.total {
		return nil, fmt.Errorf("sample: one direction has %d nodes, the other %d", s.total, last)
	}
	if len(topos) > 1 && cfg.Extras != (Extras{}) {
		return nil, errors.New("sample: degrees, weights and types are those of one direction")
	}
	s.held = mem.NewAccount(cfg.Budget, "sampler")
	s.delta = newDeltaSet(cfg.Delta, &s.held)
	for _, t := range topos {
		s.sides = append(s.sides, side{lists: t.NewSession()})
	}
	err := s.checkExtras()
	switch {
	case err != nil:
	case len(cfg.LayerSize) > 0:
		err = s.newLayers()
	case cfg.Draw != DrawUniform:
		err = s.newSelection()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close releases the lists and the memory. The sampler is not used afterwards.
func (s *Sampler) Close() {
	for i := range s.sides {
		s.sides[i].lists.Release()
	}
	if s.layers != nil {
		s.layers.drawer.Release()
	}
	s.held.Release()
	*s = Sampler{}
}

// shrink frees the scratch memory; the next batch takes its own.
func (s *Sampler) shrink() (freed bool) {
	if s.held.Bytes() == 0 {
		return false
	}
	s.growing, s.deg, s.chosen = growing{}, nil, nil
	for i := range s.sides {
		s.sides[i] = side{lists: s.sides[i].lists}
	}
	s.delta = newDeltaSet(s.cfg.Delta, &s.held)
	if s.selection != nil {
		s.selection.forget()
	}
	if w := s.layers; w != nil {
		w.drawer.Release()
	}
	s.held.Release()
	return true
}

// Sample draws the neighborhood of seeds to d, whose memory it reuses. The draws are a function of
// (Config.Seed, epoch, batch, hop, node) alone. Seeds must be in the graph, each once.
func (s *Sampler) Sample(ctx context.Context, epoch, batch uint64, seeds []NodeID,
	d *Dense) error {
	if err := s.begin(ctx, seeds); err != nil {
		return err
	}
	for h := range s.cfg.hops() {
		key := rng.Key(s.cfg.Seed, epoch, batch, uint64(h))
		if err := s.hop(ctx, key, h); err != nil {
			// Users count epochs and batches from 1, as the shell's SAMPLE does.
			return fmt.Errorf("sample: epoch %d, batch %d, hop %d: %w", epoch+1, batch+1, h+1, err)
		}
	}
	if err := s.assemble(ctx, d); err != nil {
		return fmt.Errorf("sample: epoch %d, batch %d: %w", epoch+1, batch+1, err)
	}
	return nil
}

// begin makes the seeds the first delta.
func (s *Sampler) begin(ctx context.Context, seeds []NodeID) error {
	if len(seeds) == 0 {
		return errors.New("sample: a batch without seeds")
	}
	for _, v := range seeds {
		if uint64(v) >= s.total {
			return fmt.Errorf("sample: seed %d is out of range: the graph has %d nodes", v, s.total)
		}
	}
	if err := resize(&s.held, &s.nodes, len(seeds)); err != nil {
		return err
	}
	copy(s.nodes, seeds)
	s.nbrs, s.loc = s.nbrs[:0], s.loc[:0]
	s.weights, s.types = s.weights[:0], s.types[:0]
	if s.layers != nil {
		s.layers.most = 0
	}
	s.starts = append(s.starts[:0], 0, uint32(len(seeds)))
	s.off = append(s.off[:0], 0)
	if twice, err := s.delta.reset(ctx, s.nodes); err != nil {
		return err
	} else if twice >= 0 {
		return fmt.Errorf("sample: seed %d is given twice", seeds[twice])
	}
	return nil
}

// hop draws the neighbors of the last delta, and appends the next.
func (s *Sampler) hop(ctx context.Context, key uint64, h int) error {
	a, b := int(s.starts[len(s.starts)-2]), len(s.nodes)
	front := s.nodes[a:b:b]
	if len(front) == 0 {
		s.starts = append(s.starts, uint32(b))
		return ctx.Err()
	}
	if err := s.degrees(ctx, front); err != nil {
		return err
	}
	first, err := len(s.nbrs), error(nil)
	if s.layers != nil {
		err = s.drawLayer(ctx, key, a, b, s.cfg.LayerSize[h])
	} else {
		err = s.drawEach(ctx, key, a, b, s.cfg.Fanout[h])
	}
	if err != nil {
		return err
	}
	if err := s.gatherExtras(ctx, s.off[a:b+1]); err != nil {
		return err
	}
	s.nodes, err = s.delta.extend(ctx, s.nodes, s.starts, s.nbrs[first:], s.loc[first:])
	s.starts = append(s.starts, uint32(len(s.nodes)))
	return err
}

// drawEach draws the neighbors of each of nodes a … b-1.
func (s *Sampler) drawEach(ctx context.Context, key uint64, a, b, fanout int) error {
	first := len(s.nbrs)
	edges, err := s.offsets(ctx, a, b, first, fanout)
	if err != nil {
		return err
	}
	if err := s.room(ctx, edges, b+edges-first); err != nil {
		return err
	}
	off := s.off[a : b+1]
	if err := s.choose(ctx, key, s.nodes[a:b], off); err != nil {
		return err
	}
	return s.gather(ctx, off, s.loc, s.nbrs)
}

// room makes room for edges and nodes. Of a large batch each array takes the kernel a while.
func (s *Sampler) room(ctx context.Context, edges, nodes int) error {
	if err := resize(&s.held, &s.nbrs, edges); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := resize(&s.held, &s.loc, edges); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return reserve(&s.held, &s.nodes, nodes)
}

// choose writes to loc which entries of each list of the frontier are taken.
func (s *Sampler) choose(ctx context.Context, key uint64, front []NodeID, off []uint32) error {
	if s.selection == nil {
		return s.positions(ctx, key, front, off)
	}
	edges, err := s.byKey(ctx, key, front, off)
	if err == nil {
		s.nbrs, s.loc = s.nbrs[:edges], s.loc[:edges]
	}
	return err
}

// degrees writes the length of each list of the frontier to deg: over both directions, if there
// are two.
func (s *Sampler) degrees(ctx context.Context, front []NodeID) error {
	if err := resize(&s.held, &s.deg, len(front)); err != nil {
		return err
	}
	if len(s.sides) == 1 {
		return s.sides[0].lists.Degrees(ctx, front, s.deg)
	}
	in, out := &s.sides[0], &s.sides[1]
	for _, w := range []*side{in, out} {
		if err := resize(&s.held, &w.deg, len(front)); err != nil {
			return err
		}
		if err := w.lists.Degrees(ctx, front, w.deg); err != nil {
			return err
		}
	}
	for i := range s.deg {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		s.deg[i] = in.deg[i] + out.deg[i]
		if s.deg[i] < in.deg[i] {
			return fmt.Errorf("node %d has 2^32 neighbors or more", front[i])
		}
	}
	return nil
}

// offsets appends to off where the neighbors of nodes a+1 … b start, and returns the last, which
// is the number of edges so far.
func (s *Sampler) offsets(ctx context.Context, a, b, first, fanout int) (int, error) {
	if err := resize(&s.held, &s.off, b+1); err != nil {
		return 0, err
	}
	most := uint32(math.MaxUint32)
	if fanout != All {
		most = uint32(fanout)
	}
	sum, off := uint64(first), s.off[a+1:b+1]
	for i, d := range s.deg {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		sum += uint64(min(d, most))
		off[i] = uint32(sum)
	}
	if sum >= math.MaxUint32 {
		return 0, fmt.Errorf("the batch has %d edges, the most is %d: take a smaller fanout or "+
			"batch", sum, uint32(math.MaxUint32)-1)
	}
	return int(sum), nil
}

// gather reads the neighbors at positions of lists: those of list i of the frontier at
// pos[off[i]:off[i+1]], to the same places of nbrs.
func (s *Sampler) gather(ctx context.Context, off, pos []uint32, nbrs []NodeID) error {
	if len(s.sides) == 1 {
		return s.sides[0].lists.Gather(ctx, off, pos, nbrs)
	}
	in, out := &s.sides[0], &s.sides[1]
	for _, w := range []*side{in, out} {
		if err := resize(&s.held, &w.off, len(off)); err != nil {
			return err
		}
		n := int(off[len(off)-1] - off[0])
		err := errors.Join(resize(&s.held, &w.pos, n), resize(&s.held, &w.nbrs, n))
		if err != nil {
			return err
		}
	}
	if err := splitPositions(ctx, in, out, off, pos); err != nil {
		return err
	}
	for _, w := range []*side{in, out} {
		if err := w.lists.Gather(ctx, w.off, w.pos, w.nbrs); err != nil {
			return err
		}
	}
	i, o := 0, 0
	var steps pace.Steps
	for k := range len(off) - 1 {
		d := in.deg[k]
		if err := steps.Took(ctx, 1+int(off[k+1]-off[k])); err != nil {
			return err
		}
		for e := off[k]; e < off[k+1]; e++ {
			if pos[e] < d {
				nbrs[e] = in.nbrs[i]
				i++
			} else {
				nbrs[e] = out.nbrs[o]
				o++
			}
		}
	}
	return nil
}

// splitPositions deals the positions of joined lists out to the two lists.
func splitPositions(ctx context.Context, in, out *side, off, pos []uint32) error {
	i, o := uint32(0), uint32(0)
	var steps pace.Steps
	for k := range len(off) - 1 {
		d := in.deg[k]
		if err := steps.Took(ctx, 1+int(off[k+1]-off[k])); err != nil {
			return err
		}
		in.off[k], out.off[k] = i, o
		for _, p := range pos[off[k]:off[k+1]] {
			if p < d {
				in.pos[i] = p
				i++
			} else {
				out.pos[o] = p - d
				o++
			}
		}
	}
	in.off[len(off)-1], out.off[len(off)-1] = i, o
	return nil
}

// assemble writes the batch to d.
func (s *Sampler) assemble(ctx context.Context, d *Dense) error {
	if err := s.arrange(ctx, s.shift, d); err != nil {
		return err
	}
	return s.nodeExtras(ctx, d)
}

// arrange writes the batch to d, outermost delta first, but for what is known of whole lists, and
// for neighbors where these follow from loc and are not there. shift is scratch memory.
func (s *growing) arrange(ctx context.Context, shift []uint32, d *Dense) error {
	hops := len(s.starts) - 2
	d.NodeIDOffsets = sized(d.NodeIDOffsets, hops+2)
	d.NodeIDs = sized(d.NodeIDs, len(s.nodes))
	d.NbrOffsets = sized(d.NbrOffsets, len(s.off))
	d.Nbrs = sized(d.Nbrs, len(s.loc))
	d.ReprMap = sized(d.ReprMap, len(s.loc))
	d.Weights, d.Types = sized(d.Weights, len(s.weights)), sized(d.Types, len(s.types))
	at := uint32(0)
	for h := hops; h >= 0; h-- {
		d.NodeIDOffsets[hops-h] = at
		shift[h] = at - s.starts[h]
		at += uint32(copy(d.NodeIDs[at:], s.nodes[s.starts[h]:s.starts[h+1]]))
	}
	d.NodeIDOffsets[hops+1] = at
	row, edge := 0, uint32(0)
	for h := hops - 1; h >= 0; h-- {
		off := s.off[s.starts[h] : s.starts[h+1]+1]
		first, last := off[0], off[len(off)-1]
		for i, o := range off[:len(off)-1] {
			if i%pace.Every == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			d.NbrOffsets[row] = o - first + edge
			row++
		}
		for ; first < last; first += min(pace.Every, last-first) {
			if err := ctx.Err(); err != nil {
				return err
			}
			end := min(last, first+pace.Every)
			if s.nbrs != nil {
				copy(d.Nbrs[edge:], s.nbrs[first:end])
			}
			if len(s.weights) > 0 {
				copy(d.Weights[edge:], s.weights[first:end])
			}
			if len(s.types) > 0 {
				copy(d.Types[edge:], s.types[first:end])
			}
			relocate(d.ReprMap[edge:], s.loc[first:end], s.starts[:h+2], shift)
			edge += end - first
		}
	}
	d.NbrOffsets[row] = edge
	return nil
}

// relocate adds to each index by discovery the shift of its delta. The choice is made without
// branches: which delta a neighbor is of cannot be predicted.
func relocate(out, loc, starts, shift []uint32) {
	out = out[:len(loc)]
	last := len(starts) - 1
	inner := shift[:last]
	ends := starts[1 : last+1]
	for e, l := range loc {
		add := shift[last]
		for h := len(ends) - 1; h >= 0; h-- {
			s := inner[h]
			if l < ends[h] {
				add = s
			}
		}
		out[e] = l + add
	}
}
