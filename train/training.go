package train

import (
	"context"
	"errors"

	"gdb/blockdev"
	"gdb/compute/program"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/plan"
	"gdb/train/task"
)

// Training is a training without its run: the batches that Run would train on, made by the same
// readers, caches and pipeline out of the same split of the memory, and the same steps. Nothing is
// evaluated, and no file is left. It is for one goroutine.
type Training struct {
	t     *trainer
	begun bool
}

// Open opens what Run would open, weights included: the memory is split in the same way, so that an
// epoch here tells what a faster model, or another machine's, would be fed at. It has cfg.Epochs
// epochs.
func Open(ctx context.Context, store *layout.Store, dev blockdev.Device,
	cfg Config) (*Training, error) {
	t := newTrainer(store, dev, cfg, nil)
	t.alone = true
	err := t.Prepare(ctx)
	if err == nil {
		err = t.Open(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, t.Loop.Close())
	}
	t.begin()
	return &Training{t: t}, nil
}

// Plan is how the memory was split.
func (l *Training) Plan() *plan.Plan { return l.t.plan }

// Epoch starts the batches of the next epoch, the first at the first call. The caller closes it.
func (l *Training) Epoch(ctx context.Context) (*loader.Epoch, error) {
	if l.begun {
		l.t.pos.Epoch++
	}
	l.begun = true
	l.t.setRate()
	return l.t.epoch(ctx)
}

// Step trains on a batch as Run does, and returns its mean loss.
func (l *Training) Step(b *sample.Batch) (float64, error) {
	loss, err := l.t.lossOf(b)
	return loss, errors.Join(err, l.t.fillRows(context.Background()))
}

// Machine is what computes the steps.
func (l *Training) Machine() *program.Machine { return l.t.model.Machine() }

// Close frees all.
func (l *Training) Close() error { return l.t.Loop.Close() }

// Stepper trains a model on batches that others make, in the order in which they come. It is for
// one goroutine.
type Stepper struct {
	cfg Config
	s   *stepper
}

// NewStepper makes the model of a training on a store. Its memory is counted in budget.
func NewStepper(cfg Config, m *kv.Meta, budget *mem.Budget) (*Stepper, error) {
	if err := errors.Join(checkTrainable(m, &cfg), resolve(&cfg, m)); err != nil {
		return nil, err
	}
	l := &Stepper{cfg: cfg}
	var err error
	if l.s, err = newStepper(&l.cfg, m, task.New(m.Labels, l.cfg.Loss), budget); err != nil {
		return nil, err
	}
	if err := l.s.openModel(); err != nil {
		return nil, errors.Join(err, l.s.Close())
	}
	l.s.begin()
	return l, nil
}

// Step trains on a batch as Run does, and returns its mean loss.
func (l *Stepper) Step(b *sample.Batch) (float64, error) {
	return l.s.lossOf(b)
}

// Close frees the memory.
func (l *Stepper) Close() error { return l.s.Close() }
