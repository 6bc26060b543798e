package train

import (
	"cmp"
	"context"

	"gdb/sample/loader"
	"gdb/sample/superbatch"
	"gdb/train/devicecache"
	"gdb/train/run"
	"gdb/train/setting"

	"github.com/RoaringBitmap/roaring/v2"
)

// epoch starts the rest of the current epoch.
func (s *session) epoch(ctx context.Context) (*loader.Epoch, error) {
	if s.beside != nil {
		return s.beside.member.Epoch(ctx, s.pos.Epoch, s.pos.Batch)
	}
	if s.loader == nil {
		s.loader = loader.New(s.in.Source, s.batches())
		s.CloseLater(s.loader)
	}
	return s.loader.Epoch(ctx, s.pos.Epoch, s.pos.Batch*uint64(s.cfg.Parts()))
}

// batches returns the configuration of the run's batches.
func (s *session) batches() loader.Config {
	c := s.in.batches(&s.cfg, s.plan)
	c.Seeds, c.Macro, c.Parts = s.nodes.train, s.cfg.Together(), s.cfg.Parts()
	s.replicas.finishBatches(&c)
	c.Prepare = s.replicas.preparing()
	if s.draws != nil {
		c.Draws = s.draws.Drawer
	}
	if s.buffer != nil {
		c.Buffer = s.buffer.Buffer
	}
	if s.plan.Superbatch != nil {
		c.Superbatch = s.superbatches()
	}
	return c
}

// superbatches returns the configuration of a run's superbatches. Unless their number of batches is
// given, they end where the run evaluates, since it may end after that.
func (s *session) superbatches() *superbatch.Config {
	p := s.plan.Superbatch
	c := s.plan.SuperbatchConfig(s.device, s.cfg.Threads)
	c.Epochs, c.Name = uint64(s.cfg.Epochs), cmp.Or(s.Dir.Name(), newToken())
	c.Rest = s.restSteps
	if p.Batches == 0 {
		c.Until = s.certain
	}
	if p.Kept < p.Slots { // evaluation takes their memory
		if p.Spill(s.in.Rows.Meta().Dim) > p.Storage/superbatch.SpillShare {
			c.Until = s.nextEvaluation // the superbatch has ended then
		} else if !s.alone {
			c.Spill = func(epoch uint64) bool { return s.Evaluates(int(epoch) + 1) }
		}
	}
	if s.evaluatesAhead() {
		c.StorageBytes -= s.plan.EvaluationStorage()
	}
	c.Decided = func(r superbatch.Reading) {
		s.reads = append(s.reads, r)
		s.Notify(run.Event{Reading: &r})
	}
	return c
}

// evaluatesAhead reports whether the batches of evaluation are sampled ahead, as those of training
// are: their rows are read in one pass then, not one by one. They have the memory of training's,
// which takes turns with them.
func (s *session) evaluatesAhead() bool {
	p := s.plan.Superbatch
	return p != nil && s.cfg.EvalMode == setting.EvalSampled && !p.Overlap
}

// restSteps gives back what steps keep of the host's memory, while superbatches are made in it.
func (s *session) restSteps() error {
	if s.steps.be.Device() != nil {
		return nil
	}
	return s.steps.trim()
}

// validation is the batches of the validation nodes, where superbatches are made of them: they are
// the same in every evaluation.
type validation struct{ *loader.Loader }

// Close frees them. There may be none.
func (v *validation) Close() (err error) {
	if v.Loader != nil {
		err = v.Loader.Close()
	}
	v.Loader = nil
	return err
}

// evaluationBatches returns the configuration of the batches of an evaluation, a loader that keeps
// them for the next one, if that has the same nodes, nil for none, and where a device has their
// rows.
func (s *session) evaluationBatches(set *roaring.Bitmap) (c loader.Config, again *loader.Loader,
	rows devicecache.Input, err error) {
	c = s.in.batches(&s.cfg, s.plan)
	if s.evaluatesAhead() {
		c.Superbatch = s.plan.EvaluationConfig(s.device, s.cfg.Threads)
		c.Superbatch.Name = cmp.Or(s.Dir.Name(), newToken()) + "-eval"
		c.Superbatch.Rest, c.Superbatch.Repeats = s.restSteps, true
	}
	first, places := s.replicas.all[0], 0
	if rows = first.rows.ToEvaluate(&c); rows != nil {
		places = 1
	}
	c.Prepare = s.steps.preparing(s.in.Budget, places)
	switch {
	case c.Superbatch == nil:
		return c, nil, rows, nil
	case set != s.nodes.val:
		return c, nil, rows, s.val.Close() // its storage is for these
	case s.val.Loader == nil:
		s.val.Loader = loader.New(s.in.Source, c)
	}
	return c, s.val.Loader, rows, nil
}

// nextEvaluation returns the number of epochs after which the run evaluates next, given the
// current epoch.
func (s *session) nextEvaluation(epoch uint64) uint64 {
	every := uint64(s.cfg.EvalEvery)
	return (epoch/every + 1) * every
}

// certain returns the first epoch before which the run may end, for a superbatch that begins in
// epoch, assuming that no evaluation from now on improves. So no batch is sampled that may not
// be trained on.
func (s *session) certain(epoch uint64) uint64 {
	every := uint64(s.cfg.EvalEvery)
	next := s.nextEvaluation(epoch)
	ahead := epoch + uint64(s.plan.Superbatch.EpochsAhead())
	if s.cfg.Patience == 0 {
		return max(next, ahead)
	}
	left := uint64(max(0, s.cfg.Patience-s.pos.SinceBest))
	return max(next, min((s.pos.Epoch/every+left)*every, ahead))
}
