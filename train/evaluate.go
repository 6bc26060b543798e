package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"gdb/sample"
	"gdb/train/backend"
	"gdb/train/model"

	"github.com/RoaringBitmap/roaring/v2"
)

// evalSampled is the mode of evaluation that draws neighbors.
const evalSampled = "sampled"

// sampledEpoch is the epoch number of the draws of sampled evaluation, which no training reaches:
// every evaluation draws the same neighbors.
const sampledEpoch = math.MaxUint64

// evaluator predicts labeled nodes and counts how often it is right.
type evaluator struct {
	in    *inputs
	be    backend.Backend
	model model.Model
	cfg   *Config
	dir   string // for hidden states, relative to the store
	plan  *Plan
}

// counts predicts the nodes of a set.
func (e *evaluator) counts(ctx context.Context, set *roaring.Bitmap) (c *counts, err error) {
	t := &tally{counts: newCounts(e.in.classes), in: e.in}
	if e.cfg.Metric != metricROCAUC {
		return t.counts, e.predict(ctx, set, t)
	}
	store := e.in.store
	if err := e.in.claim(); err != nil {
		return nil, err
	}
	t.scores, err = newScores(store.FS(), store.Path(e.dir+scoresSuffix), e.in.budget,
		set.GetCardinality()*uint64(e.in.classes))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.scores.Close()) }()
	if err := e.predict(ctx, set, t); err != nil {
		return nil, err
	}
	t.rocAUC, err = t.scores.mean(ctx)
	return t.counts, err
}

// predict adds the predictions of a set to a tally.
func (e *evaluator) predict(ctx context.Context, set *roaring.Bitmap, t *tally) error {
	if e.cfg.EvalMode == evalSampled {
		return e.sampled(ctx, set, t)
	}
	if err := e.be.Trim(); err != nil { // blocks of nodes can use a step's memory
		return err
	}
	if err := e.in.budget.Reserve("evaluation", evalHeapBytes); err != nil {
		return err
	}
	defer e.in.budget.Release(evalHeapBytes)
	f := &inference{in: e.in, be: e.be, model: e.model, dir: e.dir}
	return f.run(ctx, set, func(nodes []sample.NodeID, logits []float32) error {
		return t.add(ctx, nodes, logits)
	})
}

// sampled predicts with sampled neighbors, as in training: cheap where the set is small, and
// approximate.
func (e *evaluator) sampled(ctx context.Context, set *roaring.Bitmap, t *tally) (err error) {
	list := evalListBytes(int64(set.GetCardinality()))
	if err := e.in.budget.Reserve("nodes to evaluate", list); err != nil {
		return err
	}
	defer e.in.budget.Release(list)
	ids := make([]sample.NodeID, 0, set.GetCardinality())
	for it := set.Iterator(); it.HasNext(); {
		ids = append(ids, sample.NodeID(it.Next()))
	}
	order, err := sample.EpochOrder(ids, e.cfg.Seed, sampledEpoch, e.cfg.Batch)
	if err != nil {
		return err
	}
	pipe, err := e.in.pipeline(ctx, e.cfg, order, 0, e.plan)
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
			err = t.add(ctx, b.Seeds, logits)
		}
		b.Release()
		if err != nil {
			return err
		}
	}
}

// logits predicts the seeds of a batch, in the memory of out if it is large enough.
func (e *evaluator) logits(b *sample.Batch, out []float32) ([]float32, error) {
	if err := e.be.Begin(); err != nil {
		return nil, err
	}
	y, err := e.model.Forward(&b.Dense, b.X, model.Step{Table: b.Table, Rows: b.TableRows})
	if err != nil {
		return nil, err
	}
	out = resized(out, y.Len())
	e.be.Read(out, y)
	return out, nil
}

// tally holds predictions against labels.
type tally struct {
	*counts
	in     *inputs
	labels []int32
	bits   []float32
	scores *scores // for roc-auc, else nil
}

// add counts the predictions of some nodes.
func (t *tally) add(ctx context.Context, nodes []sample.NodeID, logits []float32) error {
	n := t.in.classes
	if err := checkOutput(nodes, logits); err != nil {
		return err
	}
	if t.in.multi {
		t.bits = resized(t.bits, len(nodes)*n)
		if err := t.in.labels.Bits(ctx, nodes, t.bits); err != nil {
			return err
		}
		for i := range nodes {
			row, truth := logits[i*n:(i+1)*n], t.bits[i*n:(i+1)*n]
			t.multi(row, truth)
			if t.scores != nil {
				if err := t.scores.multi(row, truth); err != nil {
					return err
				}
			}
		}
		return nil
	}
	t.labels = resized(t.labels, len(nodes))
	if err := t.in.labels.Of(ctx, nodes, t.labels); err != nil {
		return err
	}
	for i, label := range t.labels {
		row := logits[i*n : (i+1)*n]
		t.class(argmax(row), label)
		if t.scores != nil {
			if err := t.scores.class(row, label); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkOutput fails if the output of a node is NaN or infinite: it means nothing.
func checkOutput(nodes []sample.NodeID, logits []float32) error {
	for i, v := range logits {
		if v-v != 0 {
			return fmt.Errorf("the output of node #%d is %g: check its features and those of its "+
				"neighbors for NaN and huge values", nodes[i/(len(logits)/len(nodes))], v)
		}
	}
	return nil
}

// argmax is the first largest.
func argmax(x []float32) int32 {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return int32(best)
}
