package train

import (
	"cmp"
	"context"

	"gdb/sample/loader"
	"gdb/sample/superbatch"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/run"
)

// epoch starts the rest of the current epoch.
func (t *trainer) epoch(ctx context.Context) (*loader.Epoch, error) {
	if t.loader == nil {
		t.loader = loader.New(t.in.Source, t.batches())
		t.CloseLater(t.loader)
	}
	return t.loader.Epoch(ctx, t.pos.Epoch, t.pos.Batch)
}

// batches returns the configuration of the run's batches.
func (t *trainer) batches() loader.Config {
	c := batchesOf(&t.cfg, t.plan)
	c.Seeds, c.Macro = t.train, t.cfg.MacroBatch
	t.gathersMissed(&c)
	if t.buffer != nil {
		c.Buffer = t.buffer.Buffer
	}
	if t.plan.Superbatch != nil {
		c.Superbatch = t.superbatches()
	}
	return c
}

// batchesOf returns the configuration of batches that come through a pipeline.
func batchesOf(c *Config, p *plan.Plan) loader.Config {
	fanout, _ := model.Of(c).Sampled()
	return loader.Config{Batch: c.Batch, Fanout: fanout, Seed: c.Seed,
		Workers: plan.Samplers(c.Threads), PassWorkers: c.Threads, Ready: p.Ready, InTurn: p.InTurn,
		RowBytes: p.RowBytes()}
}

// superbatches returns the configuration of a run's superbatches. Unless their number of batches is
// given, they end where the run evaluates, since it may end after that.
func (t *trainer) superbatches() *superbatch.Config {
	s := t.plan.Superbatch
	c := t.plan.SuperbatchConfig(t.device, t.cfg.Threads)
	c.Epochs, c.Name = uint64(t.cfg.Epochs), cmp.Or(t.Dir.Name(), newToken())
	if s.Batches == 0 {
		c.Until = t.certain
	}
	if s.Kept < s.Slots { // evaluation takes their memory
		if s.Spill(t.features) > s.Storage/superbatch.SpillShare {
			c.Until = t.nextEvaluation // the superbatch has ended then
		} else if !t.alone {
			c.Spill = func(epoch uint64) bool { return t.Evaluates(int(epoch) + 1) }
		}
	}
	c.Decided = func(r superbatch.Reading) {
		t.reads = append(t.reads, r)
		t.Notify(run.Event{Reading: &r})
	}
	return c
}

// nextEvaluation returns the number of epochs after which the run evaluates next, given the
// current epoch.
func (t *trainer) nextEvaluation(epoch uint64) uint64 {
	every := uint64(t.cfg.EvalEvery)
	return (epoch/every + 1) * every
}

// certain returns the first epoch before which the run may end, for a superbatch that begins in
// epoch, assuming that no evaluation from now on improves. So no batch is sampled that may not
// be trained on.
func (t *trainer) certain(epoch uint64) uint64 {
	every := uint64(t.cfg.EvalEvery)
	next := t.nextEvaluation(epoch)
	ahead := epoch + uint64(t.plan.Superbatch.EpochsAhead())
	if t.cfg.Patience == 0 {
		return max(next, ahead)
	}
	left := uint64(max(0, t.cfg.Patience-t.pos.SinceBest))
	return max(next, min((t.pos.Epoch/every+left)*every, ahead))
}
