package link

import (
	"math"
	"slices"

	"gdb/internal/rng"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

// chunksOfBatch is how many chunks a batch is divided into that have different negatives, with
// setting.NegativesChunked.
const chunksOfBatch = 10

// degreeBytes is what a row takes to draw negatives by degree.
const degreeBytes = 16

// negatives draws the entities that edges are compared with.
type negatives struct {
	kind  string
	count int
	spans []triples.Span
	upTo  []uint64 // for each span, the rows of the spans up to and with it
	// weights holds, to draw by degree, the sums of the rows' weights: entry i is the sum of the
	// first i+1 rows of the spans. It is nil if rows are drawn uniformly.
	weights []float64
}

// newNegatives prepares to draw negatives for a part of a table of this number of rows.
func newNegatives(c *setting.Link, p *triples.Part, rows int) *negatives {
	n := &negatives{kind: c.NegativeSampling, count: c.Negatives, spans: p.Spans}
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

// draw returns the negatives of a chunk, in the memory of to. answers are the true answers of the
// chunk's queries.
func (n *negatives) draw(to []uint32, key uint64, answers []uint32) []uint32 {
	to = to[:0]
	if n.kind == setting.NegativesBatch {
		return append(to, answers...)
	}
	return n.drawSome(to, key, n.count)
}

// drawSome appends count negatives to to.
func (n *negatives) drawSome(to []uint32, key uint64, count int) []uint32 {
	s := rng.NewStream(key)
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
