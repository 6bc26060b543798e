package plan

import (
	"math"
	"sort"
)

// Footprint counts how many different nodes the first batches of a run have. Between the counts it
// interpolates with a power of the number of batches.
type Footprint struct {
	Batches, Unique []float64 // ascending
	Most            float64   // nodes in the graph
}

// doublings is how often Forecast doubles the number of batches beyond those that were counted.
const doublings = 12

// Forecast extrapolates the counts. Each doubling of the batches brings a number of new nodes; the
// logarithm of that number is assumed to keep bending as it did, since ever fewer nodes are left
// that were not seen.
func (g *Footprint) Forecast() {
	n := len(g.Batches)
	brought := func(i int) float64 { // by the doubling that ended at i
		return (g.Unique[i] - g.Unique[i-1]) / math.Log2(g.Batches[i]/g.Batches[i-1])
	}
	next, ratio, bend := g.Unique[0], 1.0, 1.0
	if n > 1 {
		next = brought(n - 1)
	}
	if n > 2 {
		ratio = next / brought(n-2)
	}
	if n > 3 {
		bend = min(1, ratio/(brought(n-2)/brought(n-3)))
	}
	for range doublings {
		last := len(g.Batches) - 1
		ratio = min(2, ratio*bend)
		next = min(next*ratio, g.Unique[last])
		g.Batches = append(g.Batches, 2*g.Batches[last])
		g.Unique = append(g.Unique, min(g.Most, g.Unique[last]+next))
	}
}

// After returns how many different nodes the first batches have, batches being their number.
func (g *Footprint) After(batches float64) float64 {
	i := sort.SearchFloat64s(g.Batches, batches)
	switch {
	case i == 0:
		return g.Unique[0] * batches / g.Batches[0]
	case i == len(g.Batches):
		return g.Unique[i-1]
	}
	return Between(batches, g.Batches[i-1], g.Batches[i], g.Unique[i-1], g.Unique[i])
}

// Between interpolates with a power of x that is a at first and b at last.
func Between(x, first, last, a, b float64) float64 {
	return b * math.Pow(x/last, math.Log(b/a)/math.Log(last/first))
}

// Filled returns the number of batches after which that many different nodes were seen, or limit if
// it would take more.
func (g *Footprint) Filled(nodes, limit float64) float64 {
	low, high := 0.0, limit
	if g.After(limit) < nodes {
		return limit
	}
	for range 60 {
		if mid := (low + high) / 2; g.After(mid) < nodes {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// Rate returns how many new nodes one more batch brings after the given number of batches.
func (g *Footprint) Rate(batches float64) float64 {
	from, to := batches/1.2, batches*1.2
	return (g.After(to) - g.After(from)) / (to - from)
}
