package train

import (
	"math"
	"sort"

	"gdb/sample"
)

// footprint is how many different nodes the first batches of a run have: between the batches after
// which that is known, a power of the batches.
type footprint struct {
	batches, unique []float64 // ascending
	most            float64   // nodes that there are
}

// doublings are forecast beyond what was counted.
const doublings = 12

// forecast goes on from what was counted. Of the numbers of nodes that each doubling of the batches
// brings, the logarithm is taken to bend on as it did: few nodes are left that were not seen.
func (g *footprint) forecast() {
	n := len(g.batches)
	brought := func(i int) float64 { // by the doubling that ended at i
		return (g.unique[i] - g.unique[i-1]) / math.Log2(g.batches[i]/g.batches[i-1])
	}
	next, ratio, bend := g.unique[0], 1.0, 1.0
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
		last := len(g.batches) - 1
		ratio = min(2, ratio*bend)
		next = min(next*ratio, g.unique[last])
		g.batches = append(g.batches, 2*g.batches[last])
		g.unique = append(g.unique, min(g.most, g.unique[last]+next))
	}
}

// countFootprint counts them in a trace, with a set that it empties first. It calls look, which may
// be nil, after each number of batches that is counted, with the nodes that the last one brought.
func (t *trace) countFootprint(seen *nodeSet, look func(fresh []sample.NodeID) error) (footprint,
	error) {
	g := footprint{most: float64(seen.total)}
	clear(seen.words)
	count, whole := 0, len(t.batches)
	var fresh []sample.NodeID
	for i, b := range t.batches {
		fresh = fresh[:0]
		for _, v := range b {
			if !seen.has(uint32(v)) {
				seen.add(uint32(v))
				fresh = append(fresh, v)
			}
		}
		count += len(fresh)
		n := i + 1
		if n > 1 && !halved(whole, n) {
			continue
		}
		g.batches = append(g.batches, float64(n))
		g.unique = append(g.unique, float64(count))
		if look != nil {
			if err := look(fresh); err != nil {
				return g, err
			}
		}
	}
	g.forecast()
	return g, nil
}

// halved says whether n is whole, a half of it, a quarter, …, rounded down.
func halved(whole, n int) bool {
	for ; whole > n; whole /= 2 {
	}
	return whole == n
}

// after is how many nodes so many batches have.
func (g *footprint) after(batches float64) float64 {
	i := sort.SearchFloat64s(g.batches, batches)
	switch {
	case i == 0:
		return g.unique[0] * batches / g.batches[0]
	case i == len(g.batches):
		return g.unique[i-1]
	}
	return between(batches, g.batches[i-1], g.batches[i], g.unique[i-1], g.unique[i])
}

// between is the power of x that is a at the first and b at the last.
func between(x, first, last, a, b float64) float64 {
	return b * math.Pow(x/last, math.Log(b/a)/math.Log(last/first))
}

// filled is after how many batches there are so many nodes, and limit if not before.
func (g *footprint) filled(nodes, limit float64) float64 {
	low, high := 0.0, limit
	if g.after(limit) < nodes {
		return limit
	}
	for range 60 {
		if mid := (low + high) / 2; g.after(mid) < nodes {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// rate is how many new nodes a batch brings after so many.
func (g *footprint) rate(batches float64) float64 {
	from, to := batches/1.2, batches*1.2
	return (g.after(to) - g.after(from)) / (to - from)
}
