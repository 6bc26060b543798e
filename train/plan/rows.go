package plan

import (
	"fmt"
	"math"
	"slices"
)

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

// rows returns what a batch's rows cost with a split.
func (s *Costs) rows(p *Split) RowsCost {
	if p.Cache == "all" {
		return RowsCost{Hit: 1}
	}
	return s.Curves[s.CurveName(p)].at(p.CacheBytes())
}

// gathering returns what gathering a batch takes with a split: rows that are in memory are copied
// while others are read.
func (s *Costs) gathering(p *Split, rows RowsCost) Work {
	d, read, asked := s.Device, Work{rows.Wait, rows.CPU}, s.Nodes*(1-s.OnDevice)
	switch {
	case p.Cache == "none":
		return read
	case p.Cache != "all":
		return read.Beside(d.Hit.Times(asked * rows.Hit).Plus(
			d.Miss.Times(asked * (1 - rows.Hit))))
	case s.InPlace(p):
		return d.Copy.Times(s.Inner * s.Nodes)
	}
	return d.Copy.Times(asked)
}

// CurveName returns the key of a split's curve in Costs.Curves: the policy and, for
// superbatches, their length.
func (s *Costs) CurveName(p *Split) string {
	if b := p.Superbatch; b != nil {
		return fmt.Sprint(p.Cache, s.Steps(p))
	}
	return p.Cache
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
