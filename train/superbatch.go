package train

import (
	"cmp"
	"context"

	"gdb/sample/loader"
	"gdb/sample/superbatch"
	"gdb/train/plan"
	"gdb/train/run"
	"gdb/train/setting"
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
	s.replicas.gatherMissed(&c)
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
		c.StorageBytes -= c.StorageBytes / plan.EvaluationShare
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
	return p != nil && s.cfg.EvalMode == setting.EvalSampled && !p.Overlap && !p.InPlace
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
