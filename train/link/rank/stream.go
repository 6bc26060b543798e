package rank

import (
	"context"
	"fmt"
	"slices"

	"gdb/train/link/triples"
)

// BlockRows are scored together: of partitions that are entities in ascending order, each of them a
// multiple of so many, scores have the bits that Ranks finds.
const BlockRows = candidatesOnce

// Rows has the rows of entities that are not all in memory: they come by partition.
type Rows interface {
	// Count is the number of entities.
	Count() int
	// Place is the partition of an entity, and its row there.
	Place(e uint32) (part int, row uint64)
	// Gather writes the rows of some entities.
	Gather(ctx context.Context, to []float32, entities []uint32) error
	// Each calls fn with every partition, one after the other.
	Each(ctx context.Context, fn func(p *Partition) error) error
	// Known has the edges that are known to be true between the queries of asked and a partition.
	Known(ctx context.Context, part int, asked *triples.Index) (*triples.Index, error)
}

// Partition is some entities, whose rows are in memory during a call.
type Partition struct {
	Number int
	Rows   []float32
	Count  int
	// Entity is the one of a row.
	Entity func(row int) uint32
}

// StreamConfig says how ranks are found in rows that come by partition.
type StreamConfig struct {
	// Candidates and Seed are those of Config.
	Candidates int
	Seed       uint64
	// Bytes is about the memory of the queries that go through the partitions together.
	Bytes int64
}

// RanksOf is Ranks of entities that are not all in memory: s has none, and rows have them. Some
// queries together, as many as fit, go through all partitions. Without draws of candidates, ranks
// are those of Ranks, as far as scores are the same whichever others are computed with them.
func RanksOf(ctx context.Context, s *Scorer, rows Rows, edges []triples.Triple,
	cfg StreamConfig) (*Result, error) {
	if len(edges) == 0 {
		return nil, ErrNothing
	}
	if cfg.Candidates >= rows.Count() {
		cfg.Candidates = 0
	}
	asked, result := triples.NewIndex(edges), newResult()
	p := &pass{rows: rows, cfg: cfg, asked: asked}
	for first := 0; first < asked.Len(); {
		p.blocks = p.blocks[:0]
		for used := int64(0); first < asked.Len() && (used == 0 || used < cfg.Bytes); {
			b := &ranker{Scorer: s, cfg: Config{Candidates: cfg.Candidates, Seed: cfg.Seed},
				asked: asked, result: result}
			first = b.take(first)
			if cfg.Candidates > 0 {
				b.drawOf(uint64(first), rows)
			}
			p.blocks = append(p.blocks, b)
			used += b.bytes()
		}
		if err := p.run(ctx, s.Dim); err != nil {
			return nil, err
		}
	}
	result.finish()
	return result, nil
}

// pass is blocks of queries that go through the partitions together.
type pass struct {
	rows   Rows
	cfg    StreamConfig
	asked  *triples.Index
	blocks []*ranker
	others []float32 // of candidates that are drawn
	some   []uint32
}

// bytes is the memory of a block of queries.
func (r *ranker) bytes() int64 {
	const target = 80
	return int64(4*(2*len(r.queries)+len(r.targets))*r.Dim + target*len(r.targets) +
		12*len(r.drawn))
}

// run ranks the targets of the blocks.
func (p *pass) run(ctx context.Context, dim int) error {
	if err := p.prepare(ctx, dim); err != nil {
		return err
	}
	err := p.rows.Each(ctx, func(part *Partition) error {
		known, err := p.rows.Known(ctx, part.Number, p.asked)
		if err != nil {
			return err
		}
		for _, b := range p.blocks {
			if err := ctx.Err(); err != nil {
				return err
			}
			for i, q := range b.queries {
				b.known[i] = known.Answers(q)
			}
			if p.cfg.Candidates > 0 {
				p.compareDrawn(b, part)
			} else {
				p.compareAll(b, part)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, b := range p.blocks {
		for i := range b.targets {
			t := &b.targets[i]
			b.result.add(b.queries[t.query], t)
		}
	}
	return nil
}

// prepare makes the rows of the queries, and scores their true answers.
func (p *pass) prepare(ctx context.Context, dim int) error {
	var ends []uint32
	for _, b := range p.blocks {
		for _, q := range b.queries {
			ends = append(ends, q.Entity)
		}
		for _, t := range b.targets {
			ends = append(ends, t.entity)
		}
	}
	all := make([]float32, len(ends)*dim)
	if err := p.rows.Gather(ctx, all, ends); err != nil {
		return err
	}
	for _, b := range p.blocks {
		m := len(b.queries)
		b.rows = make([]float32, m*dim)
		b.Pool.Run(m, func(i int) {
			b.Query(b.rows[i*dim:][:dim], all[i*dim:][:dim], b.queries[i])
		})
		all = all[m*dim:]
		if err := b.scoreTargets(m, all[:len(b.targets)*dim]); err != nil {
			return err
		}
		all = all[len(b.targets)*dim:]
		b.scored = nil
	}
	return nil
}

// compareAll compares a block with all entities of a partition.
func (p *pass) compareAll(b *ranker, part *Partition) {
	for lo := 0; lo < part.Count; lo += candidatesOnce {
		n := min(candidatesOnce, part.Count-lo)
		p.compare(b, part.Rows[lo*b.Dim:], candidates{n: n, at: func(e uint32) int {
			number, row := p.rows.Place(e)
			if at := int(row) - lo; number == part.Number && at >= 0 && at < n {
				return at
			}
			return -1
		}})
	}
}

// compareDrawn compares a block with the candidates that it drew and a partition has.
func (p *pass) compareDrawn(b *ranker, part *Partition) {
	p.some, p.others = p.some[:0], p.others[:0]
	from, _ := slices.BinarySearch(b.places, uint64(part.Number)<<32)
	for _, place := range b.places[from:] {
		if int(place>>32) != part.Number {
			break
		}
		row := int(uint32(place))
		p.some = append(p.some, part.Entity(row))
		p.others = append(p.others, part.Rows[row*b.Dim:][:b.Dim]...)
	}
	for lo := 0; lo < len(p.some); lo += candidatesOnce {
		some := p.some[lo:min(lo+candidatesOnce, len(p.some))]
		p.compare(b, p.others[lo*b.Dim:], candidates{n: len(some), at: func(e uint32) int {
			return slices.Index(some, e)
		}})
	}
}

// compare compares a block with candidates, in memory that the blocks share.
func (p *pass) compare(b *ranker, rows []float32, c candidates) {
	b.scored = p.blocks[0].scored
	b.compare(rows, c)
	p.blocks[0].scored = b.scored
}

// drawOf draws candidates, and notes their places in ascending order.
func (r *ranker) drawOf(number uint64, rows Rows) {
	r.draw(number, rows.Count())
	for _, e := range r.drawn {
		part, row := rows.Place(e)
		r.places = append(r.places, uint64(part)<<32|row)
	}
	slices.Sort(r.places)
}

// TopOf is Top of entities that are not all in memory; skip are the answers that do not count, in
// ascending order.
func TopOf(ctx context.Context, s *Scorer, rows Rows, q triples.Query, n int,
	skip []uint32) ([]triples.Answer, error) {
	entity, row := make([]float32, s.Dim), make([]float32, s.Dim)
	if err := rows.Gather(ctx, entity, []uint32{q.Entity}); err != nil {
		return nil, err
	}
	s.Query(row, entity, q)
	scores, best := make([]float32, candidatesOnce), NewBest(n)
	err := rows.Each(ctx, func(p *Partition) error {
		for lo := 0; lo < p.Count; lo += candidatesOnce {
			count := min(candidatesOnce, p.Count-lo)
			s.scores(scores, row, p.Rows[lo*s.Dim:], 1, count)
			best.Block(scores[:count], func(i int) uint32 { return p.Entity(lo + i) }, skip)
		}
		return nil
	})
	return best.Answers(), err
}

// PairsOf is Scorer.Pairs of entities that are not all in memory. Memory: the rows of the edges'
// ends.
func PairsOf(ctx context.Context, s *Scorer, rows Rows, to []float32,
	edges []triples.Triple) error {
	var ends []uint32
	for _, e := range edges {
		ends = append(ends, e.Head, e.Tail)
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	some := *s
	some.Entities, some.Count = make([]float32, len(ends)*s.Dim), len(ends)
	if err := rows.Gather(ctx, some.Entities, ends); err != nil {
		return fmt.Errorf("rank: %w", err)
	}
	moved := slices.Clone(edges)
	for i := range moved {
		head, _ := slices.BinarySearch(ends, moved[i].Head)
		tail, _ := slices.BinarySearch(ends, moved[i].Tail)
		moved[i].Head, moved[i].Tail = uint32(head), uint32(tail)
	}
	some.Pairs(to, moved)
	return nil
}
