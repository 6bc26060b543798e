package train

import (
	"context"

	"gdb/train/runs"
	"gdb/train/task"
)

// thresholdsName is the array of a checkpoint that has them, beside the best weights.
const thresholdsName = "thresholds"

// validate writes the metric and the loss of the validation nodes to rec. Where a node can have
// several labels, it chooses the thresholds of these, and the metric is computed with them.
func (t *trainer) validate(ctx context.Context, rec *runs.Epoch) (chosen []float32, err error) {
	c, err := t.evaluate(ctx, t.val, true)
	if err != nil {
		return nil, err
	}
	if labels, ok := c.(*task.ClassTally); ok && labels.Chooses() && c.Labeled() > 0 {
		chosen = labels.Chosen()
		if t.cfg.Metric == task.Accuracy { // of nodes that are wholly right at the thresholds
			t.setThresholds(chosen)
			c, err = t.evaluate(ctx, t.val, false)
			t.setThresholds(nil)
		}
	}
	if err != nil {
		return nil, err
	}
	v, err := c.Metric(t.cfg.Metric)
	if err != nil {
		return nil, err
	}
	loss, err := c.Loss()
	rec.Val, rec.ValLoss = &v, &loss
	return chosen, err
}

// setThresholds has labels predicted above thresholds; nil is one half for all.
func (t *trainer) setThresholds(all []float32) {
	if c, ok := t.task.(*task.Classes); ok {
		c.Thresholds = all
	}
}

// thresholdsOf are those of a checkpoint; nil if it has none.
func thresholdsOf(labels task.Task, arrays []array) ([]float32, error) {
	for _, a := range arrays {
		if a.Name == thresholdsName {
			return runs.FindArray(arrays, thresholdsName, labels.Outputs())
		}
	}
	return nil, nil
}

// useThresholds has labels predicted above the thresholds of a checkpoint, if it has any.
func useThresholds(labels task.Task, arrays []array) (err error) {
	if c, ok := labels.(*task.Classes); ok {
		c.Thresholds, err = thresholdsOf(labels, arrays)
	}
	return err
}
