package train

import (
	"gdb/compute/program"
	"gdb/sample"
	"gdb/train/model"
)

// group has a device be given steps in the way that was measured to be faster, in this run or when
// it began: at once, for which batches are padded to few sizes, or one by one.
func (s *session) group() {
	if s.steps.be.Device() == nil {
		return
	}
	if way := s.plan.OnDevice.Measured(); s.cfg.Grouped == nil && way != nil {
		s.cfg.Grouped = &way.Grouped
	}
	for _, r := range s.replicas.all {
		if s.cfg.Grouped != nil {
			r.be.Device().Group(*s.cfg.Grouped)
		}
		if sizes := s.plan.Sampled; sizes != nil && r.be.About().Groups {
			r.model.Pad(model.NewPadding(&program.Sizes{Nodes: sizes.Nodes,
				Entries: sizes.Entries}))
		}
	}
}

// prepare prepares a batch for the device, if the model has one. It may be called from any
// goroutine.
func (s *stepper) prepare(b *sample.Batch) error {
	if s.be.Device() == nil {
		return nil
	}
	p, made := b.Prepared.(*program.Prepared)
	if !made {
		p = program.NewPrepared(s.budget)
		b.Prepared = p
	}
	return s.model.Prepare(p, &b.Dense.Lists)
}
