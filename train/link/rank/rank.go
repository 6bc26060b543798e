package rank

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/internal/rng"
	"gdb/train/link/triples"
)

const (
	// queriesMost and targetsMost bound the queries that are scored together, and their true ends.
	queriesMost, targetsMost = 256, 4096
	// candidatesOnce are scored together: with queriesMost rows, 8 MiB of scores.
	candidatesOnce = 8192
	// candidateDomain keeps the draws of candidates apart from others.
	candidateDomain = 0x72616e6b // "rank"
)

// Bytes is the memory of an evaluation of rows of a width.
func Bytes(dim int) int64 {
	return 4 * int64(queriesMost*(candidatesOnce+targetsMost)+
		(queriesMost+targetsMost+candidatesOnce)*dim)
}

// ErrNothing says that there is no edge to judge a model by.
var ErrNothing = errors.New("no edge to evaluate")

// ErrNaN says that a score is not a number.
var ErrNaN = errors.New("the score of an edge is not a number: the training diverged; lower --lr")

// Config says how ranks are found.
type Config struct {
	// Known has the edges that are known to be true. They do not count as better than another one
	// in filtered ranks (Bordes and others, "Translating Embeddings for Modeling Multi-relational
	// Data", section 4.1).
	Known *triples.Index
	// Candidates is how many entities, drawn anew for some queries, an end is ranked among; 0 is
	// all.
	Candidates int
	// Seed is that of the draws.
	Seed uint64
}

// Ranks ranks both ends of edges among the other entities that could be there. Of equal scores half
// count as better (Sun, Vashishth, Sanyal, Talukdar and Yang, "A Re-evaluation of Knowledge Graph
// Completion Methods"), so that a model that says the same of all is no good one.
func Ranks(ctx context.Context, s *Scorer, edges []triples.Triple, cfg Config) (*Result, error) {
	if len(edges) == 0 {
		return nil, ErrNothing
	}
	r := &ranker{Scorer: s, cfg: cfg, asked: triples.NewIndex(edges), result: newResult()}
	if cfg.Candidates >= s.Count {
		r.cfg.Candidates = 0
	}
	for first := 0; first < r.asked.Len(); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		first = r.take(first)
		if err := r.block(uint64(first)); err != nil {
			return nil, err
		}
	}
	r.result.finish()
	return r.result, nil
}

// ranker holds the queries that are under way.
type ranker struct {
	*Scorer
	cfg    Config
	asked  *triples.Index
	result *Result

	queries []triples.Query
	targets []target
	known   [][]uint32 // of each query
	rows    []float32  // of queries
	others  []float32  // of candidates
	scored  []float32
	drawn   []uint32
	places  []uint64 // of those drawn, where rows come by partition
}

// target is a true answer to query number query, and what is above it.
type target struct {
	entity uint32
	query  int
	score  float32
	// Counts of better and equal ones among all, and among those that are known to be true.
	above, equal           int
	knownAbove, knownEqual int
}

// take takes the next queries, and returns the number of the one after them.
func (r *ranker) take(first int) int {
	r.queries, r.targets, r.known = r.queries[:0], r.targets[:0], r.known[:0]
	i := first
	for ; i < r.asked.Len() && len(r.queries) < queriesMost; i++ {
		q, answers := r.asked.At(i)
		if len(r.targets) > 0 && len(r.targets)+len(answers) > targetsMost {
			break
		}
		for _, a := range answers {
			r.targets = append(r.targets, target{entity: a, query: len(r.queries)})
		}
		r.queries = append(r.queries, q)
		var known []uint32
		if r.cfg.Known != nil {
			known = r.cfg.Known.Answers(q)
		}
		r.known = append(r.known, known)
	}
	return i
}

// block ranks the targets of the queries taken.
func (r *ranker) block(number uint64) error {
	m := len(r.queries)
	r.rows = sized(r.rows, m*r.Dim)
	r.Pool.Run(m, func(i int) { r.query(r.rows[i*r.Dim:][:r.Dim], r.queries[i]) })
	n := len(r.targets)
	r.others = sized(r.others, n*r.Dim)
	for i, t := range r.targets {
		copy(r.others[i*r.Dim:][:r.Dim], r.entity(t.entity))
	}
	if err := r.scoreTargets(m, r.others); err != nil {
		return err
	}
	if r.cfg.Candidates > 0 {
		r.draw(number, r.Count)
		r.others = sized(r.others, len(r.drawn)*r.Dim)
		for lo := 0; lo < len(r.drawn); lo += candidatesOnce {
			some := r.drawn[lo:min(lo+candidatesOnce, len(r.drawn))]
			r.gather(r.others, some)
			r.compare(r.others, candidates{some: some, n: len(some)})
		}
	} else {
		for lo := 0; lo < r.Count; lo += candidatesOnce {
			n := min(candidatesOnce, r.Count-lo)
			r.compare(r.Entities[lo*r.Dim:], candidates{first: uint32(lo), n: n})
		}
	}
	for i := range r.targets {
		t := &r.targets[i]
		r.result.add(r.queries[t.query], t)
	}
	return nil
}

// scoreTargets finds the scores of the true answers, whose rows these are.
func (r *ranker) scoreTargets(m int, rows []float32) error {
	n := len(r.targets)
	r.scored = sized(r.scored, m*n)
	r.scores(r.scored, r.rows, rows, m, n)
	for i := range r.targets {
		t := &r.targets[i]
		if t.score = r.scored[t.query*n+i]; math.IsNaN(float64(t.score)) {
			return fmt.Errorf("rank: %w", ErrNaN)
		}
	}
	return nil
}

// draw draws different candidates, in ascending order.
func (r *ranker) draw(number uint64, count int) {
	p := rng.NewPermutation(uint64(count), rng.Key(candidateDomain, r.cfg.Seed, number))
	r.drawn = r.drawn[:0]
	for i := range r.cfg.Candidates {
		r.drawn = append(r.drawn, uint32(p.At(uint64(i))))
	}
	slices.Sort(r.drawn)
}

// candidates are n entities: some, in ascending order, or if that is nil those from first on; or
// those of which at says the place, or -1.
type candidates struct {
	first uint32
	some  []uint32
	n     int
	at    func(e uint32) int
}

// place is where an entity is among them; -1 if it is not.
func (c *candidates) place(e uint32) int {
	if c.at != nil {
		return c.at(e)
	}
	if c.some == nil {
		if e < c.first || int(e-c.first) >= c.n {
			return -1
		}
		return int(e - c.first)
	}
	if i, found := slices.BinarySearch(c.some, e); found {
		return i
	}
	return -1
}

// compare counts the candidates, whose rows these are, that score above targets.
func (r *ranker) compare(rows []float32, c candidates) {
	m := len(r.queries)
	r.scored = sized(r.scored, m*c.n)
	r.scores(r.scored, r.rows, rows, m, c.n)
	const part = 16
	r.Pool.Run((len(r.targets)+part-1)/part, func(p int) {
		for i := p * part; i < min(len(r.targets), (p+1)*part); i++ {
			t := &r.targets[i]
			t.count(r.scored[t.query*c.n:][:c.n], &c, r.known[t.query])
		}
	})
}

// count counts what a row of scores has above a target, which does not count itself.
func (t *target) count(row []float32, c *candidates, known []uint32) {
	above, equal := countAbove(row, t.score)
	t.above += above
	t.equal += equal
	if own := c.place(t.entity); own >= 0 {
		switch v := row[own]; {
		case v > t.score:
			t.above--
		case v == t.score:
			t.equal--
		}
	}
	if c.some == nil && c.at == nil { // they ascend
		from, _ := slices.BinarySearch(known, c.first)
		to, _ := slices.BinarySearch(known, c.first+uint32(c.n))
		known = known[from:to]
	}
	for _, k := range known {
		place := c.place(k)
		if k == t.entity || place < 0 {
			continue
		}
		switch v := row[place]; {
		case v > t.score:
			t.knownAbove++
		case v == t.score:
			t.knownEqual++
		}
	}
}

// countAbove counts the values above a score, and those that are equal.
func countAbove(row []float32, score float32) (above, equal int) {
	for _, v := range row {
		if v > score {
			above++
		}
		if v == score {
			equal++
		}
	}
	return above, equal
}

// sized is a slice of n values, which are undefined, in the memory of x if that suffices.
func sized(x []float32, n int) []float32 {
	if cap(x) < n {
		return make([]float32, n)
	}
	return x[:n]
}
