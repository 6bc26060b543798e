package probe

import (
	"context"
	"errors"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/train/setting"
)

// leaveOut finds the nodes of a trace whose rows are asked of a cache: all but those that
// a device keeps.
func (m *Probe) leaveOut(ctx context.Context, t *trace) error {
	t.asked, t.missed = t.batches, t.nodes
	rows := int(m.facts.DeviceRows())
	if rows == 0 {
		return nil
	}
	kept, err := sample.NewNodeSet(m.src.Meta.Nodes, m.src.Budget)
	if err != nil {
		return err
	}
	hot, err := m.src.HottestAbout(ctx, rows)
	for _, v := range hot {
		kept.Add(uint32(v))
	}
	if err == nil {
		err = t.leave(kept, m.src.Budget)
	}
	if m.facts.Cache == setting.CacheBelady { // superbatches gather all rows
		t.asked = t.batches
	}
	return errors.Join(err, kept.Free())
}

// leave sets the nodes that are asked for to those that are not in kept.
func (t *trace) leave(kept *sample.NodeSet, budget *mem.Budget) (err error) {
	t.asked, t.missed = nil, 0
	for _, b := range t.batches {
		for _, v := range b {
			if !kept.Has(uint32(v)) {
				t.missed++
			}
		}
	}
	t.missing, err = mem.NewArena(budget, "trace of rows", 4*int64(max(1, t.missed)))
	if err != nil {
		return err
	}
	free := mem.View[sample.NodeID](t.missing.Bytes())
	for _, b := range t.batches {
		n := 0
		for _, v := range b {
			if !kept.Has(uint32(v)) {
				free[n] = v
				n++
			}
		}
		t.asked, free = append(t.asked, free[:n:n]), free[n:]
	}
	return nil
}

// onDevice returns the share of a trace's rows that a device keeps.
func (t *trace) onDevice() float64 { return 1 - float64(t.missed)/float64(max(1, t.nodes)) }
