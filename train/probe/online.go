package probe

import (
	"context"
	"errors"

	"gdb/sample"
	"gdb/sample/rowcache"
	"gdb/train/plan"
)

// sieve fills in the curve of SIEVE by playing the trace through a cache of each size.
func (r *rowPricer) sieve(ctx context.Context) error {
	costs := make([]plan.RowsCost, len(r.curve.Bytes))
	var runs []func() error
	for i, bytes := range r.curve.Bytes {
		runs = append(runs, func() (err error) {
			costs[i], err = r.warmed(ctx, bytes)
			return err
		})
	}
	err := beside(r.facts.Threads, runs)
	r.curve.Costs = costs
	return err
}

// replay records what the batches of a trace missed with SIEVE.
type replay struct {
	before []misses // counts before each batch, and after the last
	used   []int    // rows in the cache at these times
}

// warmed returns what a batch costs in the epochs after the first, which fills the cache.
//
// Batches that are in the trace are counted there. For the batches after it there are two cases. If
// the last quarter of the trace found the cache full, they cost what that quarter did. If not, they
// miss the nodes that were not seen before until these fill the cache; after that, for each new
// node, as many rows as with a cache that is full after a quarter of the trace.
func (r *rowPricer) warmed(ctx context.Context, bytes int64) (plan.RowsCost, error) {
	rows := rowcache.RowsIn(bytes, r.facts.RowDim(), rowcache.NewSIEVE().SlotBytes())
	run, err := r.replay(ctx, rows)
	if err != nil {
		return plan.RowsCost{}, err
	}
	span, n := r.span(), len(r.tr.batches)
	late := n * 3 / 4
	last := run.during(late, n)
	cost := last.cost(n-late, r.s.Device)
	if span.counted > 0 {
		m := run.during(n-span.counted, n)
		cost = m.cost(span.counted, r.s.Device)
	}
	if span.more <= 0 {
		return cost, nil
	}
	share, rest := float64(span.counted)/(float64(span.counted)+span.more),
		last.cost(n-late, r.s.Device)
	if run.used[late] < rows {
		factor, err := r.again(ctx)
		if err != nil {
			return cost, err
		}
		rest = missing(rest, float64(last.missed)/float64(n-late),
			span.missed(&r.s.Grows, float64(rows), factor), float64(last.nodes)/float64(n-late))
	}
	return cost.Mixed(rest, 1-share), nil
}

// warmSpan is the range of batches whose costs are forecast: those after the first epoch, if there
// are several epochs.
type warmSpan struct {
	counted     int     // how many of them end the trace
	first, more float64 // the first that the trace lacks, and how many those are
}

func (r *rowPricer) span() warmSpan {
	n := len(r.tr.batches)
	begin, end := r.later()
	w := warmSpan{first: max(begin, float64(n))}
	switch {
	case r.facts.Epochs == 1:
		w.counted = n
	case r.tr.second > 0:
		w.counted = n - r.tr.second
	}
	if w.more = end - w.first; r.tr.whole {
		w.more = 0
	}
	return w
}

// missed returns the mean number of rows that the batches beyond the trace miss, with a cache of
// rows rows which the trace does not fill. Once the cache is full a batch misses factor rows for
// each node that was not seen before.
func (w *warmSpan) missed(g *plan.Footprint, rows, factor float64) float64 {
	end := w.first + w.more
	filled := g.Filled(rows, end)
	full := max(w.first, filled)
	return (g.After(full) - g.After(w.first) + (end-full)*factor*g.Rate(filled)) / w.more
}

// again returns how many rows the last batches of a trace miss for each new node, with a cache that
// is full after the first quarter of the trace; new nodes are counted at that time.
func (r *rowPricer) again(ctx context.Context) (float64, error) {
	n := len(r.tr.batches)
	if n < traceLeast {
		return 1, nil
	}
	at := float64(n) / 4
	run, err := r.replay(ctx, int(r.s.Grows.After(at)))
	if err != nil {
		return 0, err
	}
	last := run.during(n*3/4, n)
	return float64(last.missed) / float64(n-n*3/4) / r.s.Grows.Rate(at), nil
}

// missing scales the cost of a batch of nodes nodes from before missed rows to now missed rows.
func missing(c plan.RowsCost, before, now, nodes float64) plan.RowsCost {
	k := now / max(before, 1)
	c.Hit = max(0, 1-now/nodes)
	c.Bytes, c.Wait, c.CPU = c.Bytes*k, c.Wait*k, c.CPU*k
	return c
}

// during returns what the batches from first up to end missed.
func (p *replay) during(first, end int) misses { return p.before[end].since(p.before[first]) }

// replay plays the trace through a cache with SIEVE and records what is missed.
func (r *rowPricer) replay(ctx context.Context, slots int) (p *replay, err error) {
	a, policy := &r.tr.played, rowcache.NewSIEVE()
	rows := &tracedRows{blankRows: blankRows{1}, pricer: r}
	sim, err := rowcache.New(ctx, rows, policy, rowcache.Options{Budget: r.src.Budget,
		Bytes: rowcache.Bytes(slots/a.share, 1, policy.SlotBytes())})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sim.Close()) }()
	batches, largest := a.of(r.tr), 0
	for _, b := range batches {
		largest = max(largest, len(b))
	}
	out := make([]float32, largest)
	p = &replay{}
	note := func() {
		p.before = append(p.before, rows.misses)
		p.used = append(p.used, a.share*int(sim.Stats().Used/4))
	}
	for i, b := range batches {
		note()
		if err := sim.Gather(ctx, b, out[:len(b)]); err != nil {
			return nil, err
		}
		rows.endBatch(len(r.tr.asked[i]))
	}
	note()
	return p, nil
}

// tracedRows counts what a cache would read. Its rows have one value, which nobody reads.
type tracedRows struct {
	blankRows
	pricer *rowPricer
	misses
	missing int // rows of this batch, of a trace that is played in part
}

// GatherParts counts the rows that would be read.
func (r *tracedRows) GatherParts(ctx context.Context, nodes []sample.NodeID, _ []uint32,
	_ []float32, _ func([]uint64)) error {
	if r.pricer.tr.played.share > 1 {
		r.missing += len(nodes)
		return nil
	}
	return r.add(ctx, r.pricer.src.Rows, nodes)
}

// endBatch adds up a batch that asked for the rows of a number of nodes.
func (r *tracedRows) endBatch(nodes int) {
	r.addSome(r.pricer, r.missing*r.pricer.tr.played.share, nodes)
	r.missing, r.nodes = 0, r.nodes+nodes
}
