package program

import (
	"math"

	"gdb/internal/dense"
	"gdb/internal/mem"
)

// measures are properties of a batch that are computed, with their memory.
type measures struct {
	norms, scales, inverse, shares []float32
	whole                          []float32 // InvDegree or InvWeightSum
	looped                         []float32 // EdgeColumn
	types                          []uint32  // of nodes
	counter                        TypeCounter
}

// values returns the values of a property of a batch, computed in memory of c where the batch does
// not hold them.
func (c *measures) values(k Property, in *Input) []float32 {
	d := in.Dense
	lists := d.Inner()
	switch k {
	case InvSqrtDegree:
		c.norms = mem.Resized(c.norms, len(in.Degrees))
		Norms(c.norms, in.Degrees)
		return c.norms
	case InvSqrtWeight:
		c.norms = mem.Resized(c.norms, len(d.WeightSums))
		WeightNorms(c.norms, d.WeightSums)
		return c.norms
	case ListScale:
		c.scales = mem.Resized(c.scales, lists)
		listScales(c.scales, d, in.Degrees)
		return c.scales
	case InvListWeight:
		c.inverse = mem.Resized(c.inverse, lists)
		listWeights(c.inverse, d)
		InvWeights(c.inverse, c.inverse)
		return c.inverse
	case InvDegree:
		c.whole = mem.Resized(c.whole, lists)
		for i, n := range in.Degrees[d.NodeIDOffsets[1]:] {
			c.whole[i] = float32(n)
		}
		InvWeights(c.whole, c.whole)
		return c.whole
	case InvWeightSum:
		c.whole = mem.Resized(c.whole, lists)
		InvWeights(c.whole, d.WeightSums[d.NodeIDOffsets[1]:])
		return c.whole
	case Inside:
		return in.Halo.Inside
	case EdgeType:
		return mem.View[float32](mem.BytesOf(d.Types))
	case TypeShare:
		return c.typeShares(d)
	case EdgeColumn:
		return d.Columns
	case EdgeMask:
		return in.Mask
	case NodeType:
		c.types = mem.Resized(c.types, len(in.Nodes))
		NodeTypes(c.types, in.Nodes, in.Types)
		return mem.View[float32](mem.BytesOf(c.types))
	}
	return d.Weights
}

// typeShares computes TypeShare.
func (c *measures) typeShares(d *dense.Lists) []float32 {
	c.shares = mem.Resized(c.shares, len(d.Types))
	for i := range d.Inner() {
		first, end := d.NbrOffsets[i], d.NbrOffsets[i+1]
		types := d.Types[first:end]
		c.counter.Add(types)
		c.counter.Shares(c.shares[first:end], types)
		c.counter.Drop(types)
	}
	return c.shares
}

// withLoops computes EdgeColumn with zeros for the loop of each list, behind its entries.
func (c *measures) withLoops(d *dense.Lists, cols int) []float32 {
	c.looped = mem.Resized(c.looped, (len(d.ReprMap)+d.Inner())*cols)
	clear(c.looped)
	for i := range d.Inner() {
		first, end := int(d.NbrOffsets[i]), int(d.NbrOffsets[i+1])
		copy(c.looped[(first+i)*cols:], d.Columns[first*cols:end*cols])
	}
	return c.looped
}

// words returns the memory of computed properties, in words of 4 bytes.
func (c *measures) words() int {
	return cap(c.norms) + cap(c.scales) + cap(c.inverse) + cap(c.shares) + cap(c.whole) +
		cap(c.types) + cap(c.looped) + cap(c.counter.counts)
}

// listScales computes ListScale of the nodes that have lists; degrees has the degrees of all nodes.
func listScales(scales []float32, d *dense.Lists, degrees []uint32) {
	inner := degrees[d.NodeIDOffsets[1]:]
	for i := range scales {
		drawn := d.NbrOffsets[i+1] - d.NbrOffsets[i]
		scales[i] = float32(inner[i]) / float32(max(1, drawn))
	}
}

// listWeights sums the weights of the entries of each list up.
func listWeights(sums []float32, d *dense.Lists) {
	for i := range sums {
		sum := float32(0)
		for _, w := range d.Weights[d.NbrOffsets[i]:d.NbrOffsets[i+1]] {
			sum += w
		}
		sums[i] = sum
	}
}

// Norms computes InvSqrtDegree from degrees.
func Norms(norms []float32, degrees []uint32) {
	for i, d := range degrees {
		norms[i] = float32(1 / math.Sqrt(1+float64(d)))
	}
}

// WeightNorms computes InvSqrtWeight from sums of weights.
func WeightNorms(norms, sums []float32) {
	for i, s := range sums {
		norms[i] = 0
		if s > -1 {
			norms[i] = float32(1 / math.Sqrt(1+float64(s)))
		}
	}
}

// NodeTypes computes NodeType of nodes, given the first node of each type, in ascending order: the
// last type that begins at a node or before it.
func NodeTypes(types, nodes []uint32, firsts []int) {
	for i, v := range nodes {
		low, high := 0, len(firsts) // the type is in [low,high)
		for high-low > 1 {
			if mid := (low + high) / 2; firsts[mid] <= int(v) {
				low = mid
			} else {
				high = mid
			}
		}
		types[i] = uint32(low)
	}
}

// InvWeights computes InvListWeight or InvWeightSum from sums of weights, which may be in the same
// place.
func InvWeights(inverse, sums []float32) {
	for i, s := range sums {
		inverse[i] = 0
		if s > 0 {
			inverse[i] = 1 / s
		}
	}
}

// TypeCounter counts the entries of each type. The zero value is ready to use.
type TypeCounter struct{ counts []uint32 }

// Add counts the types of some entries.
func (c *TypeCounter) Add(types []uint32) {
	for _, t := range types {
		if int(t) >= len(c.counts) {
			c.counts = append(c.counts, make([]uint32, int(t)+1-len(c.counts))...)
		}
		c.counts[t]++
	}
}

// Shares writes 1/n for each of some entries that were counted, n being how many have its type.
func (c *TypeCounter) Shares(shares []float32, types []uint32) {
	for i, t := range types {
		shares[i] = 1 / float32(c.counts[t])
	}
}

// Drop forgets all entries of the types of some.
func (c *TypeCounter) Drop(types []uint32) {
	for _, t := range types {
		c.counts[t] = 0
	}
}

// Reset forgets all.
func (c *TypeCounter) Reset() { clear(c.counts) }
