package train

import (
	"gdb/compute/program"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/train/devicecache"
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

// prepare prepares a batch to train on, for the device, if the model has one. It may be called from
// any goroutine.
func (s *stepper) prepare(b *sample.Batch) error {
	if s.be.Device() == nil {
		return nil
	}
	room := model.Room{Places: s.placesPerRow(), Labels: len(b.Seeds) * s.task.LabelWords()}
	return s.model.Prepare(preparedIn(b, s.budget), &b.Dense.Lists, true, room)
}

// finish adds the labels of a batch to what was prepared of it, beside steps.
func (s *stepper) finish(b *sample.Batch) {
	if p, made := b.Prepared.(*program.Prepared); made {
		p.Counted = s.task.Counted(b)
		copy(p.Labels(), s.task.Labels(b))
	}
}

// counted returns what the labels of a batch count: see task.Task.
func (s *stepper) counted(b *sample.Batch) float64 {
	if p, made := b.Prepared.(*program.Prepared); made {
		return p.Counted
	}
	return s.task.Counted(b)
}

// placesPerRow returns how many numbers a batch has for each row of features, which say where a
// device has it.
func (s *shape) placesPerRow() int {
	switch {
	case s.features == 0 || s.learned != nil: // the host puts rows together
		return 0
	case s.cfg.MacroBatch > 1:
		return devicecache.SharedPlaces
	}
	return 1
}

// preparedIn returns the memory of a batch for what is prepared of it.
func preparedIn(b *sample.Batch, budget *mem.Budget) *program.Prepared {
	p, made := b.Prepared.(*program.Prepared)
	if !made {
		p = program.NewPrepared(budget)
		b.Prepared = p
	}
	return p
}

// preparing returns what prepares batches to predict their seeds on a device, from any goroutine;
// nil where the host predicts. places is how many numbers there are for each row.
func (n *network) preparing(budget *mem.Budget, places int) func(b *sample.Batch) error {
	if n.be.Device() == nil {
		return nil
	}
	room := model.Room{Places: places}
	return func(b *sample.Batch) error {
		return n.model.Prepare(preparedIn(b, budget), &b.Dense.Lists, false, room)
	}
}
