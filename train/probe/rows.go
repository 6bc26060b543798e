package probe

import (
	"context"
	"slices"

	"gdb/train/plan"
	"gdb/train/setting"
)

// priceRows plays the trace through the policies of all splits, several at once, with some sizes
// between the smallest and the largest. Policies that take longer to play are first given a bound,
// and are played only if they could win: see bound.
func (m *Probe) priceRows(ctx context.Context, s *plan.Costs, tr *trace,
	splits []*plan.Plan) error {
	all := m.rowPricers(s, tr, splits)
	slices.SortStableFunc(all, func(a, b *rowPricer) int { return a.effort() - b.effort() })
	least := 0
	if len(all) > 0 {
		least = all[0].effort()
	}
	var first []func() error
	for _, r := range all {
		if r.effort() > least {
			first = append(first, func() error { return r.bound(ctx) })
		} else {
			first = append(first, func() error { return r.fill(ctx) })
		}
	}
	if err := beside(m.facts.Threads, first); err != nil {
		return err
	}
	for _, r := range all {
		if r.curve.Bound && s.MayWin(r.cache, splits) {
			if err := r.fill(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowPricers returns a pricer for each curve that the splits need, in the order of the splits.
func (m *Probe) rowPricers(s *plan.Costs, tr *trace, splits []*plan.Plan) (all []*rowPricer) {
	by := map[string]*rowPricer{}
	for _, p := range splits {
		if p.Cache == "all" {
			continue
		}
		name := s.CurveName(p)
		if by[name] == nil {
			r := &rowPricer{Probe: m, s: s, tr: tr, cache: p.Cache,
				curve: &plan.Curve{}}
			if p.Superbatch != nil {
				r.steps = s.Length(p)
			}
			by[name], s.Curves[name], all = r, r.curve, append(all, r)
		}
		by[name].curve.Bytes = append(by[name].curve.Bytes, p.CacheBytes())
	}
	for _, r := range all {
		r.curve.Bytes = plan.Spread(r.curve.Bytes)
	}
	return all
}

// fill plays the policy at each size and fills in its costs.
func (r *rowPricer) fill(ctx context.Context) error {
	r.curve.Costs, r.curve.Bound = nil, false
	switch r.cache {
	case "none":
		return r.uncached(ctx)
	case "static":
		return r.hottest(ctx)
	case setting.CacheBelady:
		return r.belady(ctx)
	}
	return r.sieve(ctx)
}

// effort ranks policies by how long playing them takes: policies that decide at each batch have to
// be run, and for a static cache lists have to be read to find its rows.
func (r *rowPricer) effort() int {
	switch r.cache {
	case "none", setting.CacheBelady:
		return 0
	case "static":
		return 2
	}
	return 1
}
