package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/train/runs"
)

// rowsCost is what the rows of a batch cost: which are hits, and reading the others.
type rowsCost struct {
	hit, bytes, wait, cpu float64
	misses                missCurve // of superbatches, whose reads depend on sweeps
}

// curve is what rows cost with a policy, by the bytes of its cache.
type curve struct {
	bytes []int64 // ascending
	costs []rowsCost
	bound bool // they are less than any that the policy may have
}

// curvePoints are simulated for a policy; between them costs are a line over the logarithm of the
// size.
const curvePoints = 5

// at is the cost with so many bytes.
func (c *curve) at(bytes int64) rowsCost {
	i, found := slices.BinarySearch(c.bytes, bytes)
	if found || i == 0 || i == len(c.bytes) {
		return c.costs[min(i, len(c.costs)-1)]
	}
	a, b := c.costs[i-1], c.costs[i]
	before := math.Log(float64(max(1, c.bytes[i-1])))
	at := (math.Log(float64(bytes)) - before) / (math.Log(float64(c.bytes[i])) - before)
	return a.mixed(b, at)
}

// mixed is a share of b, and the rest of a.
func (a rowsCost) mixed(b rowsCost, share float64) rowsCost {
	mix := func(a, b float64) float64 { return a + share*(b-a) }
	c := rowsCost{hit: mix(a.hit, b.hit), bytes: mix(a.bytes, b.bytes),
		wait: mix(a.wait, b.wait), cpu: mix(a.cpu, b.cpu)}
	for i := range c.misses {
		c.misses[i] = mix(a.misses[i], b.misses[i])
	}
	return c
}

// rows is what a batch's rows cost with a split.
func (s *prices) rows(p *planner) rowsCost {
	if p.Cache == "all" {
		return rowsCost{hit: 1}
	}
	return s.curves[s.curveName(p)].at(p.cacheBytes())
}

// gathering is what gathering takes with a split: rows that are in memory are copied while others
// are read.
func (s *prices) gathering(p *planner, rows rowsCost) work {
	d, read := s.device, work{rows.wait, rows.cpu}
	switch {
	case p.Cache == "none":
		return read
	case p.Cache != "all":
		return read.beside(d.Hit.times(s.nodes * rows.hit).plus(
			d.Miss.times(s.nodes * (1 - rows.hit))))
	case s.inPlace(p):
		return d.Copy.times(s.inner * s.nodes)
	}
	return d.Copy.times(s.nodes)
}

// curveName tells policies apart, and lengths of superbatches.
func (s *prices) curveName(p *planner) string {
	if b := p.Superbatch; b != nil {
		return fmt.Sprint(p.Cache, s.steps(b, p.c))
	}
	return p.Cache
}

// priceRows runs the policies of all splits over the trace, beside each other, with some sizes
// between the smallest and the largest. Policies that decide as they go come after the others, and
// only if they could win: see bound.
func (t *trainer) priceRows(ctx context.Context, s *prices, tr *trace, splits []*planner) error {
	var err error
	if s.grows, err = s.countRows(ctx, t.in, tr); err != nil {
		return err
	}
	s.unique = s.grows.after(float64(len(tr.batches))) / float64(tr.nodes)
	all := t.rowPricers(s, tr, splits)
	ahead := slices.ContainsFunc(all, func(r *rowPricer) bool { return !r.decides() })
	var first, then []func() error
	for _, r := range all {
		if r.decides() && ahead {
			first = append(first, func() error { return r.bound(ctx) })
		} else {
			first = append(first, func() error { return r.fill(ctx) })
		}
	}
	if err := beside(t.cfg.Threads, first); err != nil {
		return err
	}
	for _, r := range all {
		if r.curve.bound && s.mayWin(r.cache, splits) {
			then = append(then, func() error { return r.fill(ctx) })
		}
	}
	return beside(t.cfg.Threads, then)
}

// rowPricers are those of all curves that the splits need, in their order.
func (t *trainer) rowPricers(s *prices, tr *trace, splits []*planner) (all []*rowPricer) {
	by := map[string]*rowPricer{}
	for _, p := range splits {
		if p.Cache == "all" {
			continue
		}
		name := s.curveName(p)
		if by[name] == nil {
			r := &rowPricer{trainer: t, s: s, tr: tr, grows: s.grows, cache: p.Cache,
				curve: &curve{}}
			if p.Superbatch != nil {
				r.steps = s.steps(p.Superbatch, p.c)
			}
			by[name], s.curves[name], all = r, r.curve, append(all, r)
		}
		by[name].curve.bytes = append(by[name].curve.bytes, p.cacheBytes())
	}
	for _, r := range all {
		r.curve.bytes = spread(r.curve.bytes)
	}
	return all
}

// beside does work on so many goroutines. What was short of memory is done again, alone, when all
// else is done: what is done does not depend on what else held memory.
func beside(goroutines int, work []func() error) error {
	var wg sync.WaitGroup
	errs, turns := make([]error, len(work)), make(chan struct{}, max(1, goroutines))
	for i, do := range work {
		turns <- struct{}{}
		wg.Go(func() {
			defer bug.Catch()
			errs[i] = do()
			<-turns
		})
	}
	wg.Wait()
	for i, do := range work {
		var full *mem.LimitError
		if errors.As(errs[i], &full) {
			errs[i] = do()
		}
	}
	return errors.Join(errs...)
}

// fill runs the policy.
func (r *rowPricer) fill(ctx context.Context) error {
	r.curve.costs, r.curve.bound = nil, false
	switch r.cache {
	case "none":
		return r.static(ctx, nil)
	case "static":
		return r.hottest(ctx)
	case runs.CacheBelady:
		return r.belady(ctx)
	}
	return r.online(ctx)
}

// decides says whether the policy decides at each batch, and has to be run to know what it does.
func (r *rowPricer) decides() bool {
	return !slices.Contains([]string{"none", "static", runs.CacheBelady}, r.cache)
}

// spread picks sizes from the smallest to the largest, each as many times the one before.
func spread(sizes []int64) []int64 {
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

// rowPricer fills in the curve of one policy.
type rowPricer struct {
	*trainer
	s     *prices
	tr    *trace
	grows footprint
	cache string  // the policy
	steps float64 // of a superbatch
	curve *curve
}

// hottest is the static cache: its rows are those of the nodes that stand in most lists.
func (r *rowPricer) hottest(ctx context.Context) error {
	largest := &Plan{Features: slices.Max(r.curve.bytes)}
	if err := r.in.planHot(ctx, largest); err != nil {
		return err
	}
	return r.static(ctx, largest.hot)
}

// static is a cache that holds the first of these nodes.
func (r *rowPricer) static(ctx context.Context, hot []sample.NodeID) error {
	held, err := newNodeSet(r.in.meta.Nodes, r.in.budget)
	if err != nil {
		return err
	}
	defer held.free()
	for _, bytes := range r.curve.bytes {
		rows := sample.CacheRows(bytes, r.dims[0], int(hotBytes(1)))
		clear(held.words)
		for _, v := range hot[:min(rows, len(hot))] {
			held.add(uint32(v))
		}
		var m misses
		var missed []sample.NodeID
		for _, b := range r.tr.batches {
			missed = missed[:0]
			for _, v := range b {
				if !held.has(uint32(v)) {
					missed = append(missed, v)
				}
			}
			if err := m.add(ctx, r.in, missed); err != nil {
				return err
			}
			m.nodes += len(b)
		}
		r.curve.costs = append(r.curve.costs, m.cost(len(r.tr.batches), r.s.device))
	}
	return nil
}

// misses are summed over batches.
type misses struct {
	nodes, missed, reads int
	bytes                int64
}

func (m *misses) add(ctx context.Context, in *inputs, missed []sample.NodeID) error {
	reads, bytes, err := in.reader.Cost(ctx, missed)
	m.missed, m.reads, m.bytes = m.missed+len(missed), m.reads+reads, m.bytes+bytes
	return err
}

// since is what was added since before.
func (m *misses) since(before misses) misses {
	return misses{m.nodes - before.nodes, m.missed - before.missed, m.reads - before.reads,
		m.bytes - before.bytes}
}

// cost is that of one of so many batches.
func (m *misses) cost(batches int, d *Profile) rowsCost {
	n := float64(batches)
	read := d.reading(float64(m.reads)/n, float64(m.bytes)/n)
	return rowsCost{hit: float64(m.nodes-m.missed) / float64(max(1, m.nodes)), bytes: read.bytes,
		wait: read.wait, cpu: read.cpu}
}
