package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/layout"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/keys"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/ingest/stream"
	"gdb/layout/ingest/table"
	"gdb/layout/ingest/tables"
)

// idMode is the way from external ids to node ids. It follows from the source, and from whether
// the ids fit in memory: ranked and wide give the same store, and so do table and text.
type idMode string

const (
	idRows   idMode = "rows"   // row numbers: the ids are the nodes
	idRanked idMode = "ranked" // integers whose set fits in memory: a node is its id's rank
	idWide   idMode = "wide"   // the same, found by sorting
	idTable  idMode = "table"  // strings that fit in memory: nodes in order of first appearance
	idText   idMode = "text"   // the same, found by sorting
	idNamed  idMode = "named"  // rows of types whose ids are known: see keys.Named
)

// joinsEdges reports whether edges are sorted by id and joined with the sorted ids.
func (m idMode) joinsEdges() bool { return m == idWide || m == idText }

// joinsRows reports whether rows are sorted by id and joined too: of text ids, only the sorted
// dictionary outlives the scan.
func (m idMode) joinsRows() bool { return m == idTable || m.joinsEdges() }

// nodesMax is the largest number of nodes: node ids are uint32.
const nodesMax = 1 << 32

// scanResult is what the first pass over the edges gives.
type scanResult struct {
	Mode     idMode
	HashSeed uint64
	// Nodes is the number of nodes if ids are rows; else it is known after numbering.
	Nodes uint64
	// Renumbered says that the ids in the runs are permuted already.
	Renumbered bool
	Edges      []extsort.Run     // ids, or keys of ids, and payload
	IDs        []extsort.Run     // keys of ids (wide), entries (text), or the bitmap (ranked)
	Rows       []extsort.Run     // of tables of edges, unless edges carry them: see tables.Rows
	RowBytes   int               // of the row that each edge carries: see stream.EdgeCodec
	Read       uint64            // rows of the source
	NodeRows   uint64            // rows of the node tables
	Pairs      stream.PairCounts // of a sample, where reverse edges are not added
	LoopsGone  uint64            // self loops dropped
	Skipped    uint64            // bad lines
	EdgeTypes  []string
}

// errWide says that an integer id does not fit in the bitmap: the scan starts again.
var errWide = errors.New("an id is too large for the set in memory")

// errWideRow says that the row of an edge is larger than those before it: the scan starts again.
var errWideRow = errors.New("a row of a table of edges is larger than edges carry")

// carriedRow returns how many bytes of its row each edge carries.
func (p *pipeline) carriedRow(mode idMode) int {
	ends := 1
	if mode.joinsEdges() {
		ends = 2
	}
	return tables.RowsCarried(&p.Memory, p.info, p.codec, ends, p.rowBytes)
}

// skipper is what sources have that skip bad lines.
type skipper interface{ SkippedLines() int64 }

// textForcer is what sources have that guess from their first rows that ids are integers.
type textForcer interface{ ForceText() }

func (p *pipeline) scan(ctx context.Context) (*scanResult, error) {
	out, err := p.scanStep(ctx)
	if err == nil {
		p.codec.RowBytes = out.RowBytes
	}
	if t, ok := p.src.(textForcer); ok && err == nil &&
		(out.Mode == idText || out.Mode == idTable) {
		t.ForceText() // a resumed ingest guesses anew, and must come to what the scan found
	}
	return out, err
}

func (p *pipeline) scanStep(ctx context.Context) (*scanResult, error) {
	return steps.Do(ctx, p.Work, "scan", func(ctx context.Context, out *scanResult) error {
		if p.sorted() != nil { // edges are read when lists are written
			*out = scanResult{Mode: idRows, HashSeed: p.hashSeed, Nodes: p.info.Nodes,
				Read: p.info.Edges, EdgeTypes: p.info.EdgeTypes}
			return nil
		}
		mode := idRanked
		switch {
		case p.named != nil:
			mode = idNamed
		case p.info.RowIDs:
			mode = idRows
		case p.info.TextIDs:
			mode = idTable
		}
		for {
			*out = scanResult{Mode: mode, HashSeed: p.hashSeed}
			err := p.scanAs(ctx, out)
			if s, ok := p.src.(skipper); ok {
				out.Skipped = uint64(s.SkippedLines())
			}
			t, guesses := p.src.(textForcer)
			switch {
			case errors.Is(err, errWide):
				mode = idWide
			case errors.Is(err, errWideRow):
				p.rowBytes = p.codec.RowBytes + 1
			case errors.Is(err, table.ErrNotInteger) && guesses:
				var bad *input.Error
				if errors.As(err, &bad) {
					p.note("all ids are read as text, since %s: %s", bad.Where, bad.What)
				}
				t.ForceText()
				mode = idTable
			case errors.Is(err, steps.ErrNumbersFull):
				mode = idText
			case errors.Is(err, steps.ErrCollision) && p.hashSeed+1 < hashSeeds:
				p.hashSeed++
			default:
				return err
			}
		}
	})
}

// scanAs makes the pass in one mode.
func (p *pipeline) scanAs(ctx context.Context, out *scanResult) error {
	s, err := newScanner(ctx, p, out)
	if err != nil {
		return err
	}
	if !p.info.RowIDs && p.named == nil {
		err = p.src.Nodes(ctx, s.nodes)
	}
	if err == nil {
		err = p.src.Edges(ctx, s.edges)
	}
	if err == nil {
		err = s.shared.check(p)
	}
	if err == nil {
		err = s.finish()
	}
	if err == nil && s.rounded.Count > 0 {
		p.note("float32, in which weights are stored, changes %d of %d; the first is in %s",
			s.rounded.Count, out.Read, s.rounded.First)
	}
	if s.watch != nil {
		out.Pairs = s.watch.Counts()
	}
	return errors.Join(err, s.close())
}

// scanner is the consumer of the first pass.
type scanner struct {
	p      *pipeline
	ctx    context.Context
	out    *scanResult
	ids    idCollector
	sorter *extsort.Words
	types  *steps.EdgeTypes
	perm   steps.Order
	limit  uint64            // of row ids
	top    uint64            // largest row id plus one
	ranged rangedNodes       // of a source whose types are ranges
	lists  *layout.NodeLists // in-lists, once all nodes are known; nil if nodes have one each

	both      bool // add reverse edges
	dropLoops bool
	width     int               // words in a record
	src, dst  []uint64          // keys of the ids of a chunk
	batch     []uint64          // records on their way to the sorter
	watch     *stream.PairWatch // nil where reverse edges are added
	shared    sharedWatch
	rounded   source.RoundedWeights // of all edges
	rows      tables.Rows
}

// scanBatchWords is the size of a batch, a multiple of every width: it stays in the L1 cache.
const scanBatchWords = 13 * 120

func newScanner(ctx context.Context, p *pipeline, out *scanResult) (s *scanner, err error) {
	var index *keys.Indexes
	if src, ok := p.src.(keys.Source); ok && p.info.Ranged && out.Mode == idTable {
		if index, err = keys.Load(ctx, p.Work, src, p.keysFound); err != nil {
			return nil, err
		}
	}
	out.RowBytes = p.carriedRow(out.Mode)
	p.codec.RowBytes = out.RowBytes
	s = &scanner{p: p, ctx: ctx, out: out, limit: nodesMax, types: steps.NewEdgeTypes(p.info),
		dropLoops: p.dropsLoops(), width: 1 + p.codec.Payload(),
		batch: make([]uint64, 0, scanBatchWords)}
	opt := p.Sorter("edges", s.width, p.Memory.Sort)
	if out.Mode.joinsEdges() {
		// One record an edge, by source first; reverse edges are added when both ends are known.
		s.width++
		opt.Width, opt.Key = s.width, 1
	} else {
		s.both = p.addsReverse()
	}
	if !p.addsReverse() && p.into == nil {
		s.watch = stream.NewPairWatch()
	}
	if p.info.RowIDs && p.info.Nodes > 0 {
		s.limit = p.info.Nodes
		s.perm = p.permutation(s.limit)
		out.Renumbered = s.perm != nil
	}
	s.ranged.keys = index
	if s.ids, err = newIDCollector(p, out, index); err != nil {
		return nil, errors.Join(err, index.Close())
	}
	if s.sorter, err = extsort.NewWords(opt); err != nil {
		return nil, errors.Join(err, s.ids.Abort(), index.Close())
	}
	s.rows.Open(p.Work, p.info, out.RowBytes > 0)
	return s, nil
}

// addsReverse reports whether each edge's reverse is stored too.
func (p *pipeline) addsReverse() bool { return p.opt.Undirected || p.info.AddInverse }

// dropsLoops reports whether self loops are left out.
func (p *pipeline) dropsLoops() bool { return p.opt.Undirected && !p.opt.KeepSelfLoops }

// dropsDuplicates reports whether duplicates are left out.
func (p *pipeline) dropsDuplicates() bool {
	return !p.opt.KeepDuplicates && (p.opt.Dedup || p.opt.Undirected || p.opt.Merge != "")
}

// nodes takes the ids of a node table.
func (s *scanner) nodes(c *source.IDChunk) error {
	first := s.out.NodeRows
	if !c.Repeats {
		s.out.NodeRows += uint64(c.Len())
	}
	s.src = slices.Grow(s.src[:0], c.Len())[:c.Len()]
	if err := s.ids.keys(idColumn{c.Ints, c.Text}, idColumn{}, s.src, nil); err != nil {
		return err
	}
	switch {
	case !s.p.info.Ranged:
		s.shared.nodes(c, s.src)
	case s.out.Mode == idTable:
		s.ranged.begin(c.Type)
		if err := s.numbersOfRows(c, first); err != nil {
			return err
		}
	}
	return s.ctx.Err()
}

// edges takes a chunk of edges.
func (s *scanner) edges(c *source.EdgeChunk) error {
	n := c.Len()
	s.out.Read += uint64(n)
	s.p.Progress("read edges", s.out.Read, s.p.info.Edges, "edges")
	s.src, s.dst = slices.Grow(s.src[:0], n)[:n], slices.Grow(s.dst[:0], n)[:n]
	err := s.typedLists()
	if err != nil {
		return err
	}
	if s.lists != nil {
		err = s.rangedEnds(c)
	} else {
		err = s.ids.keys(idColumn{c.SrcInt, c.SrcText}, idColumn{c.DstInt, c.DstText}, s.src,
			s.dst)
	}
	if err != nil {
		return err
	}
	if s.rounded.First == "" {
		s.rounded.First = c.Rounded.First
	}
	s.rounded.Count += c.Rounded.Count
	s.shared.edges(s.src, s.dst)
	if s.watch != nil {
		s.watch.Observe(s.src, s.dst)
	}
	if s.out.Mode == idRows {
		if err := s.checkRows(c); err != nil {
			return err
		}
	}
	if s.width == 1 {
		err = s.plain()
	} else {
		err = s.general(c)
	}
	return errors.Join(err, s.ctx.Err())
}

// checkRows checks that row ids are in range, and renumbers them.
func (s *scanner) checkRows(c *source.EdgeChunk) error {
	top := s.top
	for i, v := range s.src {
		if m := max(v, s.dst[i]); m >= top {
			if m >= s.limit {
				return rowOutOfRange(c, i, m, s.limit)
			}
			top = m + 1
		}
	}
	s.top = top
	if s.perm != nil {
		for i := range s.src {
			s.src[i], s.dst[i] = s.perm.At(s.src[i]), s.perm.At(s.dst[i])
		}
	}
	return nil
}

func rowOutOfRange(c *source.EdgeChunk, i int, id, limit uint64) error {
	what := "source"
	if c.SrcInt[i] != id {
		what = "destination"
	}
	e := &input.Error{Where: c.Position(i),
		What: fmt.Sprintf("%s %d is out of range: there are %d nodes", what, id, limit),
		Do:   fmt.Sprintf("ids are row numbers, 0 to %d", limit-1)}
	if limit == nodesMax {
		e.What = fmt.Sprintf("%s %d is out of range", what, id)
		e.Do = "a store has at most 4294967296 nodes"
	}
	return e
}

// plain emits edges of node ids without payload: the fast path. A loop is its own reverse, so
// undirected input has it once; where the source's convention asks for reverse edges, that adds it
// again, as its other readers do.
func (s *scanner) plain() error {
	batch, both, twice := s.batch[:0], s.both, !s.p.opt.Undirected
	for i, a := range s.src {
		b := s.dst[i]
		if a == b && s.dropLoops {
			s.out.LoopsGone++
			continue
		}
		batch = append(batch, b<<32|a)
		if both && (a != b || twice) {
			batch = append(batch, a<<32|b)
		}
		if len(batch)+2 > cap(batch) {
			if err := s.sorter.Add(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return s.sorter.Add(batch)
}

// general emits edges with payload, or of ids that are still to be numbered.
func (s *scanner) general(c *source.EdgeChunk) error {
	batch, joined := s.batch[:0], s.out.Mode.joinsEdges()
	split := uint16(slices.Index(s.p.info.EdgeSplits, c.Split) + 1) // 0 if it is in none
	var rec [extsort.WordsMax]uint64
	first, err := s.rows.Add(c)
	if err != nil {
		return err
	}
	ends := 1
	if joined {
		ends = 2
	}
	for i, a := range s.src {
		b := s.dst[i]
		typ, weight, time, err := s.payload(c, i)
		if err != nil {
			return err
		}
		if s.p.Times != nil {
			split = uint16(s.p.Times.Split(time) + 1)
		}
		s.p.codec.Pack(rec[ends:], typ, weight, time, split, first+uint64(i))
		if s.out.RowBytes > 0 {
			if err := s.carry(c, i, rec[:s.width], first); err != nil {
				return err
			}
		}
		if rec[0], err = pairOf(s.lists, b, a, typ); err != nil {
			return err
		}
		if joined {
			rec[0], rec[1] = a, b
		}
		if a == b && s.dropLoops {
			s.out.LoopsGone++
			continue
		}
		batch = append(batch, rec[:s.width]...)
		if s.both && (a != b || !s.p.opt.Undirected) {
			rec[0] = a<<32 | b
			s.p.codec.SetReversed(rec[:s.width], true)
			batch = append(batch, rec[:s.width]...)
		}
		if len(batch)+2*s.width > cap(batch) {
			if err := s.sorter.Add(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return s.sorter.Add(batch)
}

// carry puts the row of edge i of a chunk, whose first has a number, into its record.
func (s *scanner) carry(c *source.EdgeChunk, i int, rec []uint64, first uint64) error {
	row := s.rows.Row(c, i)
	if len(row) > s.out.RowBytes || first+uint64(i) >= stream.NumbersMost {
		return errWideRow
	}
	s.p.codec.SetRow(rec, row)
	return nil
}

// payload returns the type, weight and time of edge i of a chunk.
func (s *scanner) payload(c *source.EdgeChunk, i int) (typ uint16, w float32, t int64, err error) {
	if s.p.codec.Typed {
		if typ, err = s.types.Number(c, i); err != nil {
			return 0, 0, 0, err
		}
	}
	if s.p.codec.Weighted {
		w = c.Weight[i]
	}
	if s.p.codec.Timed {
		t = c.Time[i]
	}
	return typ, w, t, nil
}

func (s *scanner) finish() (err error) {
	if s.out.Edges, err = s.sorter.Finish(); err != nil {
		return err
	}
	if s.out.IDs, err = s.ids.Finish(); err != nil {
		return err
	}
	if s.out.Rows, err = s.rows.Finish(); err != nil {
		return err
	}
	s.p.KeepRuns(s.out.Rows)
	s.p.KeepRuns(s.out.Edges)
	s.p.KeepRuns(s.out.IDs)
	s.out.EdgeTypes = s.types.Names
	if s.out.Mode == idRows {
		if s.out.Nodes = s.p.info.Nodes; s.out.Nodes == 0 {
			s.out.Nodes = s.top
		}
	}
	return nil
}

func (s *scanner) close() error {
	return errors.Join(s.sorter.Abort(), s.ids.Abort(), s.rows.Close(), s.ranged.keys.Close())
}
