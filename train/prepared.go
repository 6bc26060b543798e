package train

import (
	"gdb/compute/program"
	"gdb/sample"
	"gdb/train/model"
)

// pad has batches be padded to few sizes, where the device does the same work for less.
func (s *session) pad() {
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
