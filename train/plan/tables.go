package plan

import (
	"math"
	"slices"
	"sort"

	"gdb/layout/rowfile"
)

// ReadTable estimates what reading a number of rows costs. It interpolates linearly between
// measured points; below the first point it scales that point's cost per row.
type ReadTable struct{ rows, reads, bytes []float64 } // ascending

// Add records what reading a number of rows costs. Points that do not exceed the last number of
// rows are ignored.
func (t *ReadTable) Add(rows, reads, bytes float64) {
	if n := len(t.rows); rows > 0 && (n == 0 || rows > t.rows[n-1]) {
		t.rows, t.reads, t.bytes = append(t.rows, rows), append(t.reads, reads),
			append(t.bytes, bytes)
	}
}

// Of returns what reading a number of rows costs. Beyond the last point it scales that
// point's cost per row.
func (t *ReadTable) Of(rows float64) rowfile.ReadCost {
	n := len(t.rows)
	i := sort.SearchFloat64s(t.rows, rows)
	if n == 0 {
		return rowfile.ReadCost{}
	}
	if i == 0 || i == n {
		i = min(i, n-1)
		k := rows / t.rows[i]
		return rowfile.ReadCost{Reads: uint64(k*t.reads[i] + 0.5), Bytes: int64(k * t.bytes[i])}
	}
	k := (rows - t.rows[i-1]) / (t.rows[i] - t.rows[i-1])
	mix := func(of []float64) float64 { return of[i-1] + k*(of[i]-of[i-1]) }
	return rowfile.ReadCost{Reads: uint64(mix(t.reads) + 0.5), Bytes: int64(mix(t.bytes))}
}

// Footprint counts how many different nodes the first batches of a run have. Between the counts it
// interpolates with a power of the number of batches.
type Footprint struct {
	Batches, Unique []float64 // ascending
	Most            float64   // nodes in the graph
}

// doublings is how often Extrapolate doubles the number of batches beyond those that were counted.
const doublings = 12

// Extrapolate continues the counts. Each doubling of the batches brings a number of new nodes; the
// logarithm of that number is assumed to keep bending as it did, since ever fewer nodes are left
// that were not seen.
func (g *Footprint) Extrapolate() {
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

// missPoints is the number of points of a MissCurve.
const missPoints = 8

// MissCurve holds how many rows a superbatch misses that begins with an empty cache: in all its
// batches, in the first half of them, the first quarter, and so on.
type MissCurve [missPoints]float64

// After returns how many rows the first batches of a superbatch miss; steps is how many batches the
// superbatch has.
func (m *MissCurve) After(batches, steps float64) float64 {
	for i := 1; i < missPoints; i++ {
		if end := steps / math.Exp2(float64(i)); batches >= end {
			return Between(batches, end, 2*end, m[i], m[i-1])
		}
	}
	return m[missPoints-1] * batches / steps * math.Exp2(missPoints-1)
}

// RowsCost is what the rows of a batch cost: Hit is the share found in the cache; for the others
// Bytes are read, with Wait seconds of waiting and CPU seconds of core time.
type RowsCost struct {
	Hit, Bytes, Wait, CPU float64
	Misses                MissCurve // of superbatches, where reading depends on sweeps
}

// Curve is what rows cost with one policy, as a function of the cache's size.
type Curve struct {
	Bytes []int64 // ascending
	Costs []RowsCost
	Bound bool // the costs are a lower bound for any policy of this kind
}

// curvePoints is how many sizes are simulated for a policy. In between, costs are interpolated
// linearly over the logarithm of the size.
const curvePoints = 5

// at returns the cost with a cache of a size in bytes.
func (c *Curve) at(bytes int64) RowsCost {
	i, found := slices.BinarySearch(c.Bytes, bytes)
	if found || i == 0 || i == len(c.Bytes) {
		return c.Costs[min(i, len(c.Costs)-1)]
	}
	a, b := c.Costs[i-1], c.Costs[i]
	before := math.Log(float64(max(1, c.Bytes[i-1])))
	at := (math.Log(float64(bytes)) - before) / (math.Log(float64(c.Bytes[i])) - before)
	return a.Mixed(b, at)
}

// Mixed interpolates between a, at share 0, and b, at share 1.
func (a RowsCost) Mixed(b RowsCost, share float64) RowsCost {
	mix := func(a, b float64) float64 { return a + share*(b-a) }
	c := RowsCost{Hit: mix(a.Hit, b.Hit), Bytes: mix(a.Bytes, b.Bytes),
		Wait: mix(a.Wait, b.Wait), CPU: mix(a.CPU, b.CPU)}
	for i := range c.Misses {
		c.Misses[i] = mix(a.Misses[i], b.Misses[i])
	}
	return c
}

// Spread picks sizes from the smallest to the largest, at a constant ratio.
func Spread(sizes []int64) []int64 {
	first, last := slices.Min(sizes), slices.Max(sizes)
	picked := []int64{first}
	if first > 0 {
		ratio := math.Pow(float64(last)/float64(first), 1/float64(curvePoints-1))
		for i := 1; i < curvePoints-1; i++ {
			picked = append(picked, int64(float64(first)*math.Pow(ratio, float64(i))))
		}
	}
	picked = append(picked, last)
	slices.Sort(picked)
	return slices.Compact(picked)
}

// ListCaches are the sizes, in bytes, of the caches of a paged topology.
type ListCaches struct{ Blocks, Neighbors int64 }

// ListTable holds what sampling reads at some sizes of the two caches of lists. In between it
// interpolates linearly.
type ListTable struct {
	Blocks, Neighbors []int64 // sizes of caches, ascending
	BlockBytes        float64
	Reads             map[ListCaches]ListReads
}

// TriedSizes is how many sizes of each cache are tried.
const TriedSizes = 4

// Thinned picks at most TriedSizes of the sizes, evenly spaced by rank, with the smallest and the
// largest among them.
func Thinned(sizes []int64) (picked []int64) {
	sizes = slices.Compact(slices.Sorted(slices.Values(sizes)))
	for i := range TriedSizes {
		picked = append(picked, sizes[i*(len(sizes)-1)/(TriedSizes-1)])
	}
	return slices.Compact(picked)
}

// at returns what a batch reads with caches of any sizes, interpolated between the tried ones.
func (l *ListTable) at(blocks, neighbors int64) ListReads {
	if r, ok := l.Reads[ListCaches{blocks, neighbors}]; ok {
		return r
	}
	b0, b1, x := around(l.Blocks, blocks)
	n0, n1, y := around(l.Neighbors, neighbors)
	at := func(b, n int64) ListReads { return l.Reads[ListCaches{b, n}] }
	return at(b0, n0).mix(at(b1, n0), x).mix(at(b0, n1).mix(at(b1, n1), x), y)
}

// around finds the two neighbors of a size in an ascending list, and where it lies between
// them, from 0 to 1.
func around(sizes []int64, size int64) (a, b int64, at float64) {
	i, _ := slices.BinarySearch(sizes, size)
	a, b = sizes[max(0, i-1)], sizes[min(i, len(sizes)-1)]
	if a >= b || size <= a {
		return a, b, 0
	}
	return a, b, min(1, float64(size-a)/float64(b-a))
}

// mix interpolates from r, at 0, to o, at 1.
func (r ListReads) mix(o ListReads, at float64) ListReads {
	mix := func(a, b float64) float64 { return a + at*(b-a) }
	return ListReads{Lists: mix(r.Lists, o.Lists), Hits: mix(r.Hits, o.Hits),
		Reads: mix(r.Reads, o.Reads)}
}

// ReadFloor is a lower bound of the blocks that a batch reads, for some sizes of the block cache.
type ReadFloor struct {
	Blocks     []int64 // sizes of caches, ascending
	Reads      []float64
	BlockBytes float64
}
