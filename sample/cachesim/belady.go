package cachesim

import (
	"context"
	"fmt"
	"time"

	"gdb/sample"
)

// belady counts the hits of the bound for all capacities, in one pass and without looking ahead.
//
// A request is a hit if its row was kept from the last batch that asked for it until this one. To
// choose which rows to keep is to choose as many such intervals of batches as possible, so that at
// most the capacity are kept between any two batches. It is best to take intervals by their ends,
// the shortest first, each if there is room for it, since none of those left ends sooner. So when a
// batch comes, the intervals that end there are chosen, and the future need not be known; keeping
// the rows asked for soonest chooses as many. The test compares the two.
func belady(ctx context.Context, trace Trace, p Policy, capacities []Capacity,
	last []uint32) ([]Result, error) {
	begun := time.Now()
	bounds := make([]bound, len(capacities))
	for i, c := range capacities {
		bounds[i].rows = uint32(min(c.rows(0), 1<<32-1))
	}
	var begins []uint32 // number of intervals that end now, by the batch where they begin
	requests := uint64(0)
	err := trace.Each(func(nodes []sample.NodeID) error {
		now := len(begins)
		earliest := now
		for i, v := range nodes {
			if i%ctxStep == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if uint64(v) >= uint64(len(last)) {
				return outOfRange(v, len(last))
			}
			before := int(last[v]) - 1
			last[v] = uint32(now) + 1
			switch {
			case before == now:
				return fmt.Errorf("node %d stands twice in batch %d", v, now)
			case before >= 0:
				begins[before]++
				earliest = min(earliest, before)
			}
		}
		for i := range bounds {
			bounds[i].choose(begins, earliest)
		}
		clear(begins[earliest:])
		begins = append(begins, 0)
		requests += uint64(len(nodes))
		return ctx.Err()
	})
	if err == nil && requests == 0 {
		err = errNothing
	}
	if err != nil {
		return nil, fmt.Errorf("cachesim: policy %s: %w", p.Name, err)
	}
	results := make([]Result, len(capacities))
	for i, c := range capacities {
		results[i] = Result{Policy: p.Name, Capacity: c, Rows: int(bounds[i].rows), Evicted: -1,
			Requests: requests, Hits: bounds[i].hits, Elapsed: time.Since(begun)}
	}
	return results, nil
}

// bound is the state for one capacity.
type bound struct {
	rows  uint32
	kept  []uint32 // number of rows kept between each batch and the next
	taken []uint32 // scratch: number of intervals chosen, by where they begin
	hits  uint64
}

// choose chooses intervals that end at the batch after the last of begins, the shortest first.
func (b *bound) choose(begins []uint32, earliest int) {
	for len(b.kept) < len(begins) {
		b.kept, b.taken = append(b.kept, 0), append(b.taken, 0)
	}
	room := b.rows // room at the tightest place that the next interval covers
	first := len(begins)
	for first > earliest {
		room = min(room, b.rows-b.kept[first-1])
		if room == 0 {
			break
		}
		first--
		b.taken[first] = min(begins[first], room)
		room -= b.taken[first]
	}
	sum := uint32(0)
	for at := first; at < len(begins); at++ {
		sum += b.taken[at]
		b.kept[at] += sum
	}
	b.hits += uint64(sum)
}
