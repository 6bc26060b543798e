package train

import (
	"context"
	"errors"
	"io"
	"math"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/exact"
	"gdb/train/model"
	"gdb/train/setting"
	"gdb/train/task"

	"github.com/RoaringBitmap/roaring/v2"
)

// sampledEpoch is the epoch number from which sampled evaluation draws. No training reaches it, and
// every evaluation draws the same neighbors.
const sampledEpoch = math.MaxUint64

// evaluator predicts labeled nodes and compares the predictions with the labels.
type evaluator struct {
	in     *inputs
	be     backend.Backend
	model  *model.Model
	cfg    *Config
	dir    string // directory for hidden states, relative to the store
	choose bool   // count for choosing thresholds of labels
	// batches configures the batches of sampled evaluation.
	batches loader.Config
}

// counts predicts the nodes of a set and returns the finished tally.
func (e *evaluator) counts(ctx context.Context, set *roaring.Bitmap) (t task.Tally, err error) {
	if e.cfg.Metric != task.ROCAUC {
		return e.predicted(ctx, set, nil)
	}
	store := e.in.Store
	if err := e.in.claim(); err != nil {
		return nil, err
	}
	scores, err := task.NewScores(store.FS(), store.Path(e.dir+scoresSuffix), e.in.Budget,
		set.GetCardinality()*uint64(e.in.task.Outputs()))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, scores.Close()) }()
	if t, err = e.predicted(ctx, set, scores); err != nil {
		return nil, err
	}
	return t, t.Finish(ctx)
}

// predicted predicts the nodes of a set and returns the tally.
func (e *evaluator) predicted(ctx context.Context, set *roaring.Bitmap,
	scores *task.Scores) (task.Tally, error) {
	t := e.in.task.NewTally(e.in.Labels, scores)
	if c, ok := t.(*task.ClassTally); ok && e.choose {
		room := task.ThresholdBytes(e.in.task.Outputs())
		if err := e.in.Budget.Reserve("thresholds of labels", room); err != nil {
			return nil, err
		}
		defer e.in.Budget.Release(room)
		c.WillChoose()
	}
	return t, e.predict(ctx, set, t)
}

// predict adds the predictions for a set to a tally.
func (e *evaluator) predict(ctx context.Context, set *roaring.Bitmap, t task.Tally) error {
	if e.cfg.EvalMode == setting.EvalSampled {
		return e.sampled(ctx, set, t)
	}
	if err := e.in.trim(e.be); err != nil { // blocks of nodes can use a step's memory
		return err
	}
	if err := e.in.Budget.Reserve("evaluation", exact.HeapBytes); err != nil {
		return err
	}
	defer e.in.Budget.Release(exact.HeapBytes)
	f := e.in.inference(e.be, e.model, e.dir)
	return f.Run(ctx, set, func(nodes []sample.NodeID, logits []float32) error {
		return t.Add(ctx, nodes, logits)
	})
}

// sampled predicts with sampled neighbors, as in training. That is cheap where the set is small,
// and approximate.
func (e *evaluator) sampled(ctx context.Context, set *roaring.Bitmap, t task.Tally) (err error) {
	list := evalListBytes(int64(set.GetCardinality()))
	if err := e.in.Budget.Reserve("nodes to evaluate", list); err != nil {
		return err
	}
	defer e.in.Budget.Release(list)
	ids := make([]sample.NodeID, 0, set.GetCardinality())
	for it := set.Iterator(); it.HasNext(); {
		ids = append(ids, sample.NodeID(it.Next()))
	}
	order, err := sample.EpochOrder(ids, e.cfg.Seed, sampledEpoch, e.cfg.Batch)
	if err != nil {
		return err
	}
	pipe, err := e.in.Pipeline(ctx, &e.batches, order, 0, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pipe.Close()) }()
	var logits []float32
	for {
		b, err := pipe.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		logits, err = e.logits(b, logits)
		if err == nil {
			err = t.Add(ctx, b.Seeds, logits)
		}
		b.Release()
		if err != nil {
			return err
		}
	}
}

// inference returns what computes a model exactly; dir is the directory for hidden states.
func (in *inputs) inference(be backend.Backend, m *model.Model, dir string) *exact.Inference {
	f := &exact.Inference{Source: in.Source, Backend: be, Model: m, Dir: dir, Claim: in.claim}
	if in.vectors != nil {
		f.Vectors = in.vectors.Rows()
	}
	return f
}

// trim gives the memory of steps back.
func (in *inputs) trim(be backend.Backend) error {
	err := be.Trim()
	if in.vectors != nil {
		err = errors.Join(err, in.vectors.Trim())
	}
	return err
}

// logits predicts the seeds of a batch, in the memory of out if that is large enough.
func (e *evaluator) logits(b *sample.Batch, out []float32) ([]float32, error) {
	if err := e.be.Begin(); err != nil {
		return nil, err
	}
	x, err := inputOf(e.in.vectors, b)
	if err != nil {
		return nil, err
	}
	y, err := e.model.Forward(&b.Dense.Lists, x, model.Step{Table: tableOf(e.be, b),
		Rows: b.TableRows})
	if err != nil {
		return nil, err
	}
	out = mem.Resized(out, y.Len())
	e.be.Read(out, y)
	return out, e.be.Err()
}
