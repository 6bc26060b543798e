package link

import (
	"math"
	"slices"

	"gdb/internal/rng"
	"gdb/train/link/rank"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

// chunksOfBatch is how many chunks a batch is divided into that have different negatives, with
// setting.NegativesChunked.
const chunksOfBatch = 10

// degreeBytes is what a row takes to draw negatives by degree.
const degreeBytes = 16

// negatives draws the entities that edges are compared with: of a typed store, those of the type
// that a query asks for.
type negatives struct {
	joins *joins
	kind  string
	count int
	rowOf func(node uint32) (row uint32, ok bool) // see triples.Part
	spans []triples.Span
	upTo  []uint64 // for each span, the rows of the spans up to and with it
	// weights holds, to draw by degree, the sums of the rows' weights: entry i is the sum of the
	// first i+1 rows of the spans. It is nil if rows are drawn uniformly.
	weights []float64
}

// newNegatives prepares to draw negatives for a part of a table of this number of rows.
func newNegatives(c *setting.Link, j *joins, p *triples.Part, rows int) *negatives {
	n := &negatives{joins: j, kind: c.NegativeSampling, count: c.Negatives, spans: p.Spans,
		rowOf: p.RowOf}
	upTo := uint64(0)
	for _, s := range p.Spans {
		upTo += uint64(s.Count)
		n.upTo = append(n.upTo, upTo)
	}
	if n.kind != setting.NegativesDegree {
		return n
	}
	degrees := make([]float64, rows)
	for _, e := range p.Edges {
		degrees[e.Head]++
		degrees[e.Tail]++
	}
	// In the order of the spans, which is the same wherever in memory these are.
	sum := 0.0
	for _, s := range p.Spans {
		for _, d := range degrees[s.Row:][:s.Count] {
			sum += math.Pow(d, c.DegreePower)
			n.weights = append(n.weights, sum)
		}
	}
	return n
}

// chunk returns how many edges of a batch share negatives.
func (n *negatives) chunk(batch int) int {
	switch n.kind {
	case setting.NegativesChunked:
		return (batch + chunksOfBatch - 1) / chunksOfBatch
	case setting.NegativesEdge:
		return 1
	}
	return batch
}

// draw returns the negatives of queries that share them, in the memory of to. answers are the true
// answers, asked is one of the queries, and chunk says how many edges share all negatives. If they
// are of several pairs of types, each pair gets a share of the negatives: with as many for each, a
// step would change more rows, and learn less.
func (n *negatives) draw(to []uint32, key uint64, answers []uint32, asked triples.Query,
	chunk int) []uint32 {
	to = to[:0]
	if n.kind == setting.NegativesBatch {
		return append(to, answers...)
	}
	s := rng.NewStream(key)
	count := n.count
	if n.joins.pairOf != nil {
		count = (count*len(answers) + chunk - 1) / chunk
	}
	return n.drawSome(to, &s, count, asked)
}

// drawSome appends count negatives of a query to to.
func (n *negatives) drawSome(to []uint32, s *rng.Stream, count int, asked triples.Query) []uint32 {
	if n.joins.answers != nil {
		return n.drawWithin(to, s, count, n.joins.answers(asked))
	}
	for range count {
		if n.weights == nil {
			to = append(to, n.row(s.Below(n.upTo[len(n.upTo)-1])))
			continue
		}
		// Sums are equal where a row has no edge, and the first of equal ones is found.
		at, _ := slices.BinarySearch(n.weights, (1-s.Float64())*n.weights[len(n.weights)-1])
		to = append(to, n.row(uint64(at)))
	}
	return to
}

// drawWithin appends count negatives that are nodes of a span. With vectors on disk it draws until
// a node is in memory, which takes as many draws as there are times more partitions than fit. The
// true answer is in memory, so there is one.
func (n *negatives) drawWithin(to []uint32, s *rng.Stream, count int, span rank.Span) []uint32 {
	if n.weights != nil { // whose rows are all nodes, see planOf
		return n.drawWeighted(to, s, count, span)
	}
	for count > 0 {
		row, ok := span.At(s), true
		if n.rowOf != nil {
			row, ok = n.rowOf(row)
		}
		if ok {
			to = append(to, row)
			count--
		}
	}
	return to
}

// drawWeighted appends count negatives of a span by weight.
func (n *negatives) drawWeighted(to []uint32, s *rng.Stream, count int, span rank.Span) []uint32 {
	sums, before := n.weights[span.First:][:span.Count], 0.0
	if span.First > 0 {
		before = n.weights[span.First-1]
	}
	for range count {
		at, _ := slices.BinarySearch(sums, before+(1-s.Float64())*(sums[len(sums)-1]-before))
		to = append(to, uint32(span.First+min(at, len(sums)-1)))
	}
	return to
}

// row returns the i-th row of the spans.
func (n *negatives) row(i uint64) uint32 {
	span, _ := slices.BinarySearch(n.upTo, i+1) // the first one that has more rows than i up to it
	s := n.spans[span]
	return s.Row + uint32(i+uint64(s.Count)-n.upTo[span])
}

// places calls fn with each place at which drawn negatives have an entity.
func places(drawn *triples.Groups, entity uint32, fn func(place uint32)) {
	if i, found := slices.BinarySearch(drawn.Numbers, entity); found {
		for _, place := range drawn.At[drawn.Off[i]:drawn.Off[i+1]] {
			fn(place)
		}
	}
}
