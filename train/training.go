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
	"gdb/train/run"
	"gdb/train/setting"
	"gdb/train/task"
)

// Run trains a model on a store until the last epoch, or until validation has not improved for
// cfg.Patience evaluations, and tests the weights of the best evaluation. obs is called from the
// training goroutine; nil for none.
//
// When ctx is cancelled the step under way is finished, a checkpoint written, and an error that
// wraps context.Canceled and names the run returned; a run resumed from there gives the weights of
// one that was never stopped. An error that wraps layout.ErrCorrupt means damaged data.
func Run(ctx context.Context, store *layout.Store, dev blockdev.Device, cfg Config,
	obs func(run.Event)) (*Result, error) {
	return runBeside(ctx, store, dev, cfg, obs, nil)
}

// runBeside does Run, with what beside shares with others; nil for none.
func runBeside(ctx context.Context, store *layout.Store, dev blockdev.Device, cfg Config,
	obs func(run.Event), beside *Beside) (*Result, error) {
	var s *session
	loop := run.New(store, cfg.Resume, obs)
	err := loop.Run(ctx, func() (spec run.Spec, err error) {
		c, err := check(ctx, loop, store, dev, cfg)
		if err != nil {
			return spec, err
		}
		c.beside = beside
		pos := &position{}
		return c.spec(pos, func(ctx context.Context) (run.Session, error) {
			s, err = c.session(ctx, pos)
			return s, err
		}), nil
	})
	if err != nil {
		return nil, err
	}
	return s.result(), nil
}

// spec returns what the loop knows of a training that stands at pos.
func (c *checked) spec(pos *position,
	open func(context.Context) (run.Session, error)) run.Spec {
	spec := run.Spec{Name: c.cfg.Run, Schedule: c.cfg.Schedule, Created: c.created, Open: open,
		At: &pos.Position, Better: func(a, b float64) bool {
			return setting.Better(c.cfg.Metric, a, b)
		}}
	if c.cfg.LRSchedule == setting.SchedulePlateau {
		spec.PlateauWait = c.cfg.PlateauWait()
	}
	return spec
}

// plan goes on to the phase in which the memory is split.
func (c *checked) plan(ctx context.Context) (*planned, error) {
	d, err := openData(ctx, c)
	if err != nil {
		return nil, err
	}
	return makePlan(ctx, d)
}

// session goes on to the last phase, which begins at pos.
func (c *checked) session(ctx context.Context, pos *position) (*session, error) {
	p, err := (*planned)(nil), error(nil)
	if c.beside == nil {
		p, err = c.plan(ctx)
	} else {
		defer c.beside.member.Alone()()
		p, err = c.beside.plan(c)
	}
	if err != nil {
		return nil, err
	}
	return openSession(ctx, p, pos)
}

// MakePlan does only the planning of Run. It makes no run.
func MakePlan(ctx context.Context, store *layout.Store, dev blockdev.Device,
	cfg Config) (*plan.Plan, error) {
	loop := run.New(store, cfg.Resume, nil)
	c, err := check(ctx, loop, store, dev, cfg)
	if err != nil {
		return nil, err
	}
	p, err := c.plan(ctx)
	if err = errors.Join(err, loop.Close()); err != nil {
		return nil, err
	}
	return p.plan, nil
}

// Training is a training without a run. It makes the batches that Run would train on, with the same
// readers, caches, pipeline and split of the memory, and takes the same steps. It evaluates nothing
// and leaves no file. It may be used by one goroutine.
type Training struct {
	s     *session
	begun bool
}

// Open opens what Run would open, with initial weights, and splits the memory in the same way. So
// an epoch shows how fast a faster model, or another machine, would get its batches. There are
// cfg.Epochs epochs.
func Open(ctx context.Context, store *layout.Store, dev blockdev.Device,
	cfg Config) (*Training, error) {
	loop := run.New(store, cfg.Resume, nil)
	c, err := check(ctx, loop, store, dev, cfg)
	if err != nil {
		return nil, err
	}
	c.alone = true
	s, err := c.session(ctx, &position{})
	if err != nil {
		return nil, errors.Join(err, loop.Close())
	}
	s.replicas.begin()
	return &Training{s: s}, nil
}

// Plan returns how the memory was split.
func (l *Training) Plan() *plan.Plan { return l.s.plan }

// Epoch starts the batches of the next epoch, at the first call those of the first. The
// caller closes it.
func (l *Training) Epoch(ctx context.Context) (*loader.Epoch, error) {
	if l.begun {
		l.s.pos.Epoch++
	}
	l.begun = true
	l.s.setRate()
	return l.s.epoch(ctx)
}

// Step trains on a batch, or the part of one that is next, as Run does, and returns its mean loss:
// of parts behind the last.
func (l *Training) Step(b *sample.Batch) (float64, error) {
	r := l.s.replicas
	if done, err := r.step(b); err != nil || !done {
		return 0, err
	}
	all, err := r.losses()
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return all[len(all)-1].Mean, r.fill(context.Background())
}

// Machine returns what computes the steps.
func (l *Training) Machine() *program.Machine { return l.s.steps.model.Machine() }

// Close frees everything.
func (l *Training) Close() error { return l.s.Loop.Close() }

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
	shape, err := newShape(&l.cfg, m, task.New(m.Labels, l.cfg.Loss), budget)
	if err != nil {
		return nil, err
	}
	if l.s, err = newStepper(shape); err != nil {
		return nil, errors.Join(err, shape.backend.Close())
	}
	l.s.begin()
	return l, nil
}

// Step trains on a batch as Run does, and returns its mean loss.
func (l *Stepper) Step(b *sample.Batch) (float64, error) { return l.s.lossOf(b, nil) }

// Close frees the memory.
func (l *Stepper) Close() error { return errors.Join(l.s.Close(), l.s.backend.Close()) }
