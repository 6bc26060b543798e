package probe

import (
	"context"
	"math"

	"gdb/sample"
	"gdb/sample/cachesim"
	"gdb/sample/loader"
	"gdb/sample/rowcache"
	"gdb/sample/superbatch"
	"gdb/train/plan"
)

// belady is the cache of superbatches.
func (r *rowPricer) belady(ctx context.Context) error {
	var rows []int
	for _, bytes := range r.curve.Bytes {
		rows = append(rows, int(bytes/superbatch.SlotBytes(r.facts.Dim)))
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
		c.Hit = max(0, 1-c.Misses[0]/(r.steps*r.s.Nodes))
		r.curve.Costs = append(r.curve.Costs, c)
	}
	return nil
}

// boundMargin is of the misses of a bound: what is taken from a trace is off by a little.
const boundMargin = 0.97

// bound prices a policy as if it missed as few rows as Belady's does in the epochs after the first,
// if there are several: no policy that decides at each batch misses fewer. A static cache misses as
// many in all batches alike, and, with those that it begins with, no fewer in all.
func (r *rowPricer) bound(ctx context.Context) error {
	slot, err := r.slotBytes()
	if err != nil {
		return err
	}
	var rows []int
	for _, bytes := range r.curve.Bytes {
		rows = append(rows, rowcache.RowsIn(bytes, r.facts.Dim, slot))
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
		r.curve.Costs = append(r.curve.Costs, plan.RowsCost{Hit: max(0, 1-missed/r.s.Nodes),
			Bytes: price.Bytes, Wait: price.Wait, CPU: price.CPU})
	}
	return nil
}

// slotBytes is what the cache takes for a row besides its values.
func (r *rowPricer) slotBytes() (int, error) {
	if r.cache == "static" {
		return int(loader.HotBytes(1)), nil
	}
	policy, err := rowcache.NewPolicy(r.cache)
	if err != nil {
		return 0, err
	}
	return policy.SlotBytes(), nil
}

// beladyMisses counts what Belady's policy misses with so many rows on the trace, and on parts of
// it from its begin.
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

// part is what is played of the first so many batches of the trace.
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

// beladyMisses are the rows that the first batches of a trace miss with caches of some sizes, the
// first of which is full after a quarter of the trace.
type beladyMisses struct {
	*plan.Footprint
	quarter float64 // rows
	share   float64 // of accesses, one in so many was played
	batches []float64
	missed  [][]float64 // of each number of batches, with each size
}

func (b *beladyMisses) known(batches float64, results []cachesim.Result) {
	b.batches = append(b.batches, batches)
	var missed []float64
	for _, r := range results {
		missed = append(missed, b.share*float64(r.Requests-r.Hits))
	}
	b.missed = append(b.missed, missed)
}

// after is how many rows so many batches miss with a size. Beyond the trace, a batch misses the
// nodes that none before it had until these fill the cache, and then as many rows as the last
// quarter of the trace if that found it full; else, for each new node, as many as with the first
// size.
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

// late is how many rows a batch of the last quarter of the trace misses.
func (b *beladyMisses) late(size int) float64 {
	last := len(b.batches) - 1
	if last == 0 {
		return b.missed[0][size] / b.batches[0]
	}
	return (b.missed[last][size] - b.missed[last-1][size]) / (b.batches[last] - b.batches[last-1])
}

// within is how many rows so many batches of the trace miss.
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
