package sample

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/internal/rng"
)

// Partial is a batch of which some hops are drawn. It is what is kept of a batch while samplers
// draw one hop of many batches after the other; a sampler itself needs several times as much memory
// for a batch. The batch comes out as Sampler.Sample draws it, whatever order its lists were drawn
// in.
type Partial struct {
	Epoch, Batch uint64
	growing      // without nbrs, which follow from nodes and loc

	// degrees and sums are extras of the nodes, in the order of discovery, as far as their lists
	// were read.
	degrees []uint32
	sums    []float32
}

// Drawn is what was drawn from some lists of a frontier, in the order of these lists. Weights,
// Types, Degrees and Sums are set if the sampler was asked for them.
type Drawn struct {
	Off     []uint32 // len(lists)+1: where each list's neighbors begin in Nbrs
	Nbrs    []NodeID
	Weights []float32
	Types   []uint32
	Degrees []uint32
	Sums    []float32
}

// Clone returns a copy, which stays valid when the sampler is used again.
func (d Drawn) Clone() Drawn {
	return Drawn{Off: slices.Clone(d.Off), Nbrs: slices.Clone(d.Nbrs),
		Weights: slices.Clone(d.Weights), Types: slices.Clone(d.Types),
		Degrees: slices.Clone(d.Degrees), Sums: slices.Clone(d.Sums)}
}

// Bytes returns the memory of d, in bytes.
func (d *Drawn) Bytes() int64 {
	return 4 * int64(cap(d.Off)+cap(d.Nbrs)+cap(d.Weights)+cap(d.Types)+cap(d.Degrees)+
		cap(d.Sums))
}

// Bytes returns the memory of the batch so far, in bytes.
func (p *Partial) Bytes() int64 {
	return 4 * int64(cap(p.nodes)+cap(p.starts)+cap(p.off)+cap(p.loc)+cap(p.weights)+
		cap(p.types)+cap(p.degrees)+cap(p.sums))
}

// Nodes returns the nodes of the batch so far, each once. The caller must not change them.
func (p *Partial) Nodes() []NodeID { return p.nodes }

// Frontier returns the nodes whose lists are drawn next.
func (p *Partial) Frontier() []NodeID { return p.nodes[p.starts[len(p.starts)-2]:] }

// Lists returns the numbers of the lists of the frontier, in its order: those of its nodes, or of a
// typed store those by each relation. The caller must not change them.
func (s *Sampler) Lists(p *Partial) ([]NodeID, error) {
	if s.front.numbers == nil {
		return p.Frontier(), nil
	}
	lists, _, err := s.front.numbers.Expand(p.Frontier(), nil, nil)
	return lists, err
}

// hop returns the number of the frontier's hop, from 0.
func (p *Partial) hop() int { return len(p.starts) - 2 }

// Hops returns the number of hops that a batch has, and whether the lists of the last delta must be
// read too, for extras of nodes, though nothing is drawn from them.
func (s *Sampler) Hops() (hops int, last bool) {
	return s.cfg.hops(), s.cfg.Extras.NodeBytes() > 0
}

// Fanout returns how many neighbors of a node are drawn at a hop, counted from 0; it is 0 after the
// last.
func (s *Sampler) Fanout(hop int) int {
	if hop >= len(s.cfg.Fanout) {
		return 0
	}
	return s.cfg.Fanout[hop]
}

// Start begins a batch in p. Its first frontier is the seeds.
func (s *Sampler) Start(ctx context.Context, epoch, batch uint64, seeds []NodeID,
	p *Partial) error {
	if s.layers != nil || len(s.sides) > 1 || s.cfg.Seeding != nil || s.cfg.places() {
		return errors.New("sample: batches in parts are drawn from the lists of one direction, " +
			"of each node apart, without columns of edges, and not as of a time")
	}
	if err := s.begin(ctx, seeds); err != nil {
		return err
	}
	*p = Partial{Epoch: epoch, Batch: batch}
	p.nodes, p.starts = slices.Clone(s.nodes), slices.Clone(s.starts)
	p.off = slices.Clone(s.off)
	return nil
}

// Draw draws neighbors from some of the Lists of the frontier. The result is valid until the next
// use of the sampler.
func (s *Sampler) Draw(ctx context.Context, p *Partial, lists []NodeID) (d Drawn, err error) {
	h := p.hop()
	defer func() {
		if err != nil {
			err = fmt.Errorf("sample: epoch %d, batch %d, hop %d: %w", p.Epoch+1, p.Batch+1, h+1,
				err)
		}
	}()
	s.nodes, s.front.lists = s.nodes[:0], lists
	s.nbrs, s.loc, s.weights, s.types = s.nbrs[:0], s.loc[:0], s.weights[:0], s.types[:0]
	s.off = append(s.off[:0], 0)
	if err := s.degrees(ctx, lists); err != nil {
		return d, err
	}
	if s.cfg.Degrees {
		d.Degrees = s.deg
	}
	if s.cfg.WeightSums {
		d.Sums = make([]float32, len(lists))
		if err := SumWeights(ctx, s.sides[0].lists, d.Sums); err != nil {
			return d, err
		}
	}
	if h == s.cfg.hops() {
		return d, nil
	}
	key := rng.Key(s.cfg.Seed, p.Epoch, p.Batch, uint64(h))
	if err := s.drawEach(ctx, key, h, 0); err != nil {
		return d, err
	}
	if err := s.gatherExtras(ctx, s.front.off); err != nil {
		return d, err
	}
	d.Off, d.Nbrs, d.Weights, d.Types = s.front.off, s.nbrs, s.weights, s.types
	return d, nil
}

// Extend ends a hop of a batch. d is what was drawn for its whole frontier, in the order of Lists.
// It changes d.
func (s *Sampler) Extend(ctx context.Context, p *Partial, d *Drawn) error {
	if p.hop() == s.cfg.hops() {
		d.Off = nil
	}
	if err := s.front.byNode(&s.held, p.Frontier(), s.cfg.Extras, d); err != nil {
		return err
	}
	p.degrees, p.sums = append(p.degrees, d.Degrees...), append(p.sums, d.Sums...)
	if p.hop() == s.cfg.hops() {
		return nil
	}
	if err := resize(&s.held, &s.loc, len(d.Nbrs)); err != nil {
		return err
	}
	if err := reserve(&s.held, &s.nodes, len(p.nodes)+len(d.Nbrs)); err != nil {
		return err
	}
	s.nodes = append(s.nodes[:0], p.nodes...)
	if _, err := s.delta.Reset(ctx, s.nodes); err != nil {
		return err
	}
	var err error
	if s.nodes, err = s.delta.Extend(ctx, s.nodes, d.Nbrs, s.loc); err != nil {
		return err
	}
	p.nodes, p.starts = slices.Clone(s.nodes), append(p.starts, uint32(len(s.nodes)))
	first := p.off[len(p.off)-1]
	p.off, p.loc = grow(p.off, len(d.Off)-1), grow(p.loc, len(d.Nbrs))
	for _, o := range d.Off[1:] {
		p.off = append(p.off, first+o)
	}
	p.loc = append(p.loc, s.loc...)
	p.weights = append(grow(p.weights, len(d.Weights)), d.Weights...)
	p.types = append(grow(p.types, len(d.Types)), d.Types...)
	return nil
}

// grow returns s with room for exactly n more elements.
func grow[T mem.Scalar](s []T, n int) []T {
	if n == 0 {
		return s
	}
	return append(make([]T, 0, len(s)+n), s...)
}

// Write writes the batch, all hops of which are drawn, to d, whose memory it reuses.
func (p *Partial) Write(ctx context.Context, d *Dense) error {
	if err := p.arrange(ctx, make([]uint32, len(p.starts)-1), d); err != nil {
		return fmt.Errorf("sample: epoch %d, batch %d: %w", p.Epoch+1, p.Batch+1, err)
	}
	for e, i := range d.ReprMap {
		d.Nbrs[e] = d.NodeIDs[i]
	}
	d.Degrees = mem.Resize(d.Degrees, len(p.degrees))
	p.inOrder(p.degrees, d.Degrees)
	d.WeightSums = mem.Resize(d.WeightSums, len(p.sums))
	p.inOrder(mem.View[uint32](mem.BytesOf(p.sums)), mem.View[uint32](mem.BytesOf(d.WeightSums)))
	return nil
}

// inOrder copies a value per node, if there are any, from the order of discovery to the order of a
// Dense, which has the outermost delta first.
func (p *Partial) inOrder(x, to []uint32) {
	for h := len(p.starts) - 2; h >= 0 && len(x) > 0; h-- {
		to = to[copy(to, x[p.starts[h]:p.starts[h+1]]):]
	}
}
