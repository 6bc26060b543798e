package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/runs"
	"gdb/train/task"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Steps trains on the rest of the current epoch.
func (t *trainer) Steps(ctx context.Context) error {
	t.setRate()
	batches, err := t.batchesOfEpoch()
	if err != nil {
		return err
	}
	if t.pos.Batch >= batches { // stopped while the epoch was evaluated
		return nil
	}
	// The loader does not see the cancellation: the step under way is finished first.
	e, err := t.epoch(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	before := t.be.Launches()
	err = t.consume(ctx, e, int(batches))
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = errors.Join(err, t.readLosses())
	}
	t.pos.Sums.Launches = t.pos.Sums.Launches.Add(t.be.Launches().Sub(before))
	e.Lap(&t.pos.Sums.Sums)
	return errors.Join(err, e.Close())
}

// batchesOfEpoch returns how many batches the current epoch has.
func (t *trainer) batchesOfEpoch() (uint64, error) {
	if t.buffer != nil {
		return t.buffer.Batches(t.pos.Epoch)
	}
	order, err := sample.EpochOrder(t.train, t.cfg.Seed, t.pos.Epoch, t.cfg.Batch)
	if err != nil {
		return 0, err
	}
	return order.Batches(), nil
}

// openBuffer takes the memory for partitions, if batches are drawn from partitions.
func (t *trainer) openBuffer() (err error) {
	if !t.cfg.Buffered() {
		return nil
	}
	if t.buffer, err = openPartitions(t.in.Source, &t.cfg, t.train); err == nil {
		t.CloseLater(t.buffer)
	}
	return err
}

// setRate sets the optimizer's learning rate for the epoch.
func (t *trainer) setRate() { t.opt.factor = t.cfg.RateFactor(t.pos.Epoch, t.pos.Halvings) }

// consume trains on the rest of an epoch, which has batches batches in all.
func (t *trainer) consume(ctx context.Context, e *loader.Epoch, batches int) error {
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b, err := e.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = t.step(b)
		t.pos.Sums.addBatch(b)
		t.addBus(&t.pos.Sums)
		b.Release()
		if err == nil {
			err = t.fillRows(ctx)
		}
		due := t.cfg.CheckpointEvery > 0 && (t.pos.Batch+1)%uint64(t.cfg.CheckpointEvery) == 0
		due = due || t.IsDue()
		if err == nil && (due || (t.pos.Batch+1)%uint64(t.be.About().StepsPerRead) == 0) {
			err = t.readLosses()
		}
		if err != nil {
			return fmt.Errorf("epoch %d, batch %d: %w", t.pos.Epoch+1, t.pos.Batch+1, err)
		}
		t.pos.Batch++
		t.Stepped(batches)
		if due {
			e.Lap(&t.pos.Sums.Sums)
			if err := t.Checkpoint(); err != nil {
				return err
			}
		}
	}
}

// readLosses adds up the losses of the steps since the last call.
func (t *trainer) readLosses() error {
	all, err := t.losses()
	for _, o := range all {
		t.pos.Sums.addLoss(o)
	}
	return err
}

// FinishEpoch evaluates if it is time to, and returns the record of the epoch.
func (t *trainer) FinishEpoch(ctx context.Context) (runs.Record, error) {
	sums := &t.pos.Sums
	if sums.Rows == 0 {
		return nil, fmt.Errorf("epoch %d: %w: no training node has a label", t.pos.Epoch+1,
			task.ErrNothing)
	}
	epoch := int(t.pos.Epoch) + 1
	rec := sums.epoch(epoch)
	rec.InPlace = t.plan.OnDevice.InPlace()
	rec.Train = t.task.TrainScore(t.cfg.Metric, sums.score())
	rec.Rate = t.opt.rate()
	rec.Unlabeled = uint64(len(t.train)) - sums.Rows
	begun := time.Now()
	if t.Evaluates(epoch) {
		chosen, err := t.validate(ctx, &rec)
		if err != nil {
			return nil, fmt.Errorf("evaluate epoch %d on the validation nodes: %w", epoch, err)
		}
		if rec.Best, err = t.compare(*rec.Val, epoch); err != nil {
			return nil, err
		}
		if rec.Best {
			t.thresholds = chosen
		}
	}
	rec.Eval = time.Since(begun).Seconds()
	t.pos.Epoch, t.pos.Batch, t.pos.Sums = t.pos.Epoch+1, 0, epochSums{}
	rec.Reads, t.reads = t.reads, nil
	t.totals.add(&rec, t.plan.Superbatch != nil)
	if err := t.weigh(&rec); err != nil {
		return nil, err
	}
	t.noteSteep(&rec)
	return &rec, nil
}

// weigh records what the process holds between two epochs.
func (t *trainer) weigh(rec *runs.Epoch) (err error) {
	rec.RSS, rec.RSSPeak = mem.RSS()
	rec.Held, rec.Files = t.in.Budget.Used(), blockdev.Descriptors()
	rec.Prep, err = treeBytes(t.in.Store.FS(), t.in.Store.Path("prep"))
	return err
}

// treeBytes returns the sum of the lengths of the files in a directory. Files that do not exist, or
// vanish meanwhile, count nothing: other runs have files in prep too.
func treeBytes(fs vfs.FS, dir string) (sum int64, err error) {
	names, err := fs.List(dir)
	if err != nil && !errors.Is(err, errNotExist) {
		return 0, fmt.Errorf("train: list %s: %w", dir, err)
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if errors.Is(err, errNotExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("train: ask for the size of %s: %w", path, err)
		}
		n := info.Size()
		if info.IsDir() {
			if n, err = treeBytes(fs, path); err != nil {
				return 0, err
			}
		}
		sum += n
	}
	return sum, nil
}

// compare keeps the weights if they are the best so far, and returns whether they are.
func (t *trainer) compare(v float64, epoch int) (best bool, err error) {
	if !t.Improves(v, epoch) {
		return false, nil
	}
	if t.best, err = t.weights(); err != nil {
		return false, err
	}
	if t.vectors != nil {
		t.vectors.KeepBest()
	}
	return true, nil
}

// Test evaluates the best weights on the test split, and puts the last weights back afterwards.
func (t *trainer) Test(ctx context.Context) error {
	if !t.pos.HasBest {
		return fmt.Errorf("no evaluation within %d epochs: raise --epochs", t.cfg.Epochs)
	}
	last, err := t.weights()
	if err != nil {
		return err
	}
	t.be.Write(t.model.Params().W, t.best)
	t.swapVectors()
	err = t.testBest(ctx)
	t.swapVectors()
	t.be.Write(t.model.Params().W, last)
	return err
}

func (t *trainer) testBest(ctx context.Context) error {
	if t.test == nil {
		return nil
	}
	t.setThresholds(t.thresholds)
	c, err := t.evaluate(ctx, t.test, false)
	t.setThresholds(nil)
	if err != nil {
		return fmt.Errorf("test: %w", err)
	}
	r, err := newEvalResult(c, t.cfg.Metric)
	if err != nil {
		return fmt.Errorf("test: %w", err)
	}
	r.Run, r.Split, r.Epoch = t.Dir.Name(), "test", t.pos.BestEpoch
	if r.ClassMetrics != nil && len(r.Classes) > task.ConfusionMost {
		r.Classes = nil
	}
	if t.tested, err = json.Marshal(r); err != nil {
		return fmt.Errorf("test: encode the evaluation: %w", err)
	}
	t.pos.Test = &r.Value
	if c, ok := c.(*task.ClassTally); ok {
		t.oneSided = c.OneSided(t.in.Meta.Labels.Classes)
	}
	return nil
}

// evaluate predicts the nodes of a set and returns the tally. choose makes the tally count for
// choosing thresholds, if nodes can have several labels.
func (t *trainer) evaluate(ctx context.Context, set *roaring.Bitmap, choose bool) (c task.Tally,
	err error) {
	release, err := t.in.UseGraph(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	e := &evaluator{in: t.in, be: t.be, model: t.model, cfg: &t.cfg, batches: batchesOf(&t.cfg,
		t.plan),
		dir: "runs/" + t.Dir.Name() + "/" + hiddenDir, choose: choose}
	return e.counts(ctx, set)
}
