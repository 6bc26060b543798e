package train

import (
	"context"
	"errors"
	"io"
	"math"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/devicecache"
	"gdb/train/exact"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/setting"
	"gdb/train/task"

	"github.com/RoaringBitmap/roaring/v2"
)

// evalListBytes returns what sampled evaluation takes to list the nodes of a set.
func evalListBytes(nodes int64) int64 { return 4 * nodes }

// batches returns the configuration of batches that come through a pipeline.
func (in *inputs) batches(c *Config, p *plan.Plan) loader.Config {
	fanout, _ := model.Of(c).Sampled()
	return loader.Config{Batch: c.Batch, Fanout: fanout, ByRelation: in.byRelation, Seed: c.Seed,
		Workers: p.Samplers, PassWorkers: c.Threads, Ready: p.Ready, InTurn: p.InTurn,
		RowBytes: p.RowBytes()}
}

// sampledEpoch is the epoch number from which sampled evaluation draws. No training reaches it, and
// every evaluation draws the same neighbors.
const sampledEpoch = math.MaxUint64

// evaluator predicts labeled nodes and compares the predictions with the labels.
type evaluator struct {
	*network
	in      *inputs
	cfg     *Config
	scratch *scratch
	choose  bool // count for choosing thresholds of labels
	draw    bool // count for curves of classes
	// batches configures the batches of sampled evaluation. again, if it is not nil, has them from
	// one evaluation of the same nodes to the next. rows says where a device has their rows, nil
	// for nowhere.
	batches loader.Config
	again   *loader.Loader
	rows    devicecache.Input
}

// counts predicts the nodes of a set and returns the finished tally.
func (e *evaluator) counts(ctx context.Context, set *roaring.Bitmap) (t task.Tally, err error) {
	if !task.ByScores(e.cfg.Metric) {
		return e.predicted(ctx, set, nil)
	}
	store := e.in.Store
	if err := e.scratch.claim(); err != nil {
		return nil, err
	}
	scores, err := task.NewScores(store.FS(), store.Path(e.scratch.dir+scoresSuffix), e.in.Budget,
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
		c.WillChoose(e.cfg.AtPrecision)
	}
	if c, ok := t.(*task.ClassTally); ok && e.draw {
		room := task.CurveBytes(e.in.task.Outputs())
		if err := e.in.Budget.Reserve("curves of classes", room); err != nil {
			return nil, err
		}
		defer e.in.Budget.Release(room)
		c.WillDraw()
	}
	return t, e.predict(ctx, set, t)
}

// predict adds the predictions for a set to a tally.
func (e *evaluator) predict(ctx context.Context, set *roaring.Bitmap, t task.Tally) error {
	if e.cfg.EvalMode == setting.EvalSampled {
		return e.sampled(ctx, set, t)
	}
	if err := e.trim(); err != nil { // blocks of nodes can use a step's memory
		return err
	}
	if err := e.in.Budget.Reserve("evaluation", exact.HeapBytes); err != nil {
		return err
	}
	defer e.in.Budget.Release(exact.HeapBytes)
	f := e.inference(e.in, e.scratch)
	return f.Run(ctx, set, func(nodes []sample.NodeID, logits []float32) error {
		return t.Add(ctx, nodes, logits)
	})
}

// sampled predicts with sampled neighbors, as in training. That is cheap where the set is small,
// and approximate.
func (e *evaluator) sampled(ctx context.Context, set *roaring.Bitmap, t task.Tally) (err error) {
	return e.eachSampled(ctx, set, func(ids []sample.NodeID) (*sample.Order, error) {
		return sample.EpochOrder(ids, e.cfg.Seed, sampledEpoch, e.cfg.PartSeeds())
	}, func(nodes []sample.NodeID, logits []float32) error { return t.Add(ctx, nodes, logits) })
}

// eachSampled calls emit with the outputs of all nodes of a set, from batches in some order.
func (e *evaluator) eachSampled(ctx context.Context, set *roaring.Bitmap,
	inOrder func(ids []sample.NodeID) (*sample.Order, error), emit exact.Emit) (err error) {
	list := evalListBytes(int64(set.GetCardinality()))
	if err := e.in.Budget.Reserve("nodes to evaluate", list); err != nil {
		return err
	}
	defer e.in.Budget.Release(list)
	order, err := inOrder(mem.View[sample.NodeID](mem.BytesOf(set.ToArray())))
	if err != nil {
		return err
	}
	pipe, err := e.open(ctx, order)
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
		logits, err = e.logits(b, logits, e.rows)
		if err == nil {
			err = emit(b.Seeds, logits)
		}
		b.Release()
		if err != nil {
			return err
		}
	}
}

// open starts the batches of an order.
func (e *evaluator) open(ctx context.Context, order *sample.Order) (sample.Batches, error) {
	if e.again != nil {
		return e.again.Again(ctx, order)
	}
	return loader.Open(ctx, e.in.Source, e.batches, order, 0)
}

// inference returns what computes the model exactly; scratch is for hidden states.
func (n *network) inference(in *inputs, s *scratch) *exact.Inference {
	f := &exact.Inference{Source: in.Source, Backend: n.be, Model: n.model, Dir: s.dir,
		Claim: s.claim}
	if n.vectors != nil {
		f.Vectors = n.vectors.Rows()
	}
	return f
}
