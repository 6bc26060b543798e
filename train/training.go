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

// Training is a training without a run. It makes the batches that Run would train on, with the same
// readers, caches, pipeline and split of the memory, and takes the same steps. It evaluates nothing
// and leaves no file. It may be used by one goroutine.
type Training struct {
	t     *trainer
	begun bool
}

// Open opens what Run would open, with initial weights, and splits the memory in the same way. So
// an epoch shows how fast a faster model, or another machine, would get its batches. There are
// cfg.Epochs epochs.
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

// Plan returns how the memory was split.
func (l *Training) Plan() *plan.Plan { return l.t.plan }

// Epoch starts the batches of the next epoch, at the first call those of the first. The
// caller closes it.
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

// Machine returns what computes the steps.
func (l *Training) Machine() *program.Machine { return l.t.model.Machine() }

// Close frees everything.
func (l *Training) Close() error { return l.t.Loop.Close() }

// Stepper trains a model on batches that others make, in the order in which they come. It may be
// used by one goroutine.
type Stepper struct {
	cfg Config
	s   *stepper
}

// NewStepper returns a stepper with the model of a training on a store. Its memory is
// counted in budget.
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
