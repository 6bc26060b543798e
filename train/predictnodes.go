package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/blockdev"
	"gdb/internal/tables"
	"gdb/layout"
	"gdb/sample"
	"gdb/train/exact"
	"gdb/train/task"

	"github.com/RoaringBitmap/roaring/v2"
)

// PredictNodes calls emit with what a run predicts of nodes, ascending and each once: a name of
// a class or several, or a number, and the probability of a class, by the run's temperature if
// calibrated asks for it, NaN where there is none. It computes as Predict does, in memory bytes of
// the process, or what the run took for 0.
//
//lint:parameters it is a graph.Predict of package shell, which this package does not know
func PredictNodes(ctx context.Context, store *layout.Store, dev blockdev.Device, run string,
	calibrated bool, nodes []layout.NodeID, memory int64,
	emit func(v layout.NodeID, prediction any, probability float64) error) (err error) {
	set := roaring.New()
	for _, v := range nodes {
		set.Add(uint32(v))
	}
	t, err := openTrained(ctx, store, dev, opening{run: run, nodes: set,
		calibrated: calibrated, limits: Limits{Memory: memory}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := t.checkCalibrated(calibrated); err != nil {
		return err
	}
	p, err := t.in.task.Predictions(true, false)
	if err != nil {
		p, err = t.in.task.Predictions(false, false)
	}
	if err == nil {
		err = t.in.Budget.Reserve("evaluation", exact.HeapBytes)
	}
	if err != nil {
		return fmt.Errorf("train: predict: %w", err)
	}
	defer t.in.Budget.Release(exact.HeapBytes)
	n, columns := t.in.task.Outputs(), p.Columns()
	return t.each(ctx, func(nodes []sample.NodeID, logits []float32) error {
		if err := task.CheckOutput(nodes, logits); err != nil {
			return err
		}
		for i, v := range nodes {
			var row predictedRow
			p.Write(&row, logits[i*n:(i+1)*n])
			if err := emit(v, row.prediction, row.probability(columns)); err != nil {
				return err
			}
		}
		return nil
	})
}

// predictedRow is a tables.Writer that keeps the cells of a row.
type predictedRow struct {
	tables.Writer // for what predictions do not write
	prediction    any
	rest          []float32
}

// String takes the names of classes.
func (r *predictedRow) String(s string) { r.prediction = s }

// Float32 takes a number, or the probability of a class.
func (r *predictedRow) Float32(v float32) {
	if r.prediction == nil {
		r.prediction = float64(v)
		return
	}
	r.rest = append(r.rest, v)
}

// probability returns that of the class that is predicted.
func (r *predictedRow) probability(columns []tables.Column) float64 {
	name, _ := r.prediction.(string)
	i := slices.IndexFunc(columns, func(c tables.Column) bool { return c.Name == "p:"+name })
	if i < 1 || i > len(r.rest) {
		return math.NaN()
	}
	return float64(r.rest[i-1])
}
