package draw

import (
	"context"
	"math"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/internal/rng"
	"gdb/layout"
)

// LayerLists are the lists of a frontier. Degrees are their lengths.
type LayerLists struct {
	Degrees []uint32
	// Gather writes entries of list i at positions pos[off[i]:off[i+1]] to the same places of nbrs.
	Gather func(ctx context.Context, off, pos []uint32, nbrs []layout.NodeID) error
	// Sums writes the sum of the weights of each list, none of which is negative. GatherWeights
	// writes the weights of the entries that Gather would read. Both are nil if all weights are 1.
	Sums          func(ctx context.Context, sums []float64) error
	GatherWeights func(ctx context.Context, off, pos []uint32, weights []float32) error
}

// LayerDrawer draws layers. One goroutine may use it. It takes the memory that CandidateBytes,
// FrontierBytes and PartBytes say, and keeps that of the largest layer.
type LayerDrawer struct {
	table, held mem.Account // memory of index, and of all else

	lists LayerLists
	// nodes are the candidates of a layer in the order in which they are met, so that sums over
	// them do not depend on how lists are read. index has their indexes in nodes.
	nodes []layout.NodeID
	index *NodeTable
	// mass is the mass of each candidate and, after the draw, 1/p(u), or 0 if it was not drawn.
	mass  []float64
	norms []float64 // 1/s of each list
	part  LayerPart
}

// These are the bytes of a drawer for a candidate, for a node of the frontier, and for the part of
// the lists that is in memory, including what a paged reader takes for it. If the reader leaves out
// entries by their times, the part takes BeforeBytes more.
const (
	CandidateBytes = 12 + 32
	FrontierBytes  = 12
	PartBytes      = partEntries * (16 + 24)
	BeforeBytes    = partEntries * 16
)

// partEntries is how many entries are read together, about 64 blocks, so that a hub's list is never
// in memory as a whole.
const partEntries = 1 << 16

// LayerPart is a part of the lists of a frontier.
type LayerPart struct {
	// Off says where the entries of each list begin in Pos and Nbrs, and at the end their number.
	Off []uint32
	// Pos and Nbrs are the positions of entries in their lists, and the neighbors.
	Pos  []uint32
	Nbrs []layout.NodeID

	at      []uint32 // index of each of Nbrs among the candidates
	weights []float32
	mass    []float64
}

// NewLayerDrawer returns a drawer whose memory is counted in budget; nil counts none. The caller
// calls Release.
func NewLayerDrawer(budget *mem.Budget) *LayerDrawer {
	d := &LayerDrawer{table: mem.NewAccount(budget, "drawing a layer"),
		held: mem.NewAccount(budget, "drawing a layer")}
	d.index = NewNodeTable(&d.table)
	return d
}

// Release frees the memory. The next layer takes new memory.
func (d *LayerDrawer) Release() {
	d.table.Release()
	d.held.Release()
	*d = LayerDrawer{table: d.table, held: d.held}
	d.index = NewNodeTable(&d.table)
}

// Candidates returns the number of different neighbors of the last frontier.
func (d *LayerDrawer) Candidates() int { return len(d.nodes) }

// Draw draws about size neighbors of a frontier in all, and returns how many.
func (d *LayerDrawer) Draw(ctx context.Context, key uint64, lists LayerLists, size int) (int,
	error) {
	d.lists = lists
	d.nodes, d.mass = d.nodes[:0], d.mass[:0]
	if _, err := d.index.Reset(ctx, nil); err != nil {
		return 0, err
	}
	if err := d.listNorms(ctx); err != nil {
		return 0, err
	}
	if err := d.eachPart(ctx, d.addMass); err != nil {
		return 0, err
	}
	c, err := rate(ctx, d.mass, size)
	if err != nil {
		return 0, err
	}
	drawn := 0
	for i, m := range d.mass {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		d.mass[i] = 0
		if m == 0 {
			continue
		}
		if p := min(1, c*m); rng.Unit(rng.Sub(key, uint64(d.nodes[i]))) < p {
			d.mass[i] = 1 / p
			drawn++
		}
	}
	return drawn, nil
}

// Each calls fn with all parts of the lists of the last Draw, in order. A part is valid during the
// call.
func (d *LayerDrawer) Each(ctx context.Context, fn func(p *LayerPart) error) error {
	return d.eachPart(ctx, func(context.Context) error {
		d.part.mass = d.mass
		return fn(&d.part)
	})
}

// Drawn returns the number of entries whose node was drawn.
func (p *LayerPart) Drawn() (n int) {
	for _, at := range p.at {
		if p.mass[at] > 0 {
			n++
		}
	}
	return n
}

// Weight returns how many times entry e counts, and whether its node was drawn.
func (p *LayerPart) Weight(e uint32) (times float32, drawn bool) {
	inverse := p.mass[p.at[e]]
	if inverse == 0 {
		return 0, false
	}
	if len(p.weights) > 0 {
		inverse *= float64(p.weights[e])
	}
	return float32(inverse), true
}

// listNorms computes 1/s for the sum s of the weights of each list.
func (d *LayerDrawer) listNorms(ctx context.Context) error {
	d.norms = mem.Resize(d.norms, len(d.lists.Degrees))
	if d.lists.Sums == nil {
		for i, n := range d.lists.Degrees {
			d.norms[i] = 1 / float64(max(1, n))
		}
		return ctx.Err()
	}
	if err := d.lists.Sums(ctx, d.norms); err != nil {
		return err
	}
	for i, sum := range d.norms {
		d.norms[i] = 0
		if sum > 0 {
			d.norms[i] = 1 / sum
		}
	}
	return nil
}

// eachPart reads the lists of the frontier in parts and calls fn with each. If a single part holds
// all and was read before, it is not read again.
func (d *LayerDrawer) eachPart(ctx context.Context, fn func(ctx context.Context) error) error {
	total := uint64(0)
	for _, n := range d.lists.Degrees {
		total += uint64(n)
	}
	if total <= partEntries && len(d.mass) > 0 {
		return fn(ctx)
	}
	for from := uint64(0); from < total; from += partEntries {
		if err := d.read(ctx, from, min(total, from+partEntries)); err != nil {
			return err
		}
		if err := fn(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// read reads entries from … to-1 of all lists of the frontier, one after the other, and numbers the
// candidates among them.
func (d *LayerDrawer) read(ctx context.Context, from, to uint64) error {
	p, n := &d.part, int(to-from)
	p.Off = mem.Resize(p.Off, len(d.lists.Degrees)+1)
	p.Pos, p.Nbrs, p.at = mem.Resize(p.Pos, n), mem.Resize(p.Nbrs, n), mem.Resize(p.at, n)
	begin, k := uint64(0), uint32(0) // begin: where a list begins among all entries
	for i, degree := range d.lists.Degrees {
		p.Off[i] = k
		end := begin + uint64(degree)
		for at := max(begin, from); at < min(end, to); at++ {
			p.Pos[k] = uint32(at - begin)
			k++
		}
		begin = end
	}
	p.Off[len(d.lists.Degrees)] = k
	if err := d.lists.Gather(ctx, p.Off, p.Pos, p.Nbrs); err != nil {
		return err
	}
	p.weights = p.weights[:0]
	if d.lists.GatherWeights != nil {
		p.weights = mem.Resize(p.weights, n)
		if err := d.lists.GatherWeights(ctx, p.Off, p.Pos, p.weights); err != nil {
			return err
		}
	}
	d.nodes = grown(d.nodes, n)
	if err := d.held.AtLeast(d.bytes()); err != nil {
		return err
	}
	var err error
	d.nodes, err = d.index.Extend(ctx, d.nodes, p.Nbrs, p.at)
	return err
}

// addMass adds the entries of a part to the mass of their nodes.
func (d *LayerDrawer) addMass(ctx context.Context) error {
	p, known := &d.part, len(d.mass)
	d.mass = grown(d.mass, len(d.nodes)-known)[:len(d.nodes)]
	clear(d.mass[known:])
	if err := d.held.AtLeast(d.bytes()); err != nil {
		return err
	}
	for i, norm := range d.norms {
		for e := p.Off[i]; e < p.Off[i+1]; e++ {
			x := norm
			if len(p.weights) > 0 {
				x *= float64(p.weights[e])
			}
			d.mass[p.at[e]] += x * x
		}
	}
	return ctx.Err()
}

// grown returns s with room for n more elements, and a quarter to spare if it had to grow.
func grown[T any](s []T, n int) []T {
	if need := len(s) + n; cap(s) < need {
		s = append(make([]T, 0, need+need/4), s...)
	}
	return s
}

// bytes returns the scratch memory without the index, in bytes.
func (d *LayerDrawer) bytes() int64 {
	p := &d.part
	return 4*int64(cap(d.nodes)+cap(p.Off)+cap(p.Pos)+cap(p.Nbrs)+cap(p.at)+cap(p.weights)) +
		8*int64(cap(d.mass)+cap(d.norms))
}

// rate returns the c for which the sum of min(1, c·m) over all masses m is size, or infinity if at
// most size masses are above 0. With the masses at 1 set apart, c is the rest of the size divided
// by the sum of the other masses. It only grows from round to round, and more masses reach 1, until
// none does any more.
func rate(ctx context.Context, mass []float64, size int) (c float64, err error) {
	for ones := -1; ; {
		certain, some, left := 0, 0, 0.0
		for i, m := range mass {
			if i%pace.Every == 0 && ctx.Err() != nil {
				return 0, ctx.Err()
			}
			switch {
			case m <= 0:
			case c*m >= 1:
				certain++
			default:
				left += m
				some++
			}
		}
		switch {
		case certain+some <= size:
			return math.Inf(1), nil
		case certain <= ones || certain >= size:
			return c, nil
		}
		ones, c = certain, float64(size-certain)/left
	}
}
