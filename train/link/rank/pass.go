package rank

import (
	"context"
	"fmt"
	"math"
	"slices"

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

	ends   []uint32  // known ends and answers of all queries
	rows   []float32 // their rows
	scored []float32
	some   []uint32  // drawn candidates that are in a block
	others []float32 // their rows
}

// queries is a group of queries that are scored together.
type queries struct {
	queries []triples.Query
	targets []target
	known   [][]uint32 // known answers of each query in a block
	rows    []float32  // of the queries
	places  []uint64   // of drawn candidates: block<<32 | row
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

// take takes queries of asked from number first on, and returns the number of the one after them.
func (g *queries) take(asked *triples.Index, first int) int {
	g.queries, g.targets, g.known = g.queries[:0], g.targets[:0], g.known[:0]
	i := first
	for ; i < asked.Len() && len(g.queries) < queriesMost; i++ {
		q, answers := asked.At(i)
		if len(g.targets) > 0 && len(g.targets)+len(answers) > targetsMost {
			break
		}
		for _, a := range answers {
			g.targets = append(g.targets, target{entity: a, query: len(g.queries)})
		}
		g.queries, g.known = append(g.queries, q), append(g.known, nil)
	}
	return i
}

// draw draws different candidates, and notes their places in ascending order.
func (g *queries) draw(cfg *Config, number uint64, v Vectors) {
	p := rng.NewPermutation(uint64(v.Count()), rng.Key(candidateDomain, cfg.Seed, number))
	g.places = g.places[:0]
	for i := range cfg.Candidates {
		block, row := v.Place(uint32(p.At(uint64(i))))
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
			if err := ctx.Err(); err != nil {
				return err
			}
			for i, q := range g.queries {
				if known != nil {
					g.known[i] = known.Answers(q)
				}
			}
			if p.cfg.Candidates > 0 {
				p.compareDrawn(g, b)
			} else {
				p.compareAll(g, b)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, g := range p.queries {
		for i := range g.targets {
			t := &g.targets[i]
			p.result.add(g.queries[t.query], t)
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
		all = all[m*p.Dim:]
		if err := p.scoreTargets(g, all[:len(g.targets)*p.Dim]); err != nil {
			return err
		}
		all = all[len(g.targets)*p.Dim:]
	}
	return nil
}

// scoreTargets computes the scores of the true answers of a group, given their rows.
func (p *pass) scoreTargets(g *queries, rows []float32) error {
	m, n := len(g.queries), len(g.targets)
	p.scored = mem.Sized(p.scored, m*n)
	p.scores(p.scored, g.rows, rows, m, n)
	for i := range g.targets {
		t := &g.targets[i]
		if t.score = p.scored[t.query*n+i]; math.IsNaN(float64(t.score)) {
			return fmt.Errorf("rank: %w", ErrNaN)
		}
	}
	return nil
}

// compareAll compares a group with all entities of a block.
func (p *pass) compareAll(g *queries, b *Block) {
	for lo := 0; lo < b.Count; lo += candidatesOnce {
		c := candidates{n: min(candidatesOnce, b.Count-lo)}
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
		p.compare(g, b.Rows[lo*p.Dim:], &c)
	}
}

// compareDrawn compares a group with those of its drawn candidates that are in a block.
func (p *pass) compareDrawn(g *queries, b *Block) {
	p.some, p.others = p.some[:0], p.others[:0]
	from, _ := slices.BinarySearch(g.places, uint64(b.Number)<<32)
	for _, place := range g.places[from:] {
		if int(place>>32) != b.Number {
			break
		}
		row := int(uint32(place))
		p.some = append(p.some, b.Entity(row))
		p.others = append(p.others, b.Rows[row*p.Dim:][:p.Dim]...)
	}
	for lo := 0; lo < len(p.some); lo += candidatesOnce {
		some := p.some[lo:min(lo+candidatesOnce, len(p.some))]
		c := candidates{some: some, n: len(some)}
		if !b.Ascending {
			c.at = func(e uint32) int { return slices.Index(some, e) }
		}
		p.compare(g, p.others[lo*p.Dim:], &c)
	}
}

// compare counts the candidates that score above the targets of a group, given the
// candidates' rows.
func (p *pass) compare(g *queries, rows []float32, c *candidates) {
	m := len(g.queries)
	p.scored = mem.Sized(p.scored, m*c.n)
	p.scores(p.scored, g.rows, rows, m, c.n)
	const part = 16
	p.Pool.Run((len(g.targets)+part-1)/part, func(number int) {
		for i := number * part; i < min(len(g.targets), (number+1)*part); i++ {
			t := &g.targets[i]
			t.count(p.scored[t.query*c.n:][:c.n], c, g.known[t.query])
		}
	})
}
