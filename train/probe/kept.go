package probe

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/neighborcache"
	"gdb/train/plan"
)

// plansMost bounds the plans that a store keeps for a machine: when it is reached they
// are all dropped.
const plansMost = 64

// Kept returns the split that was chosen before for the same settings, facts and device. It returns
// nil if there is none, or if the device is to be measured again. It does not open the topology,
// but sets how the source opens it later.
func (m *Probe) Kept(ctx context.Context) (*plan.Plan, error) {
	if m.cfg.Remeasure || m.cfg.Unpriced {
		return nil, nil
	}
	plans, err := m.plans(ctx)
	if err != nil {
		return nil, err
	}
	if len(plans) == 0 {
		return nil, nil
	}
	if err := m.profile(ctx); err != nil {
		return nil, err
	}
	k, ok := plans[m.keptName()]
	if !ok {
		return nil, nil
	}
	best := k.Again(m.facts, m.device)
	if best != nil && best.Lists != nil && best.Lists.Make > 0 { // time that is spent only once
		made, err := neighborcache.Kept(ctx, m.src.Store, m.src.Device, layout.In,
			best.Lists.Neighbors)
		if err != nil || made {
			return nil, err
		}
	}
	if best != nil {
		m.src.PlanGraph(m.graph(best.TopologyOptions()), best.TakesTurns())
	}
	return best, nil
}

// keepPlan records the chosen split in the catalog. A catalog that cannot be written is no error:
// the plan is then made again next time.
func (m *Probe) keepPlan(ctx context.Context, best *plan.Plan) error {
	plans, err := m.plans(ctx)
	if err != nil {
		return err
	}
	if plans == nil || len(plans) >= plansMost {
		plans = map[string]plan.Plan{}
	}
	plans[m.keptName()] = best.Record()
	b, err := json.Marshal(plans)
	if err != nil {
		return fmt.Errorf("probe: encode plans: %w", err)
	}
	if err := m.src.Store.Catalog().PutProfile(ctx, m.plansName(), b); err != nil {
		m.device.Kept = err.Error()
	}
	return nil
}

// plans returns the plans that the catalog keeps for this device, by keptName; nil if none.
func (m *Probe) plans(ctx context.Context) (plans map[string]plan.Plan, err error) {
	b, err := m.src.Store.Catalog().Profile(ctx, m.plansName())
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &plans)
	}
	if err != nil {
		return nil, fmt.Errorf("probe: read the plans of earlier runs: %w", err)
	}
	return plans, nil
}

func (m *Probe) plansName() string { return "plans8/" + m.profileName() }

// keptName returns the key under which a plan is kept: a hash of planName and of what was measured
// of the device.
func (m *Probe) keptName() string {
	d := *m.device
	d.Timed, d.Tried, d.Kept = nil, nil, ""
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s %+v", m.name, d)))
}
