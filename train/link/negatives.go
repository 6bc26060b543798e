package link

import (
	"math"
	"slices"

	"gdb/internal/rng"
	"gdb/train/link/triples"
	"gdb/train/runs"
)

// chunksOfBatch is how many chunks a batch is cut into whose negatives differ, with sampling
// runs.NegativesChunked.
const chunksOfBatch = 10

// negatives draws the entities that edges are compared with.
type negatives struct {
	kind  string
	count int
	spans []Span
	rows  uint64 // of the spans
	// upTo has, for negatives by degree, the sum of the weights of the rows up to each.
	upTo []float64
}

// newNegatives prepares the draws for a part.
func newNegatives(c *runs.LinkSettings, p *Part) *negatives {
	n := &negatives{kind: c.NegativeSampling, count: c.Negatives, spans: p.Spans}
	for _, s := range p.Spans {
		n.rows += uint64(s.Count)
	}
	if n.kind != runs.NegativesDegree {
		return n
	}
	degrees := make([]float64, p.Entities.Rows)
	for _, e := range p.Edges {
		degrees[e.Head]++
		degrees[e.Tail]++
	}
	sum := 0.0
	for i, d := range degrees {
		sum += math.Pow(d, c.DegreePower)
		degrees[i] = sum
	}
	n.upTo = degrees
	return n
}

// chunk is how many edges of a batch share negatives.
func (n *negatives) chunk(batch int) int {
	if n.kind == runs.NegativesChunked {
		return (batch + chunksOfBatch - 1) / chunksOfBatch
	}
	return batch
}

// draw returns the negatives of a chunk whose true answers these are, in the memory of to.
func (n *negatives) draw(to []uint32, key uint64, answers []uint32) []uint32 {
	to = to[:0]
	if n.kind == runs.NegativesBatch {
		return append(to, answers...)
	}
	s := rng.NewStream(key)
	for range n.count {
		if n.upTo == nil {
			to = append(to, n.row(s.Below(n.rows)))
			continue
		}
		// Sums are equal where a row has no edge, and the first of equal ones is found.
		at, _ := slices.BinarySearch(n.upTo, (1-s.Float64())*n.upTo[len(n.upTo)-1])
		to = append(to, uint32(at))
	}
	return to
}

// row is the i-th row of the spans.
func (n *negatives) row(i uint64) uint32 {
	for _, s := range n.spans {
		if i < uint64(s.Count) {
			return s.Row + uint32(i)
		}
		i -= uint64(s.Count)
	}
	panic("BUG: a row beyond the spans")
}

// places calls fn with the places at which drawn negatives have an entity.
func places(drawn *triples.Groups, entity uint32, fn func(place uint32)) {
	if i, found := slices.BinarySearch(drawn.Numbers, entity); found {
		for _, place := range drawn.At[drawn.Off[i]:drawn.Off[i+1]] {
			fn(place)
		}
	}
}
