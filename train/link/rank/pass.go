package rank

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/train/link/triples"
)

// pass is an evaluation: groups of queries that go through all blocks of entities together.
type pass struct {
	*Scorer
	vectors Vectors
	cfg     Config
	asked   *triples.Index
	result  *Result
	queries []*queries // the groups; memory for more may follow within its capacity
	span    Span       // the candidates of the group that is compared

	on     backend.Backend // what scores
	ends   []uint32        // known ends and answers of all queries
	rows   []float32       // their rows
	places []uint32        // rows of a block that are candidates, ascending
	some   []uint32        // their entities
	others []float32       // and their values
	links  backend.Links
	// These are memory for what one group is compared by.
	words, of []uint32
	own       []float32
	counts    []float32
	known     backend.Lists
}

// queries is a group of queries that are scored together.
type queries struct {
	queries []triples.Query
	targets []target
	span    Span       // the entities that may answer all of the queries
	known   [][]uint32 // known answers of each query in a block
	rows    []float32  // of the queries
	places  []uint64   // of drawn candidates: block<<32 | row
	columns [][]uint32 // of the known answers of each query that are among some candidates
}

// next returns a group for more queries, in the memory of an earlier one if there is any.
func (p *pass) next() *queries {
	n := len(p.queries)
	if n < cap(p.queries) && p.queries[:n+1][n] != nil {
		p.queries = p.queries[:n+1]
	} else {
		p.queries = append(p.queries, &queries{})
	}
	return p.queries[n]
}

// take takes queries from number first on that the same entities may answer, and returns the number
// of the one after them.
func (g *queries) take(p *pass, first int) int {
	asked := p.asked
	g.queries, g.targets, g.known = g.queries[:0], g.targets[:0], g.known[:0]
	i := first
	for ; i < asked.Len() && len(g.queries) < queriesMost; i++ {
		q, answers := asked.At(i)
		if len(g.targets) > 0 && len(g.targets)+len(answers) > targetsMost {
			break
		}
		span := p.Scorer.Span(q, p.vectors.Count())
		if i > first && span != g.span {
			break
		}
		g.span = span
		for _, a := range answers {
			g.targets = append(g.targets, target{entity: a, query: len(g.queries)})
		}
		g.queries, g.known = append(g.queries, q), append(g.known, nil)
	}
	return i
}

// draw draws different candidates, and notes their places in ascending order. There are none where
// no more may answer than would be drawn: all are compared then.
func (g *queries) draw(cfg *Config, number uint64, v Vectors) {
	if g.places = g.places[:0]; cfg.Candidates >= g.span.Count {
		return
	}
	p := rng.NewPermutation(uint64(g.span.Count), rng.Key(candidateDomain, cfg.Seed, number))
	for i := range cfg.Candidates {
		block, row := v.Place(uint32(g.span.First) + uint32(p.At(uint64(i))))
		g.places = append(g.places, uint64(block)<<32|row)
	}
	slices.Sort(g.places)
}

// bytes returns the memory of a group.
func (g *queries) bytes(dim int) int64 {
	const target = 80
	return int64(4*(2*len(g.queries)+len(g.targets))*dim + target*len(g.targets) +
		12*len(g.places))
}

// run ranks the targets of all groups.
func (p *pass) run(ctx context.Context) error {
	if err := p.prepare(ctx); err != nil {
		return err
	}
	err := p.vectors.Each(ctx, func(b *Block) error {
		var known *triples.Index
		if p.cfg.Known != nil {
			var err error
			if known, err = p.cfg.Known.In(ctx, b.Number, p.asked); err != nil {
				return err
			}
		}
		for _, g := range p.queries {
			for i, q := range g.queries {
				if known != nil {
					g.known[i] = known.Answers(q)
				}
			}
		}
		if p.cfg.Candidates > 0 || p.Answers != nil {
			return p.compareSome(ctx, b)
		}
		return p.compareAll(ctx, b)
	})
	if err != nil {
		return err
	}
	for _, g := range p.queries {
		for lo := 0; lo < len(g.targets); {
			hi := lo + 1
			for hi < len(g.targets) && g.targets[hi].query == g.targets[lo].query {
				hi++
			}
			p.result.addList(g.queries[g.targets[lo].query], g.targets[lo:hi])
			lo = hi
		}
	}
	return nil
}

// prepare computes the rows of the queries, and the scores of their true answers.
func (p *pass) prepare(ctx context.Context) error {
	p.ends = p.ends[:0]
	for _, g := range p.queries {
		for _, q := range g.queries {
			p.ends = append(p.ends, q.Entity)
		}
		for _, t := range g.targets {
			p.ends = append(p.ends, t.entity)
		}
	}
	p.rows = mem.Sized(p.rows, len(p.ends)*p.Dim)
	if err := p.vectors.Gather(ctx, p.rows, p.ends); err != nil {
		return err
	}
	all := p.rows
	for _, g := range p.queries {
		m := len(g.queries)
		g.rows = mem.Sized(g.rows, m*p.Dim)
		p.Pool.Run(m, func(i int) {
			p.Query(g.rows[i*p.Dim:][:p.Dim], all[i*p.Dim:][:p.Dim], g.queries[i])
		})
		all, p.span = all[m*p.Dim:], g.span
		if err := p.scoreTargets(g, all[:len(g.targets)*p.Dim]); err != nil {
			return err
		}
		all = all[len(g.targets)*p.Dim:]
	}
	return nil
}

// once returns how many candidates are scored together. A device always takes that number:
// a product of one size has the same bits for the same rows, wherever they are, so that equal rows
// have equal scores.
func (p *pass) once() int {
	if p.resident() {
		return min(candidatesThere, p.span.Count)
	}
	return min(candidatesOnce, p.span.Count)
}

// resident says that candidates are rows that the device has.
func (p *pass) resident() bool {
	return p.Rows.Len() > 0 && p.vectors.All() != nil && p.cfg.Candidates == 0
}

// width returns how many columns the scores of n candidates have: the last n are theirs.
func (p *pass) width(n int) int {
	if p.on.Device() == nil {
		return n
	}
	return p.once()
}

// begin begins a step that compares groups with n candidates, and returns memory for scores.
func (p *pass) begin(n int, groups ...*queries) (scores backend.Tensor, err error) {
	if err := p.on.Begin(); err != nil {
		return scores, err
	}
	most := 0
	for _, g := range groups {
		most = max(most, len(g.queries))
	}
	return p.on.Scratch(most, p.width(n)), nil
}

// score writes the scores of a group with candidates, and returns those of the group.
func (p *pass) score(g *queries, scores, rows backend.Tensor) backend.Tensor {
	m := len(g.queries)
	p.links = backend.Links{Decoder: p.Decoder, Chunk: m}
	scores = scores.Slice(0, m)
	backend.LinkScores(p.on, &p.links, scores, p.on.Host(g.rows, m, p.Dim), rows)
	return scores
}

// scoreTargets computes the scores of the true answers of a group, given their rows.
func (p *pass) scoreTargets(g *queries, rows []float32) error {
	p.own = mem.Resized(p.own, len(g.targets))
	once := candidatesOnce
	if p.on.Device() != nil {
		once = p.once()
	}
	for lo := 0; lo < len(g.targets); lo += once {
		n := min(once, len(g.targets)-lo)
		scores, err := p.begin(n, g)
		if err != nil {
			return err
		}
		skip := scores.Cols - n
		scores = p.score(g, scores, p.targetRows(g, rows, lo, n))
		p.words = p.words[:0]
		for i, t := range g.targets[lo : lo+n] {
			p.words = append(p.words, uint32(t.query*scores.Cols+skip+i))
		}
		own := p.on.Scratch(n, 1)
		backend.PickRows(p.on, own, scores.Flat().View(0, scores.Len(), 1), p.on.Host(nil, 0, 1),
			backend.Words(p.on, p.words))
		p.on.Read(p.own[lo:], own)
		if err := p.on.Err(); err != nil {
			return err
		}
	}
	for i := range g.targets {
		if g.targets[i].score = p.own[i]; math.IsNaN(float64(p.own[i])) {
			return fmt.Errorf("rank: %w", ErrNaN)
		}
	}
	return nil
}

// targetRows returns the rows of n targets from lo on, as the last of as many as are scored
// together.
func (p *pass) targetRows(g *queries, rows []float32, lo, n int) backend.Tensor {
	if !p.resident() {
		return p.on.Host(rows[lo*p.Dim:(lo+n)*p.Dim], p.width(n), p.Dim)
	}
	p.words = p.words[:0]
	for _, t := range g.targets[lo : lo+n] {
		p.words = append(p.words, t.entity)
	}
	out := p.on.Scratch(p.width(n), p.Dim)
	backend.PickRows(p.on, out.Last(n), p.Rows, p.on.Host(nil, 0, p.Dim),
		backend.Words(p.on, p.words))
	return out
}

// compareAll compares all groups, which all entities may answer, with those of a block.
func (p *pass) compareAll(ctx context.Context, b *Block) error {
	for lo := 0; lo < b.Count; lo += p.once() {
		c := candidates{n: min(p.once(), b.Count-lo)}
		if b.Ascending {
			c.first = b.Entity(lo)
		} else {
			c.at = func(e uint32) int {
				number, row := p.vectors.Place(e)
				if at := int(row) - lo; number == b.Number && at >= 0 && at < c.n {
					return at
				}
				return -1
			}
		}
		scores, err := p.begin(c.n, p.queries...)
		if err != nil {
			return err
		}
		rows := p.tile(b, lo, c.n)
		for _, g := range p.queries {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := p.compare(g, p.score(g, scores, rows), &c); err != nil {
				return err
			}
		}
	}
	return nil
}

// tile returns n rows of a block from lo on, as the last of as many as are scored together.
func (p *pass) tile(b *Block, lo, n int) backend.Tensor {
	width := p.width(n)
	if p.resident() {
		return p.Rows.Slice(lo+n-width, width)
	}
	return p.on.Host(b.Rows[lo*p.Dim:(lo+n)*p.Dim], width, p.Dim)
}

// compareSome compares each group with those of its candidates that are in a block.
func (p *pass) compareSome(ctx context.Context, b *Block) (err error) {
	for _, g := range p.queries {
		p.span = g.span
		switch {
		case len(g.places) == 0 && b.Ascending:
			err = p.compareSpan(ctx, g, b)
		case len(g.places) == 0:
			err = p.compareRows(ctx, g, b, p.rowsOf(g.span, b))
		default:
			err = p.compareRows(ctx, g, b, p.rowsDrawn(g, b))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compareSpan compares a group with all entities of an ascending block that may answer it.
func (p *pass) compareSpan(ctx context.Context, g *queries, b *Block) error {
	lo, hi := g.span.within(b)
	for ; lo < hi; lo += p.once() {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := candidates{n: min(p.once(), hi-lo), first: b.Entity(lo)}
		scores, err := p.begin(c.n, g)
		if err != nil {
			return err
		}
		if err := p.compare(g, p.score(g, scores, p.tile(b, lo, c.n)), &c); err != nil {
			return err
		}
	}
	return nil
}

// rowsDrawn returns the rows of a block that were drawn for a group, ascending.
func (p *pass) rowsDrawn(g *queries, b *Block) []uint32 {
	p.places = p.places[:0]
	from, _ := slices.BinarySearch(g.places, uint64(b.Number)<<32)
	for _, place := range g.places[from:] {
		if int(place>>32) != b.Number {
			break
		}
		p.places = append(p.places, uint32(place))
	}
	return p.places
}

// rowsOf returns the rows of a block whose entities are in a span, ascending.
func (p *pass) rowsOf(s Span, b *Block) []uint32 {
	p.places = p.places[:0]
	for row := range b.Count {
		if s.has(b.Entity(row)) {
			p.places = append(p.places, uint32(row))
		}
	}
	return p.places
}

// compareRows compares a group with some rows of a block, which ascend.
func (p *pass) compareRows(ctx context.Context, g *queries, b *Block, rows []uint32) error {
	for lo := 0; lo < len(rows); lo += p.once() {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := rows[lo:min(lo+p.once(), len(rows))]
		p.some, p.others = p.some[:0], p.others[:0]
		for _, row := range part {
			p.some = append(p.some, b.Entity(int(row)))
			p.others = append(p.others, b.Rows[int(row)*p.Dim:][:p.Dim]...)
		}
		c := candidates{some: p.some, n: len(part)}
		if !b.Ascending {
			c.at = func(e uint32) int {
				if number, row := p.vectors.Place(e); number == b.Number {
					if at, found := slices.BinarySearch(part, uint32(row)); found {
						return at
					}
				}
				return -1
			}
		}
		scores, err := p.begin(c.n, g)
		if err != nil {
			return err
		}
		there := p.on.Host(p.others, p.width(c.n), p.Dim)
		if err := p.compare(g, p.score(g, scores, there), &c); err != nil {
			return err
		}
	}
	return nil
}

// compare counts the candidates that score above the targets of a group, given their scores.
func (p *pass) compare(g *queries, scores backend.Tensor, c *candidates) error {
	skip := scores.Cols - c.n
	p.findKnown(g, c, skip)
	p.of, p.own = mem.Resized(p.of, 2*len(g.targets)), mem.Resized(p.own, len(g.targets))
	p.Pool.Span(len(g.targets), part, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			t := &g.targets[i]
			p.own[i], p.of[2*i], p.of[2*i+1] = t.score, uint32(t.query), backend.NoPlace
			if at := c.place(t.entity); at >= 0 {
				p.of[2*i+1] = uint32(skip + at)
			}
		}
	})
	counts := p.on.Scratch(len(g.targets), backend.RankCounts)
	backend.LinkRanks(p.on, counts, scores, &backend.RankTargets{
		Own: p.on.Host(p.own, len(p.own), 1), Of: backend.Words(p.on, p.of),
		Known: p.on.Segments(p.known), First: skip})
	p.counts = mem.Resized(p.counts, counts.Len())
	p.on.Read(p.counts, counts)
	for i := range g.targets {
		g.targets[i].count(p.counts[backend.RankCounts*i:])
	}
	return p.on.Err()
}

// part is of how many targets, or queries, a worker finds the places at a time.
const part = 16

// findKnown lists the columns of the known answers of each query, which begin behind skip others.
func (p *pass) findKnown(g *queries, c *candidates, skip int) {
	g.columns = mem.Resized(g.columns, len(g.queries))
	p.Pool.Span(len(g.queries), part, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			g.columns[i] = c.places(g.columns[i][:0], g.known[i], skip)
		}
	})
	p.known.Off, p.known.Idx = append(p.known.Off[:0], 0), p.known.Idx[:0]
	for _, columns := range g.columns {
		p.known.Idx = append(p.known.Idx, columns...)
		p.known.Off = append(p.known.Off, uint32(len(p.known.Idx)))
	}
}
