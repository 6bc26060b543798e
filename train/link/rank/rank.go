package rank

import (
	"context"
	"errors"
	"slices"

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

// Vectors are the rows of entities, in blocks: all in memory are one block.
type Vectors interface {
	// Count returns the number of entities.
	Count() int
	// Place returns the block of an entity, and its row there.
	Place(e uint32) (block int, row uint64)
	// Gather writes the rows of some entities.
	Gather(ctx context.Context, to []float32, entities []uint32) error
	// Each calls fn with every block, one after the other.
	Each(ctx context.Context, fn func(b *Block) error) error
	// All returns the rows of all entities, one after the other, if they are in memory; else nil.
	All() []float32
}

// Block is some entities, whose rows are in memory during a call.
type Block struct {
	Number int
	Rows   []float32
	Count  int
	// Ascending says that the entities follow one another.
	Ascending bool
	// Entity returns the entity of a row.
	Entity func(row int) uint32
}

// BlockRows are scored together: of blocks of entities in ascending order, all but the last of a
// multiple of BlockRows rows, scores have the bits of one block of all.
const BlockRows = candidatesOnce

// Known has the edges that are known to be true.
type Known interface {
	// In returns an index of the known edges between the queries of asked and a block, and maybe of
	// more edges.
	In(ctx context.Context, block int, asked *triples.Index) (*triples.Index, error)
}

// Config says how ranks are found.
type Config struct {
	// Known has the edges that do not count as better than another one in filtered ranks (Bordes
	// and others, "Translating Embeddings for Modeling Multi-relational Data", section 4.1); nil
	// for none.
	Known Known
	// Candidates is how many entities, drawn anew for some queries, an end is ranked among; 0 is
	// all.
	Candidates int
	// Seed is that of the draws.
	Seed uint64
	// PassBytes is about the memory of the queries that go through the blocks together; 0 is the
	// least, for vectors in memory.
	PassBytes int64
}

// Ranks ranks both ends of edges among the other entities that could be there. Of equal scores half
// count as better (Sun, Vashishth, Sanyal, Talukdar and Yang, "A Re-evaluation of Knowledge Graph
// Completion Methods"), so that a model that says the same of all is no good one.
//
// Some queries together, as many as PassBytes has room for, go through all blocks. Ranks do not
// depend on blocks, as far as scores are the same whichever others are computed with them.
func Ranks(ctx context.Context, s *Scorer, v Vectors, edges []triples.Triple,
	cfg Config) (*Result, error) {
	if len(edges) == 0 {
		return nil, ErrNothing
	}
	if cfg.Candidates >= v.Count() {
		cfg.Candidates = 0
	}
	p := &pass{Scorer: s, vectors: v, cfg: cfg, asked: triples.NewIndex(edges),
		result: newResult()}
	for first := 0; first < p.asked.Len(); {
		p.queries = p.queries[:0]
		for used := int64(0); first < p.asked.Len() && (used == 0 || used < cfg.PassBytes); {
			q := p.next()
			first = q.take(p.asked, first)
			if cfg.Candidates > 0 {
				q.draw(&cfg, uint64(first), v)
			}
			used += q.bytes(s.Dim)
		}
		if err := p.run(ctx); err != nil {
			return nil, err
		}
	}
	p.result.finish()
	return p.result, nil
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

// candidates are n entities: those from first on; or some, in ascending order; or those of which at
// returns the place, or -1.
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
