package sample

import (
	"fmt"
	"math"

	"gdb/internal/rng"
	"gdb/layout/topology"
)

// Weighted draws choose k entries of a list without replacement, one after the other, each with a
// probability proportional to its weight among those left. Efraimidis and Spirakis ("Weighted
// random sampling with a reservoir", A-ES) show that it is the same to give each entry a key of its
// own, an exponential variable with the weight as its rate, -ln(u)/w, and to take the k smallest.
// So a key depends only on (seed, epoch, batch, hop, node, position in the list) and the weight.
// Entries of weight 0 are never drawn. Keys are positive, so their bits sort as the keys do.

// byWeight chooses among the entries of a part of a node's list. Most entries of a long list are
// rejected without a logarithm: the draw is u = 1-v, and -ln(1-v) ≥ v, so v alone may show that the
// key is above the largest of the heap.
func (c *selection) byWeight(p topology.Part) error {
	heap, n, from, err := c.begin(&p, len(p.Weights))
	if err != nil {
		return err
	}
	node := c.front[p.List]
	key, limit := rng.Sub(c.key, uint64(node)), math.Inf(1)
	full, all := uint32(len(heap)), uint32(len(heap)) == c.deg[p.List]
	if n == full {
		limit = heap.limit()
	}
	for j, x := range p.Weights {
		pos, rate := from+uint32(j), float64(x)
		if !(x > 0 && x <= math.MaxFloat32) {
			if x == 0 {
				continue
			}
			return weightError(node, pos, x)
		}
		if all {
			heap[n] = entry{pos: pos, weight: x}
			n++
			continue
		}
		v := rng.Unit(rng.Sub(key, uint64(pos)))
		if v > limit*rate {
			continue
		}
		drawn := math.Float64bits(-math.Log(1-v) / rate)
		if n = heap.put(n, entry{key: int64(drawn), pos: pos, weight: x}); n == full {
			limit = heap.limit()
		}
	}
	c.taken[p.List] = n
	return nil
}

// limit returns the bound above which v/weight rejects an entry once the heap is full: see
// byWeight.
func (h heap) limit() float64 { return math.Float64frombits(uint64(h[0].key)) * margin }

// margin exceeds the rounding errors of a key and of what it is compared with.
const margin = 1 + 1e-12

// weightError says that a weight is not a finite number from 0 on.
func weightError(node NodeID, pos uint32, weight float32) error {
	return fmt.Errorf("node #%d: entry %d of its list has the weight %v: weights to draw by are "+
		"finite and not negative; draw uniformly, or ingest others", node, pos, weight)
}
