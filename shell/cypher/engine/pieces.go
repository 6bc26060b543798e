package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"gdb/internal/mem"
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/eval"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// Groups that do not fit in memory at once are made in pieces, by the values of a key: the plan
// runs once for each piece, and drops the rows of others at the first step that has the key.

// pieces says which groups are made.
type pieces struct {
	key  ast.Expr
	node int // that the key is; -1 if it is none
	// nodes is the range that is cut into pieces. If it is empty, pieces are ranges of hashes.
	nodes Range
	step  int // the first that has the key
	at    uint64
	of    uint64
	seed  maphash.Seed
}

// These bound the number of pieces.
const (
	piecesLeast = 4
	piecesMost  = 1 << 12
)

// newPieces returns how groups can be made in pieces; nil if they cannot. A key must be one that
// may be computed for rows that do not match.
func (pl *plan) newPieces(g *grouping) (best *pieces) {
	p := pl.p
	if p.shortest != nil || p.in != nil && p.in.optional {
		return nil
	}
	for _, x := range g.keys {
		if !p.safeValue(x) {
			continue
		}
		step := slices.IndexFunc(pl.steps, func(s *step) bool { return p.has(s, x) })
		if step < 0 || best != nil && step >= best.step {
			continue
		}
		best = &pieces{key: x, node: -1, step: step, of: 1, seed: maphash.MakeSeed()}
		if v := p.unique(x, pl.src); v != nil {
			best.key = v
		}
		if v, ok := best.key.(*ast.Var); ok {
			if i, ok := p.byName[v.Name]; ok {
				best.node = i
				best.nodes = pl.ranged(step, p.nodes[i])
			}
		}
	}
	return best
}

// ranged returns the nodes of a step at which a plan begins: lists of a range of these follow one
// another in the file.
func (pl *plan) ranged(step int, n *node) Range {
	if step > 0 || n.bound || n.anchored || n.check != nil {
		return Range{}
	}
	return n.set.bounds()
}

// has reports whether the rows of a step have all that x reads.
func (p *pattern) has(s *step, x ast.Expr) bool {
	for name := range names(x) {
		i, isNode := p.byName[name]
		j, isRel := p.relByName[name]
		switch {
		case isNode && !slices.Contains(s.keepNodes, i), isRel && !slices.Contains(s.keepRels, j),
			!isNode && !isRel && !p.in.has(name):
			return false
		}
	}
	return true
}

// filter drops the rows of other pieces.
func (p *pieces) filter(env *vector.Env, b *batch, keep []bool) error {
	if p.node >= 0 {
		first, each := uint64(0), uint64(0x9E3779B97F4A7C15)
		if p.nodes.End > 0 {
			first, each = uint64(p.nodes.From), math.MaxUint64/uint64(p.nodes.End-p.nodes.From)
		}
		for i, v := range b.nodes[p.node][:b.n] {
			keep[i] = p.holds((uint64(v) - first) * each)
		}
		b.compact(keep)
		return nil
	}
	v, err := env.Eval(p.key, b)
	if err != nil {
		return err
	}
	var key []byte
	for i := range b.n {
		key = value.Key(key[:0], v.At(i))
		keep[i] = p.holds(maphash.Bytes(p.seed, key))
	}
	b.compact(keep)
	return nil
}

// holds reports whether a hash is of the piece: pieces are ranges of hashes, so that a piece has
// those into which it is divided.
func (p *pieces) holds(hash uint64) bool {
	hi, _ := bits.Mul64(hash, p.of)
	return hi == p.at
}

// divide makes pieces smaller, by how many of them there would have to be of the piece that did not
// fit; false if there would be too many.
func (p *pieces) divide(by uint64) bool {
	p.of, p.at = p.of*by, p.at*by
	return p.of <= piecesMost
}

const (
	// inputsMost is how many rows of the clauses before are kept for more than one piece.
	inputsMost = 1 << 14
	inputBytes = 72
)

// collector makes groups of the rows of a plan.
type collector struct {
	*plan
	g     *grouping
	env   *vector.Env // counts the memory of groups
	held  atomic.Int64
	full  atomic.Bool // whether there was no memory for groups
	top   *top
	like  *batch
	all   []*groups // of each thread
	base  int       // parts that have been run
	whole int64     // estimate of the memory of all groups, once they do not fit
	node  int       // by which rows can be counted densely; -1 for none
	dense bool      // whether they are
	// inputs are all rows of the clauses before, as long as they are few.
	inputs [][]*eval.Scope
	rows   int
}

func (pl *plan) newCollector(g *grouping, env *vector.Env, top *top) *collector {
	c := &collector{plan: pl, g: g, top: top, like: pl.newBatch(pl.steps[len(pl.steps)-1])}
	row := *env.Row
	row.Grow = func(n int64) error {
		err := env.Row.Grow(n)
		if err == nil {
			c.held.Add(n)
		} else {
			c.full.Store(true)
		}
		return err
	}
	c.env = &vector.Env{Row: &row, Rows: env.Rows, Property: env.Property}
	pl.pieces = pl.newPieces(g)
	c.node = pl.denseNode(g)
	c.dense = c.node >= 0 && c.many()
	return c
}

// run runs the plan, for one input of several.
func (c *collector) run(ctx context.Context, rows []*eval.Scope) error {
	if c.dense { // at the end
		return nil
	}
	if c.rows += len(rows); c.rows <= inputsMost {
		if err := c.env.Row.Grow(inputBytes * int64(len(rows))); err != nil {
			return err
		}
		c.inputs = append(c.inputs, slices.Clone(rows))
	} else {
		c.inputs, c.pieces = nil, nil
	}
	if c.whole > 0 { // at the end
		if c.pieces == nil {
			return c.refusal()
		}
		return nil
	}
	err := c.pass(ctx, rows)
	if !c.short(err) {
		return err
	}
	if c.node >= 0 {
		c.dense = true
		return c.drop()
	}
	if c.pieces == nil {
		return c.refusal()
	}
	c.pieces.divide(c.more())
	return c.drop()
}

// pass runs the plan for some rows.
func (c *collector) pass(ctx context.Context, rows []*eval.Scope) error {
	c.p.in.set(rows)
	return c.turns.each(ctx, c.plan, func() error {
		next := 0
		err := c.plan.run(ctx, c.env, c.g.threads(c.src), func() sink {
			if next == len(c.all) {
				c.all = append(c.all, c.g.newGroups(c.env, c.like))
			}
			gs := c.all[next]
			gs.base = c.base
			next++
			return c.sinks(c.env, gs)
		})
		c.base += len(c.parts())
		return err
	})
}

// short reports whether there was no memory for the groups, or for lists beside them, and estimates
// what all groups take: the parts that did not run take as much each as those that did.
func (c *collector) short(err error) bool {
	var limit *mem.LimitError
	full := c.full.Swap(false) || c.held.Load() > c.src.Free()
	if !errors.As(err, &limit) || !full {
		return false
	}
	share := float64(max(c.begun.Load(), 1)) / float64(max(len(c.parts()), 1))
	all := int64(float64(c.held.Load()+limit.Want) / c.turns.share(min(share, 1)))
	if c.pieces != nil {
		all *= int64(c.pieces.of)
	}
	c.whole = max(c.whole, all)
	return true
}

// more returns into how many pieces a piece that did not fit is divided.
func (c *collector) more() uint64 {
	need := float64(c.whole) / float64(c.pieces.of) / float64(max(c.held.Load(), 1))
	by := uint64(piecesLeast)
	for float64(by) < 1.5*need && by < 1<<8 {
		by *= 2
	}
	return by
}

// refusal returns the error for groups that do not fit.
func (c *collector) refusal() error {
	return fmt.Errorf("the groups of this statement take about %s, of which %s are free: "+
		"raise --memory by as much, or group fewer rows, with WHERE", mem.FormatSize(c.whole),
		mem.FormatSize(c.held.Load()+c.src.Free()))
}

// drop forgets all groups.
func (c *collector) drop() error {
	c.all, c.base = nil, 0
	return c.env.Row.Grow(-c.held.Load())
}

// end hands on the groups, in the order in which their first rows came, or of one piece after
// another.
func (c *collector) end(ctx context.Context,
	yield func(first *eval.Scope, results []any) error) error {
	if c.dense {
		return c.endDense(ctx, yield)
	}
	if c.whole == 0 {
		gs, err := c.g.together(c.all, c.env, c.like)
		if err == nil {
			return c.hand(ctx, gs, yield)
		}
		if !c.short(err) {
			return err
		}
		if c.pieces == nil {
			return c.refusal()
		}
		c.pieces.divide(c.more())
		if err := c.drop(); err != nil {
			return err
		}
	}
	for p := c.pieces; p.at < p.of; p.at++ {
		gs, err := c.piece(ctx)
		if err != nil {
			return err
		}
		if err := c.hand(ctx, gs, yield); err != nil {
			return err
		}
		if err := c.drop(); err != nil {
			return err
		}
	}
	return nil
}

// piece makes the groups of a piece, or of a smaller one that fits.
func (c *collector) piece(ctx context.Context) (gs *groups, err error) {
	for {
		for _, rows := range c.inputs {
			if err = c.pass(ctx, rows); err != nil {
				break
			}
		}
		if err == nil {
			gs, err = c.g.together(c.all, c.env, c.like)
		}
		if err == nil || !c.short(err) {
			return gs, err
		}
		if !c.pieces.divide(c.more()) {
			return nil, c.refusal()
		}
		if err := c.drop(); err != nil {
			return nil, err
		}
	}
}

// hand hands on groups.
func (c *collector) hand(ctx context.Context, gs *groups,
	yield func(first *eval.Scope, results []any) error) (err error) {
	order := make([]int32, gs.n)
	for i := range order {
		order[i] = int32(i)
	}
	if c.top != nil {
		if order, err = c.top.keep(gs, order); err != nil {
			return err
		}
	}
	gs.inOrder(order)
	for _, i := range order {
		if err := ctx.Err(); err != nil {
			return err
		}
		results := make([]any, len(gs.of))
		for k, a := range gs.of {
			if results[k], err = a.Result(i); err != nil {
				return err
			}
		}
		if err := yield(gs.firsts.Scope(int(i)), results); err != nil {
			return err
		}
	}
	return nil
}
