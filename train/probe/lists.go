package probe

import (
	"context"
	"fmt"
	"slices"

	"gdb/train/plan"
)

// priceLists measures sampling from a paged topology with the largest and then with the smallest
// block cache, as long as such a split may cost less than all others. It decides that first as if
// reading lists cost nothing, then with the least that reading blocks costs, then as if all block
// caches were as good as the largest.
func (m *Probe) priceLists(ctx context.Context, s *plan.Costs, tr *trace,
	splits []*plan.Plan) error {
	least, most := s.Hopeful(splits)
	if least != nil && len(splits) > 1 {
		if err := m.floorLists(ctx, s, tr, splits); err != nil {
			return err
		}
		least, most = s.Hopeful(splits)
	}
	if s.NoPaged = least == nil; s.NoPaged {
		return nil
	}
	if err := m.measureLists(ctx, s, most); err != nil {
		return err
	}
	if least, _ = s.Hopeful(splits); least == nil || least.Lists.Blocks == most.Lists.Blocks {
		return nil
	}
	return m.measureLists(ctx, s, least)
}

// measureLists samples batches with the block cache of a split. Only the later ones count, since
// they find the cache filled.
func (m *Probe) measureLists(ctx context.Context, s *plan.Costs, p *plan.Plan) error {
	if err := m.src.ChangeGraph(ctx, m.graph(p.TopologyOptions())); err != nil {
		return err
	}
	tr, err := m.sampleFew(ctx)
	if err != nil {
		return err
	}
	bytes := float64(tr.cost.listBytes) / float64(max(1, tr.sampled))
	c := m.device.Reading(bytes/float64(max(1, m.src.Meta.BlockBytes)), bytes)
	c.Own, err = m.timedSampling(tr, fmt.Sprint("paged ", p.Lists.Blocks))
	s.Paged = slices.Insert(s.Paged, 0, plan.PagedPrice{Blocks: p.Lists.Blocks, Price: c})
	return err
}

// timedSampling returns the core time, in seconds, that sampling a batch of a trace took,
// without reading.
func (m *Probe) timedSampling(tr *trace, how string) (float64, error) {
	w, err := m.timed("sample "+how+" "+m.cfg.StepName, func() (plan.Work, error) {
		s := max(0, tr.cost.took-tr.cost.waited).Seconds() / float64(max(1, tr.sampled))
		return plan.Work{Seconds: s, CPU: s}, nil
	})
	return w.CPU, err
}
