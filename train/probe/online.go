package probe

import (
	"context"
	"errors"

	"gdb/kv"
	"gdb/sample"
	"gdb/sample/rowcache"
	"gdb/train/plan"
)

// online runs a policy over the trace with each size.
func (r *rowPricer) online(ctx context.Context) error {
	costs := make([]plan.RowsCost, len(r.curve.Bytes))
	var runs []func() error
	for i, bytes := range r.curve.Bytes {
		runs = append(runs, func() (err error) {
			costs[i], err = r.warmed(ctx, r.cache, bytes)
			return err
		})
	}
	err := beside(r.facts.Threads, runs)
	r.curve.Costs = costs
	return err
}

// replay is what the batches of a trace missed with a policy.
type replay struct {
	before []misses // each batch, and after the last
	used   []int    // rows of the cache then
}

// warmed is what a batch costs in the epochs after the first, which fills the cache. Those that are
// in the trace are counted there. The batches after them cost what the last quarter of the trace
// does, if it finds the cache full. Else they miss the nodes that were not seen before, until these
// fill the cache; and then, as many for each such node as with a cache that is full after a quarter
// of the trace.
func (r *rowPricer) warmed(ctx context.Context, cache string, bytes int64) (plan.RowsCost, error) {
	policy, err := rowcache.NewPolicy(cache)
	if err != nil {
		return plan.RowsCost{}, err
	}
	rows := rowcache.RowsIn(bytes, r.facts.Dim, policy.SlotBytes())
	run, err := r.replay(ctx, policy, rows)
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
		factor, err := r.again(ctx, cache)
		if err != nil {
			return cost, err
		}
		rest = missing(rest, float64(last.missed)/float64(n-late),
			span.missed(&r.s.Grows, float64(rows), factor), float64(last.nodes)/float64(n-late))
	}
	return cost.Mixed(rest, 1-share), nil
}

// warmSpan are the batches of a run whose costs are forecast: those after the first epoch, if there
// are several.
type warmSpan struct {
	counted     int     // the last so many of the trace are of them
	first, more float64 // those that are not in the trace
}

// later are the batches whose costs are forecast, from one up to another.
func (r *rowPricer) later() (begin, end float64) {
	if r.facts.Epochs > 1 {
		begin = r.s.Full
	}
	return begin, r.s.Full * float64(r.facts.Epochs)
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

// missed is the mean of the rows that the batches miss which are not in the trace, with a cache of
// so many rows that the trace does not fill, and of which a batch misses, once it is full, factor
// for each node that was not seen before.
func (w *warmSpan) missed(g *plan.Footprint, rows, factor float64) float64 {
	end := w.first + w.more
	filled := g.Filled(rows, end)
	full := max(w.first, filled)
	return (g.After(full) - g.After(w.first) + (end-full)*factor*g.Rate(filled)) / w.more
}

// again is how many rows the last batches of a trace miss with a cache that is full after its first
// quarter, for each node that a batch brought then that was not seen before. With lru it is close
// to one: the batches since a row was used have as many nodes as the cache.
func (r *rowPricer) again(ctx context.Context, cache string) (float64, error) {
	n := len(r.tr.batches)
	policy, err := rowcache.NewPolicy(cache)
	if err != nil || n < traceLeast {
		return 1, err
	}
	at := float64(n) / 4
	run, err := r.replay(ctx, policy, int(r.s.Grows.After(at)))
	if err != nil {
		return 0, err
	}
	last := run.during(n*3/4, n)
	return float64(last.missed) / float64(n-n*3/4) / r.s.Grows.Rate(at), nil
}

// missing is what a batch costs of so many nodes that misses now rows where it missed before.
func missing(c plan.RowsCost, before, now, nodes float64) plan.RowsCost {
	k := now / max(before, 1)
	c.Hit = max(0, 1-now/nodes)
	c.Bytes, c.Wait, c.CPU = c.Bytes*k, c.Wait*k, c.CPU*k
	return c
}

// during is what some batches missed.
func (p *replay) during(first, end int) misses { return p.before[end].since(p.before[first]) }

// replay runs a policy over the trace.
func (r *rowPricer) replay(ctx context.Context, policy rowcache.Policy, slots int) (p *replay,
	err error) {
	a := &r.tr.played
	rows := &tracedRows{pricer: r}
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

// tracedRows counts what a cache would read. Its rows have one value, which is no one's.
type tracedRows struct {
	pricer *rowPricer
	misses
	missing int // in this batch, of a trace that is played in part
}

// Meta describes the rows.
func (r *tracedRows) Meta() kv.RowsMeta { return kv.RowsMeta{Name: "trace", Dim: 1} }

// Gather counts.
func (r *tracedRows) Gather(ctx context.Context, nodes []sample.NodeID, _ []uint32,
	_ []float32) error {
	if r.pricer.tr.played.share > 1 {
		r.missing += len(nodes)
		return nil
	}
	return r.add(ctx, r.pricer.src.Rows, nodes)
}

// endBatch counts a batch of so many nodes.
func (r *tracedRows) endBatch(nodes int) {
	r.addSome(r.pricer, r.missing*r.pricer.tr.played.share, nodes)
	r.missing, r.nodes = 0, r.nodes+nodes
}

// Scan is not used by caches.
func (r *tracedRows) Scan(context.Context, sample.NodeID, int, []float32) error { return nil }

// BytesRead is 0: nothing is.
func (r *tracedRows) BytesRead() uint64 { return 0 }
