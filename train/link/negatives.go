package link

import (
	"math"
	"slices"

	"gdb/internal/rng"
	"gdb/train/link/triples"
	"gdb/train/setting"
)

// chunksOfBatch is how many chunks a batch is cut into whose negatives differ, with sampling
// setting.NegativesChunked.
const chunksOfBatch = 10

// degreeBytes is what a row takes for negatives by degree.
const degreeBytes = 16

// negatives draws the entities that edges are compared with.
type negatives struct {
	kind  string
	count int
	spans []Span
	upTo  []uint64 // rows of the spans up to each, with it
	// weights has, for negatives by degree, the sum of the weights of the rows of the spans up to
	// each.
	weights []float64
}

// newNegatives prepares the draws for a part.
func newNegatives(c *setting.Link, p *Part) *negatives {
	n := &negatives{kind: c.NegativeSampling, count: c.Negatives, spans: p.Spans}
	rows := uint64(0)
	for _, s := range p.Spans {
		rows += uint64(s.Count)
		n.upTo = append(n.upTo, rows)
	}
	if n.kind != setting.NegativesDegree {
		return n
	}
	degrees := make([]float64, p.Entities.Rows)
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

// chunk is how many edges of a batch share negatives.
func (n *negatives) chunk(batch int) int {
	switch n.kind {
	case setting.NegativesChunked:
		return (batch + chunksOfBatch - 1) / chunksOfBatch
	case setting.NegativesEdge:
		return 1
	}
	return batch
}

// draw returns the negatives of a chunk whose true answers these are, in the memory of to.
func (n *negatives) draw(to []uint32, key uint64, answers []uint32) []uint32 {
	to = to[:0]
	if n.kind == setting.NegativesBatch {
		return append(to, answers...)
	}
	return n.drawSome(to, key, n.count)
}

// drawSome appends so many negatives.
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

// row is the i-th row of the spans.
func (n *negatives) row(i uint64) uint32 {
	span, _ := slices.BinarySearch(n.upTo, i+1) // the first one that has more rows than i up to it
	s := n.spans[span]
	return s.Row + uint32(i+uint64(s.Count)-n.upTo[span])
}

// places calls fn with the places at which drawn negatives have an entity.
func places(drawn *triples.Groups, entity uint32, fn func(place uint32)) {
	if i, found := slices.BinarySearch(drawn.Numbers, entity); found {
		for _, place := range drawn.At[drawn.Off[i]:drawn.Off[i+1]] {
			fn(place)
		}
	}
}
