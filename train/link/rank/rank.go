package rank

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/compute/backend"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

const (
	// queriesMost and targetsMost bound the number of queries that are scored together, and of
	// their true answers.
	queriesMost, targetsMost = 256, 4096
	// candidatesOnce is how many candidates are scored together: with queriesMost queries, 8
	// MiB of scores. candidatesThere is how many of a device's rows are: 32 MiB.
	candidatesOnce, candidatesThere = 8192, 32768
	// candidateDomain separates the random keys of candidates from others.
	candidateDomain = 0x72616e6b // "rank"
)

// Bytes returns the memory of an evaluation of rows with dim columns.
func Bytes(dim int) int64 {
	return 4 * int64(queriesMost*(candidatesOnce+targetsMost)+
		(queriesMost+targetsMost+candidatesOnce)*dim)
}

// DeviceBytes returns what an evaluation takes of a device, given rows of entities that it has, or
// that are sent there.
func DeviceBytes(dim, entities int, resident bool) int64 {
	once, sent := candidatesThere, 1
	if !resident {
		once, sent = candidatesOnce, 2
	}
	once = min(once, entities)
	words := targetsMost*(backend.RankCounts+4) + queriesMost*candidatesOnce/8
	return 4*int64(queriesMost*once+(1+sent)*once*dim+2*(queriesMost*dim+words))*5/4 + 1<<20
}

// ErrNothing says that there is no edge to judge a model by.
var ErrNothing = errors.New("no edge to evaluate")

// ErrNaN says that a score is not a number.
var ErrNaN = fmt.Errorf("the score of an edge is not a number: %w; lower --lr",
	setting.ErrDiverged)

// Vectors gives access to the rows of entities, in blocks. Rows that are all in memory
// form one block.
type Vectors interface {
	// Count returns the number of entities.
	Count() int
	// Place returns the block of an entity, and its row there.
	Place(e uint32) (block int, row uint64)
	// Gather writes the rows of some entities to to.
	Gather(ctx context.Context, to []float32, entities []uint32) error
	// Each calls fn with every block, one after the other.
	Each(ctx context.Context, fn func(b *Block) error) error
	// All returns the rows of all entities, one after the other, if they are in memory; else nil.
	All() []float32
}

// Block holds some entities, whose rows are in memory during a call.
type Block struct {
	Number int
	Rows   []float32
	Count  int
	// Ascending says that the numbers of the entities follow one another.
	Ascending bool
	// Entity returns the entity of a row.
	Entity func(row int) uint32
}

// BlockRows is how many rows are scored together. If entities ascend through the blocks, and
// all blocks but the last have a multiple of BlockRows rows, scores have the same bits as with
// one block of all.
const BlockRows = candidatesOnce

// Known gives the edges that are known to be true.
type Known interface {
	// In returns an index of the known edges between the queries of asked and a block. It may
	// have more edges.
	In(ctx context.Context, block int, asked *triples.Index) (*triples.Index, error)
}

// Config says how ranks are computed.
type Config struct {
	// Known gives the edges that filtered ranks leave out when they count what is better
	// (Bordes and others, "Translating Embeddings for Modeling Multi-relational Data", section
	// 4.1); nil for none.
	Known Known
	// Candidates is how many entities an end is ranked among. They are drawn anew for each group of
	// queries. 0 takes all entities.
	Candidates int
	// Seed determines the draws.
	Seed uint64
	// PassBytes is about the memory of the queries that go through the blocks together. 0 takes the
	// least, which suits vectors in memory.
	PassBytes int64
}

// Ranks ranks both ends of edges among the other entities that could stand there, and the true
// answers of each query as a list. Of candidates
// with an equal score half count as better (Sun, Vashishth, Sanyal, Talukdar and Yang, "A
// Re-evaluation of Knowledge Graph Completion Methods"), so that a model which scores everything
// the same does not rank well.
//
// As many queries as PassBytes has room for go through all blocks together. Ranks do not depend on
// blocks, as far as scores do not depend on what else is computed with them.
func Ranks(ctx context.Context, s *Scorer, v Vectors, edges []triples.Triple,
	cfg Config) (*Result, error) {
	if len(edges) == 0 {
		return nil, ErrNothing
	}
	if cfg.Candidates >= v.Count() {
		cfg.Candidates = 0
	}
	p := &pass{Scorer: s, vectors: v, cfg: cfg, asked: triples.NewIndex(edges),
		result: newResult(), on: s.On}
	if p.on == nil {
		p.on = backend.OnPool(s.Pool)
	}
	err := p.all(ctx)
	if s.On == nil {
		err = errors.Join(err, p.on.Close())
	} else {
		err = errors.Join(err, p.on.Trim()) // for training to take
	}
	if err != nil {
		return nil, err
	}
	p.result.finish()
	return p.result, nil
}

// all ranks the targets of all queries.
func (p *pass) all(ctx context.Context) error {
	cfg := &p.cfg
	for first := 0; first < p.asked.Len(); {
		p.queries = p.queries[:0]
		for used := int64(0); first < p.asked.Len() && (used == 0 || used < cfg.PassBytes); {
			q := p.next()
			first = q.take(p, first)
			if cfg.Candidates > 0 {
				q.draw(cfg, uint64(first), p.vectors)
			}
			used += q.bytes(p.Dim)
		}
		if err := p.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// target is a true answer to query number query of a group, and counts what scores above it.
type target struct {
	entity uint32
	query  int
	score  float32
	// These count the better and the equal ones, first of all candidates and then of those that are
	// known to be true.
	above, equal           int
	knownAbove, knownEqual int
}

// count adds what was counted of some candidates: see backend.LinkRanks.
func (t *target) count(counts []float32) {
	t.above += int(counts[0])
	t.equal += int(counts[1])
	t.knownAbove += int(counts[2])
	t.knownEqual += int(counts[3])
}

// candidates are n entities. They are numbered from first on; or listed in some, ascending; or
// given by at, which returns the place of an entity, or -1.
type candidates struct {
	first uint32
	some  []uint32
	n     int
	at    func(e uint32) int
}

// place returns where an entity is among the candidates; -1 if it is not.
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

// places appends the places of those of some entities, which ascend, that are among the candidates
// to to, counted on from skip.
func (c *candidates) places(to, some []uint32, skip int) []uint32 {
	if c.some == nil && c.at == nil { // they ascend
		from, _ := slices.BinarySearch(some, c.first)
		end, _ := slices.BinarySearch(some, c.first+uint32(c.n))
		some = some[from:end]
	}
	for _, e := range some {
		if at := c.place(e); at >= 0 {
			to = append(to, uint32(skip+at))
		}
	}
	return to
}
