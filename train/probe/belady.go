package probe

import (
	"context"
	"math"

	"gdb/sample"
	"gdb/sample/cachesim"
	"gdb/sample/rowcache"
	"gdb/sample/superbatch"
	"gdb/train/plan"
)

// belady fills in the curve of Belady's policy, with which superbatches are trained on.
func (r *rowPricer) belady(ctx context.Context) error {
	var rows []int
	for _, bytes := range r.curve.Bytes {
		rows = append(rows, int(bytes/superbatch.SlotBytes(r.facts.RowDim())))
	}
	b, err := r.beladyMisses(ctx, rows)
	if err != nil {
		return err
	}
	for i, size := range rows {
		c := plan.RowsCost{}
		for k := range c.Misses {
			n := r.steps / math.Exp2(float64(k))
			c.Misses[k] = b.after(n, float64(size), i+1)
		}
		c.Hit = max(0, 1-c.Misses[0]/(r.steps*r.s.Rows))
		r.curve.Costs = append(r.curve.Costs, c)
	}
	return nil
}

// boundMargin is the part of the counted misses that is taken as a lower bound: counts from a trace
// are off by a little.
const boundMargin = 0.97

// bound fills in a curve with a lower bound of what a policy costs: as few misses as Belady's
// policy has, in the epochs after the first if there are several. No policy that decides at each
// batch misses fewer. A static cache misses equally many rows in every batch; together with the
// rows it is filled with at the start it misses no fewer than Belady's policy either.
func (r *rowPricer) bound(ctx context.Context) error {
	var rows []int
	for _, bytes := range r.curve.Bytes {
		rows = append(rows, rowcache.RowsIn(bytes, r.facts.RowDim(), r.slotBytes()))
	}
	b, err := r.beladyMisses(ctx, rows)
	if err != nil {
		return err
	}
	r.curve.Costs, r.curve.Bound = nil, true
	begin, end := r.later()
	for i, size := range rows {
		missed := b.after(end, float64(size), i+1) - b.after(begin, float64(size), i+1)
		if r.cache == "static" {
			missed = max(0, b.after(end, float64(size), i+1)-float64(size)) * (end - begin) / end
		}
		missed *= boundMargin / (end - begin)
		reads := r.s.Apart.Of(missed)
		price := r.s.Device.Reading(float64(reads.Reads), float64(reads.Bytes))
		r.curve.Costs = append(r.curve.Costs, plan.RowsCost{Hit: max(0, 1-missed/r.s.Rows),
			Bytes: price.Bytes, Wait: price.Wait, CPU: price.CPU})
	}
	return nil
}

// beladyMisses counts what Belady's policy misses on the trace, and on first parts of it, with
// caches that hold each of the numbers of rows.
func (r *rowPricer) beladyMisses(ctx context.Context, rows []int) (*beladyMisses, error) {
	whole, share := len(r.tr.batches), r.tr.played.share
	b := &beladyMisses{Footprint: &r.s.Grows, quarter: r.s.Grows.After(float64(whole) / 4),
		share: float64(share)}
	sizes := []cachesim.Capacity{{Rows: int(b.quarter) / share}}
	for _, n := range rows {
		sizes = append(sizes, cachesim.Capacity{Rows: n / share})
	}
	for n := 1; n <= whole; n++ {
		if n > 1 && n != whole*3/4 && !halved(whole, n) {
			continue
		}
		results, err := cachesim.Run(ctx, r.part(n), []cachesim.Policy{cachesim.Belady}, sizes,
			r.src.Budget)
		if err != nil {
			return nil, err
		}
		b.known(float64(n), results)
	}
	return b, nil
}

// part returns the accesses that are played of the first batches of the trace.
func (r *rowPricer) part(batches int) cachesim.Trace {
	return cachesim.Trace{Nodes: r.tr.played.nodes,
		Each: func(fn func([]sample.NodeID) error) error {
			for _, b := range r.tr.played.of(r.tr)[:batches] {
				if err := fn(b); err != nil {
					return err
				}
			}
			return nil
		}}
}

// beladyMisses holds how many rows the first batches of a trace miss with caches of some sizes. The
// first size is the cache that is full after a quarter of the trace.
type beladyMisses struct {
	*plan.Footprint
	quarter float64 // rows of the first size
	share   float64 // one in share of the nodes was played
	batches []float64
	missed  [][]float64 // by number of batches, then by size
}

func (b *beladyMisses) known(batches float64, results []cachesim.Result) {
	b.batches = append(b.batches, batches)
	var missed []float64
	for _, r := range results {
		missed = append(missed, b.share*float64(r.Requests-r.Hits))
	}
	b.missed = append(b.missed, missed)
}

// after returns how many rows the first batches of a run miss with a cache of rows rows, whose
// index among the sizes is size.
//
// Beyond the trace there are two cases. If the last quarter of the trace found the cache full, each
// batch misses as many rows as that quarter did. If not, batches miss the nodes that were not seen
// before until these fill the cache; after that they miss, for each new node, as many rows as with
// the first size.
func (b *beladyMisses) after(batches, rows float64, size int) float64 {
	last := len(b.batches) - 1
	end, missed := b.batches[last], b.missed[last][size]
	if batches <= end {
		return b.within(batches, size)
	}
	if last == 0 {
		return missed * batches / end
	}
	late := b.late(size)
	if full := b.Filled(rows, batches); full > b.batches[last-1] {
		full = max(full, end)
		late = b.late(0) / b.Rate(end/4) * b.Rate(full)
		missed += b.Footprint.After(full) - b.Footprint.After(end)
		end = full
	}
	return missed + (batches-end)*late
}

// late returns how many rows a batch of the last quarter of the trace misses.
func (b *beladyMisses) late(size int) float64 {
	last := len(b.batches) - 1
	if last == 0 {
		return b.missed[0][size] / b.batches[0]
	}
	return (b.missed[last][size] - b.missed[last-1][size]) / (b.batches[last] - b.batches[last-1])
}

// within returns how many rows the first batches miss, for a number of batches within the trace.
func (b *beladyMisses) within(batches float64, size int) float64 {
	for i, n := range b.batches {
		if batches > n {
			continue
		}
		if i == 0 {
			return b.missed[0][size] * batches / n
		}
		return plan.Between(batches, b.batches[i-1], n, b.missed[i-1][size], b.missed[i][size])
	}
	return b.missed[len(b.missed)-1][size]
}
