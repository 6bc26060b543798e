package train

import (
	"cmp"
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
	"gdb/train/exact"
	"gdb/train/runs"
	"gdb/train/setting"
	"gdb/train/task"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Steps trains on the rest of the current epoch.
func (s *session) Steps(ctx context.Context) error {
	s.setRate()
	batches, err := s.batchesOfEpoch()
	if err != nil {
		return err
	}
	if s.pos.Batch >= batches { // stopped while the epoch was evaluated
		return nil
	}
	// The loader does not see the cancellation: the step under way is finished first.
	e, err := s.epoch(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	before := s.replicas.launches()
	s.replicas.addTo(nil) // what an evaluation was given
	err = s.consume(ctx, e, int(batches))
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = errors.Join(err, s.readLosses())
	}
	s.pos.Sums.Launches = s.pos.Sums.Launches.Add(s.replicas.launches().Sub(before))
	e.Lap(&s.pos.Sums.Sums)
	if s.beside != nil { // others evaluate in the memory of all
		err = errors.Join(err, s.steps.trim())
	}
	return errors.Join(err, e.Close())
}

// batchesOfEpoch returns how many batches the current epoch has.
func (s *session) batchesOfEpoch() (uint64, error) {
	if s.buffer != nil {
		return s.buffer.Batches(s.pos.Epoch)
	}
	order, err := sample.EpochOrder(s.nodes.train, s.cfg.Seed, s.pos.Epoch, s.cfg.Batch)
	if err != nil {
		return 0, err
	}
	return order.Batches(), nil
}

// setRate sets the optimizer's learning rate for the epoch.
func (s *session) setRate() {
	s.replicas.setRate(s.cfg.RateFactor(s.pos.Epoch, s.pos.Halvings))
}

// consume trains on the rest of an epoch, which has batches batches in all.
func (s *session) consume(ctx context.Context, e *loader.Epoch, batches int) error {
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := s.stepBatch(ctx, e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		due := s.cfg.CheckpointEvery > 0 && (s.pos.Batch+1)%uint64(s.cfg.CheckpointEvery) == 0
		due = due || s.IsDue()
		if err == nil && (due || (s.pos.Batch+1)%uint64(s.steps.be.About().StepsPerRead) == 0) {
			err = s.readLosses()
		}
		if err != nil {
			return fmt.Errorf("epoch %d, batch %d: %w", s.pos.Epoch+1, s.pos.Batch+1, err)
		}
		s.pos.Batch++
		s.Stepped(batches)
		if due {
			e.Lap(&s.pos.Sums.Sums)
			if err := s.Checkpoint(); err != nil {
				return err
			}
		}
	}
}

// readLosses adds up the losses of the steps since the last call.
func (s *session) readLosses() error {
	all, err := s.replicas.losses()
	for _, o := range all {
		s.pos.Sums.addLoss(o)
	}
	return err
}

// FinishEpoch evaluates if it is time to, and returns the record of the epoch.
func (s *session) FinishEpoch(ctx context.Context) (runs.Record, error) {
	sums := &s.pos.Sums
	if sums.Rows == 0 {
		return nil, fmt.Errorf("epoch %d: %w: no training node has a label", s.pos.Epoch+1,
			task.ErrNothing)
	}
	epoch := int(s.pos.Epoch) + 1
	rec := sums.epoch(epoch)
	rec.InPlace = s.plan.OnDevice.InPlace()
	rec.Drawn, rec.DrawnAgain = s.draws.Lap()
	rec.Train = s.in.task.TrainScore(s.cfg.Metric, sums.score())
	rec.Rate = s.steps.opt.Rate()
	rec.Unlabeled = uint64(len(s.nodes.train)) - sums.Rows
	if s.Evaluates(epoch) {
		if err := s.choose(ctx, &rec, epoch); err != nil {
			return nil, err
		}
	}
	s.pos.Epoch, s.pos.Batch, s.pos.Sums = s.pos.Epoch+1, 0, epochSums{}
	rec.Reads, s.reads = s.reads, nil
	s.totals.add(&rec, s.plan.Superbatch != nil)
	if err := s.weigh(&rec); err != nil {
		return nil, err
	}
	s.steep = cmp.Or(s.steep, steepLoss(&s.cfg, &rec, s.in.task.Outputs()))
	return &rec, nil
}

// choose evaluates after an epoch, and keeps what is the best so far. Where other trainings share
// what is open it waits for them first, and rec.Eval has none of that wait.
func (s *session) choose(ctx context.Context, rec *runs.Epoch, epoch int) error {
	defer s.turn()()
	begun := time.Now()
	chosen, err := s.validate(ctx, rec)
	if err != nil {
		return fmt.Errorf("evaluate epoch %d on the validation nodes: %w", epoch, err)
	}
	if rec.Best, err = s.compare(*rec.Val, epoch); err != nil {
		return err
	}
	if rec.Best {
		s.thresholds = chosen
	}
	rec.Eval = time.Since(begun).Seconds()
	return nil
}

// turn returns once no other training uses what is open; none does until done is called.
func (s *session) turn() (done func()) {
	if s.beside == nil {
		return func() {}
	}
	return s.beside.member.Alone()
}

// weigh records what the process holds between two epochs.
func (s *session) weigh(rec *runs.Epoch) (err error) {
	rec.RSS, rec.RSSPeak = mem.RSS()
	rec.Held, rec.Files = s.in.Budget.Used(), blockdev.Descriptors()
	rec.Prep, err = treeBytes(s.in.Store.FS(), s.in.Store.Path("prep"))
	return err
}

// treeBytes returns the sum of the lengths of the files in a directory. Files that do not exist, or
// vanish meanwhile, count nothing: other runs have files in prep too.
func treeBytes(fs vfs.FS, dir string) (sum int64, err error) {
	names, err := fs.List(dir)
	if err != nil && !oserror.IsNotExist(err) {
		return 0, fmt.Errorf("train: list %s: %w", dir, err)
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if oserror.IsNotExist(err) {
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
func (s *session) compare(v float64, epoch int) (best bool, err error) {
	if !s.Improves(v, epoch) {
		return false, nil
	}
	if s.best, err = s.steps.weights(); err != nil {
		return false, err
	}
	if s.steps.vectors != nil {
		s.steps.vectors.KeepBest()
	}
	return true, nil
}

// Test evaluates the best weights on the test split, and puts the last weights back afterwards.
func (s *session) Test(ctx context.Context) error {
	if !s.pos.HasBest {
		return fmt.Errorf("no evaluation within %d epochs: raise --epochs", s.cfg.Epochs)
	}
	last, err := s.steps.weights()
	if err != nil {
		return err
	}
	s.steps.be.Write(s.steps.model.Params().W, s.best)
	if v := s.steps.vectors; v != nil {
		v.SwapBest()
		defer v.SwapBest()
	}
	err = s.testBest(ctx)
	s.steps.be.Write(s.steps.model.Params().W, last)
	return err
}

func (s *session) testBest(ctx context.Context) error {
	if s.nodes.test == nil {
		return nil
	}
	defer s.turn()()
	s.setThresholds(s.thresholds)
	c, err := s.evaluate(ctx, s.nodes.test, false, true)
	s.setThresholds(nil)
	if err != nil {
		return fmt.Errorf("test: %w", err)
	}
	r, err := newEvalResult(c, s.cfg.Metric)
	if err != nil {
		return fmt.Errorf("test: %w", err)
	}
	r.Run, r.Split, r.Epoch = s.Dir.Name(), "test", s.pos.BestEpoch
	if r.ClassMetrics != nil && len(r.Classes) > task.ConfusionMost {
		r.Classes = nil
	}
	if s.tested, err = json.Marshal(r); err != nil {
		return fmt.Errorf("test: encode the evaluation: %w", err)
	}
	s.pos.Test = &r.Value
	if c, ok := c.(*task.ClassTally); ok {
		s.oneSided = c.OneSided(s.in.Meta.Labels.Classes)
	}
	return nil
}

// evaluate predicts the nodes of a set and returns the tally, while the training is alone. choose
// makes the tally count for choosing thresholds, if nodes can have several labels, and draw for
// curves of classes.
func (s *session) evaluate(ctx context.Context, set *roaring.Bitmap, choose,
	draw bool) (c task.Tally, err error) {
	batches, again, rows, err := s.evaluationBatches(set)
	if err != nil {
		return nil, err
	}
	if err := s.replicas.rest(); err != nil {
		return nil, err
	}
	if s.loader != nil && s.cfg.EvalMode != setting.EvalSampled && s.in.Resident == nil {
		if err := s.loader.Rest(); err != nil { // larger blocks need fewer readings of a table
			return nil, err
		}
	}
	if batches.Superbatch == nil { // else it is in memory only while they are sampled
		room := int64(0) // between epochs of a superbatch, rows of the next are in memory too
		if s.cfg.EvalMode != setting.EvalSampled {
			room = exact.HeapBytes + exact.Bytes +
				exact.SetsBytes(s.steps.model.Spec(), s.in.Meta.Nodes, s.cfg.Memory)
		}
		release, err := s.in.UseLists(ctx, room)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	e := &evaluator{network: &s.steps.network, in: s.in, cfg: &s.cfg, choose: choose, draw: draw,
		scratch: &scratch{in: s.in, dir: "runs/" + s.Dir.Name() + "/" + hiddenDir},
		batches: batches, again: again, rows: rows}
	c, err = e.counts(ctx, set)
	if err != nil && again != nil { // what stopped in the middle does not go on
		err = errors.Join(err, s.val.Close())
	}
	return c, errors.Join(err, s.restSteps()) // or a larger step of training takes memory besides
}

// validate writes the metric and the loss of the validation nodes to rec. Where nodes can have
// several labels it chooses thresholds, with which it computes the metric, and returns them.
func (s *session) validate(ctx context.Context, rec *runs.Epoch) (chosen []float32, err error) {
	c, err := s.evaluate(ctx, s.nodes.val, true, false)
	if err != nil {
		return nil, err
	}
	if labels, ok := c.(*task.ClassTally); ok && labels.Chooses() && c.Labeled() > 0 {
		chosen = labels.Chosen()
		if s.cfg.Metric == task.Accuracy { // of nodes that are wholly right at the thresholds
			s.setThresholds(chosen)
			c, err = s.evaluate(ctx, s.nodes.val, false, false)
			s.setThresholds(nil)
		}
	}
	if err != nil {
		return nil, err
	}
	v, err := c.Metric(s.cfg.Metric)
	if err != nil {
		return nil, err
	}
	loss, err := c.Loss()
	rec.Val, rec.ValLoss = &v, &loss
	return chosen, err
}

// setThresholds sets the thresholds above which labels are predicted; nil is one half for all.
func (s *session) setThresholds(all []float32) {
	if c, ok := s.in.task.(*task.Classes); ok {
		c.Thresholds = all
	}
}

// stepBatch trains on a batch, part by part: once it was begun it is finished, whatever ctx says.
// It returns io.EOF after the last.
func (s *session) stepBatch(ctx context.Context, e *loader.Epoch) error {
	s.pos.Sums.Batches++
	for done := false; !done; ctx = context.WithoutCancel(ctx) {
		b, err := e.Next(ctx)
		if err != nil {
			s.pos.Sums.Batches--
			return err
		}
		done, err = s.replicas.step(b)
		s.pos.Sums.addBatch(b)
		if h := s.steps.history; h != nil {
			s.pos.Sums.Stale.Add(h.Used())
		}
		s.replicas.addTo(&s.pos.Sums)
		b.Release()
		if err != nil {
			return err
		}
	}
	return s.replicas.fill(ctx)
}
