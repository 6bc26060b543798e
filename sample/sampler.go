package sample

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/internal/rng"
	"gdb/layout/topology"
	"gdb/sample/draw"
)

// Config configures a Sampler.
type Config struct {
	// Fanout is how many neighbors of a node are drawn at each hop, the first hop being next to the
	// seeds. All takes whole lists. If it is empty, a batch is its seeds. In a typed store that
	// number is drawn of each relation.
	Fanout []int
	// ByRelation has the fanouts of each relation at each hop, by number, where Fanout does not
	// hold for all; 0 draws none. It is for the lists of one direction of a typed store.
	ByRelation [][]int
	// LayerSize draws the neighbors of all nodes of a hop together: about this number at each hop,
	// the first hop being next to the seeds. See draw.LayerDrawer. It replaces Fanout.
	LayerSize []int
	// Draw is how the neighbors of a node are drawn. Layers require DrawUniform. DrawWeighted and
	// DrawLatest require topologies whose sessions are topology.ColumnReaders. Default DrawUniform.
	Draw Draw
	Extras
	// Seeding says with which nodes batches begin, and as of which times their lists are read;
	// nil begins with the seeds, and reads whole lists. Sessions of the topology must be
	// topology.TimedSessions for it.
	Seeding Seeding
	// Seed is the number that all draws depend on.
	Seed uint64
	// Last has the lists of the last hop, if they are others; nil for the same.
	Last topology.Reader
	// Budget counts the sampler's scratch memory; nil counts none.
	Budget *mem.Budget
}

// hopsMost bounds the hops of a sample. After some ten hops, every node that can be reached has
// been.
const hopsMost = 64

// Validate returns what is wrong with a configuration, or nil.
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

// fanoutOf returns how many entries of each list are drawn at a hop: all the same, or by relation.
func (c *Config) fanoutOf(h int) (all int, byRelation []int) {
	if h < len(c.ByRelation) {
		return 0, c.ByRelation[h]
	}
	return c.Fanout[h], nil
}

// validateLayers returns what is wrong with a configuration of layers, or nil.
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

// hops returns the number of hops.
func (c *Config) hops() int { return max(len(c.Fanout), len(c.LayerSize)) }

// Sampler draws multi-hop samples. One goroutine may use it; make one for each.
//
// A hop goes over the whole frontier in stages, each a tight loop: degrees, offsets, positions,
// gather, and delta with relabeling. That is about twice as fast as node by node, and lets the
// paged reader fetch all blocks of a hop at once. Nothing is allocated once the scratch memory has
// grown to the size of a batch. It takes 8 bytes per sampled edge (16 over two directions), 12 per
// node, 16 to 32 per node for the table, and a quarter to spare. Weights and types of edges take 4
// bytes each more per sampled edge, places of edges 12, and draws by weight or time 16 per neighbor
// that the fanouts of the widest hop allow. Layers take 28 to 44 per neighbor of the widest
// frontier, drawn or not.
type Sampler struct {
	cfg   Config
	total uint64 // nodes of the graph
	sides []side
	last  topology.Session // of Config.Last; nil for none
	front frontier
	delta *draw.NodeTable
	held  mem.Account

	growing

	deg       []uint32   // lengths of the frontier's lists
	chosen    []uint32   // scratch of draw.Choose, for large fanouts
	selection *selection // nil unless neighbors are drawn by weight or time
	layers    *layers    // nil unless layers are drawn
	at        []uint32   // places of entries, with Extras.Columns
	shift     []uint32   // by delta: a node's index in the Dense minus its index in nodes
	seeded    Seeded     // of the batch, with a Seeding
}

// growing is a batch under construction, in the order of discovery: seeds first. The nodes found at
// hop h start in nodes at starts[h] (hop 0 finds the seeds). The neighbors of nodes[i] are
// nbrs[off[i]:off[i+1]]. loc holds their positions in their lists until they are gathered, then
// their indexes in nodes. weights, types and places belong to the edges to nbrs, and are empty
// unless asked for.
type growing struct {
	nodes   []NodeID
	times   []int64 // of the nodes; empty without a Seeding
	starts  []uint32
	off     []uint32
	nbrs    []NodeID
	loc     []uint32
	weights []float32
	types   []uint32
	places  []Place
}

// side holds the lists of one direction, and what is drawn from them if there are two.
type side struct {
	lists topology.Session
	deg   []uint32
	off   []uint32
	pos   []uint32
	nbrs  []NodeID
}

// NewSampler returns a sampler over the lists of topos: one direction, or two. With two, a node's
// two lists are taken as one, with the entries of the first topology first. The caller calls Close.
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
	s.delta = draw.NewNodeTable(&s.held)
	if len(topos) == 1 && len(cfg.LayerSize) == 0 {
		topos = slices.Clone(topos)
		topos[0], s.front.numbers = topology.ByList(topos[0])
	}
	if s.front.numbers == nil && len(cfg.ByRelation) > 0 {
		return nil, errors.New("sample: fanouts by relation are for the lists of one direction " +
			"of a typed store, drawn for each node")
	}
	for _, t := range topos {
		s.sides = append(s.sides, side{lists: t.NewSession()})
	}
	if cfg.Last != nil {
		s.last = cfg.Last.NewSession()
	}
	err := s.checkExtras()
	if err == nil && cfg.Seeding != nil {
		err = s.newSeeding()
	}
	switch {
	case err != nil || cfg.Seeding != nil:
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

// Close releases the lists and the memory. The sampler must not be used afterwards.
func (s *Sampler) Close() {
	for i := range s.sides {
		s.sides[i].lists.Release()
	}
	if s.last != nil {
		s.last.Release()
	}
	if s.layers != nil {
		s.layers.drawer.Release()
	}
	s.held.Release()
	*s = Sampler{}
}

// shrink frees the scratch memory, and returns whether there was any. The next batch takes new
// memory.
func (s *Sampler) shrink() (freed bool) {
	if s.held.Bytes() == 0 {
		return false
	}
	s.growing, s.deg, s.chosen, s.at = growing{}, nil, nil, nil
	s.front = frontier{numbers: s.front.numbers}
	for i := range s.sides {
		s.sides[i] = side{lists: s.sides[i].lists}
	}
	s.delta = draw.NewNodeTable(&s.held)
	if s.selection != nil {
		s.selection.forget()
	}
	if w := s.layers; w != nil {
		w.drawer.Release()
	}
	s.held.Release()
	return true
}

// Sample draws the neighborhood of seeds to d, whose memory it reuses. The draws depend on
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

// begin checks the seeds and makes them the first delta.
func (s *Sampler) begin(ctx context.Context, seeds []NodeID) error {
	if len(seeds) == 0 {
		return errors.New("sample: a batch without seeds")
	}
	if s.cfg.Seeding != nil {
		if err := s.seed(ctx, seeds); err != nil {
			return err
		}
	} else {
		if err := resize(&s.held, &s.nodes, len(seeds)); err != nil {
			return err
		}
		copy(s.nodes, seeds)
	}
	for _, v := range s.nodes {
		if uint64(v) >= s.total {
			return fmt.Errorf("sample: seed %d is out of range: the graph has %d nodes", v, s.total)
		}
	}
	s.nbrs, s.loc = s.nbrs[:0], s.loc[:0]
	s.weights, s.types, s.places = s.weights[:0], s.types[:0], s.places[:0]
	if s.layers != nil {
		s.layers.most = 0
	}
	s.starts = append(s.starts[:0], 0, uint32(len(s.nodes)))
	s.off = append(s.off[:0], 0)
	if twice, err := s.delta.ResetTimed(ctx, s.nodes, s.times); err != nil {
		return err
	} else if twice >= 0 {
		return fmt.Errorf("sample: seed %d is given twice", s.nodes[twice])
	}
	return nil
}

// hop draws the neighbors of the last delta, and appends the nodes that are new as the next delta.
func (s *Sampler) hop(ctx context.Context, key uint64, h int) error {
	a, b := int(s.starts[len(s.starts)-2]), len(s.nodes)
	front := s.nodes[a:b:b]
	if len(front) == 0 {
		s.starts = append(s.starts, uint32(b))
		return ctx.Err()
	}
	if s.last != nil && h == s.cfg.hops()-1 {
		all := s.sides[0].lists
		s.sides[0].lists = s.last
		defer func() { s.sides[0].lists = all }()
	}
	if err := s.front.expand(&s.held, front); err != nil {
		return err
	}
	if s.cfg.Seeding != nil {
		if err := s.asOf(s.times[a:b:b]); err != nil {
			return err
		}
	}
	if err := s.degrees(ctx, s.front.lists); err != nil {
		return err
	}
	first, err := len(s.nbrs), error(nil)
	if s.layers != nil {
		err = s.drawLayer(ctx, key, a, b, s.cfg.LayerSize[h])
		s.front.off = s.off[a:]
	} else {
		err = s.drawEach(ctx, key, h, a)
	}
	if err != nil {
		return err
	}
	if err := s.gatherExtras(ctx, s.front.off); err != nil {
		return err
	}
	if err := s.join(a); err != nil {
		return err
	}
	if s.cfg.Seeding != nil {
		err = s.extendTimed(ctx, a, b, first)
	} else {
		s.nodes, err = s.delta.Extend(ctx, s.nodes, s.nbrs[first:], s.loc[first:])
	}
	s.starts = append(s.starts, uint32(len(s.nodes)))
	return err
}

// drawEach draws from each list of the frontier, which belongs to the nodes from a on, and sets
// where what was drawn of each begins.
func (s *Sampler) drawEach(ctx context.Context, key uint64, h, a int) error {
	first := len(s.nbrs)
	if err := s.front.room(s, a); err != nil {
		return err
	}
	edges, err := s.offsets(ctx, s.front.off, h)
	if err != nil {
		return err
	}
	if err := s.room(ctx, edges, len(s.nodes)+edges-first); err != nil {
		return err
	}
	if err := s.choose(ctx, key, s.front.lists, s.front.off); err != nil {
		return err
	}
	return s.gather(ctx, s.front.off, s.loc, s.nbrs)
}

// room makes room for edges and nodes. It checks ctx between, since the kernel takes a while to map
// each array of a large batch.
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
	switch {
	case s.selection != nil:
	case s.cfg.Draw == DrawLatest:
		s.latest(off)
		return ctx.Err()
	default:
		return s.positions(ctx, key, front, off)
	}
	edges, err := s.byKey(ctx, key, front, off)
	if err == nil {
		s.nbrs, s.loc = s.nbrs[:edges], s.loc[:edges]
	}
	return err
}

// degrees writes the length of each list of the frontier to deg; with two directions, the sum.
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

// gather reads neighbors to nbrs by their positions in lists: the positions in list i of the
// frontier are pos[off[i]:off[i+1]], and the neighbors go to the same places of nbrs.
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

// assemble writes the finished batch to d.
func (s *Sampler) assemble(ctx context.Context, d *Dense) error {
	if err := s.arrange(ctx, s.shift, d); err != nil {
		return err
	}
	d.Ends = append(d.Ends[:0], s.seeded.Ends...)
	if err := s.nodeExtras(ctx, d); err != nil || s.cfg.Columns == nil {
		return err
	}
	return s.cfg.Columns.Fill(ctx, d)
}

// arrange writes the batch to d, outermost delta first, without degrees and weight sums. If nbrs is
// nil, the caller fills in d.Nbrs. shift is scratch memory.
func (s *growing) arrange(ctx context.Context, shift []uint32, d *Dense) error {
	hops := len(s.starts) - 2
	d.NodeIDOffsets = mem.Resize(d.NodeIDOffsets, hops+2)
	d.NodeIDs, d.Times = mem.Resize(d.NodeIDs, len(s.nodes)), mem.Resize(d.Times, len(s.times))
	d.NbrOffsets = mem.Resize(d.NbrOffsets, len(s.off))
	d.Nbrs = mem.Resize(d.Nbrs, len(s.loc))
	d.ReprMap = mem.Resize(d.ReprMap, len(s.loc))
	d.Weights, d.Types = mem.Resize(d.Weights, len(s.weights)), mem.Resize(d.Types, len(s.types))
	d.Places = mem.Resize(d.Places, len(s.places))
	at := uint32(0)
	for h := hops; h >= 0; h-- {
		d.NodeIDOffsets[hops-h] = at
		shift[h] = at - s.starts[h]
		if len(s.times) > 0 {
			copy(d.Times[at:], s.times[s.starts[h]:s.starts[h+1]])
		}
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
			if len(s.places) > 0 {
				copy(d.Places[edge:], s.places[first:end])
			}
			relocate(d.ReprMap[edge:], s.loc[first:end], s.starts[:h+2], shift)
			edge += end - first
		}
	}
	d.NbrOffsets[row] = edge
	return nil
}

// relocate adds the shift of its delta to each index by discovery. It chooses the delta without
// branches, which could not be predicted.
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
