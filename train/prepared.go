package train

import (
	"gdb/compute/program"
	"gdb/sample"
	"gdb/train/model"
)

// group has a device be given steps in the way that was measured to be faster, in this run or when
// it began: at once, for which batches are padded to few sizes, or one by one.
func (s *session) group() {
	on := s.steps.be.Device()
	if on == nil {
		return
	}
	if way := s.plan.OnDevice.Measured(); s.cfg.Grouped == nil && way != nil {
		s.cfg.Grouped = &way.Grouped
	}
	if s.cfg.Grouped != nil {
		on.Group(*s.cfg.Grouped)
	}
	if sizes := s.plan.Sampled; sizes != nil && s.steps.be.About().Groups {
		s.steps.model.Pad(model.NewPadding(&program.Sizes{Nodes: sizes.Nodes,
			Entries: sizes.Entries}))
	}
}

// preparing returns what prepares batches beside steps, by whoever drew them; nil where the model
// has no device, whose steps make the lists that they read themselves.
func (s *stepper) preparing() func(b *sample.Batch) error {
	if s.be.Device() == nil {
		return nil
	}
	return s.prepare
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
