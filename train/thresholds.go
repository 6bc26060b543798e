package train

import (
	"context"

	"gdb/train/runs"
	"gdb/train/task"
)

// thresholdsName is the name of the array in a checkpoint that holds the thresholds of
// the best weights.
const thresholdsName = "thresholds"

// validate writes the metric and the loss of the validation nodes to rec. Where nodes can have
// several labels it chooses thresholds, with which it computes the metric, and returns them.
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

// setThresholds sets the thresholds above which labels are predicted; nil is one half for all.
func (t *trainer) setThresholds(all []float32) {
	if c, ok := t.task.(*task.Classes); ok {
		c.Thresholds = all
	}
}

// thresholdsOf returns the thresholds in a checkpoint; nil if it has none.
func thresholdsOf(labels task.Task, arrays []array) ([]float32, error) {
	for _, a := range arrays {
		if a.Name == thresholdsName {
			return runs.FindArray(arrays, thresholdsName, labels.Outputs())
		}
	}
	return nil, nil
}

// useThresholds sets the thresholds from a checkpoint, if it has any.
func useThresholds(labels task.Task, arrays []array) (err error) {
	if c, ok := labels.(*task.Classes); ok {
		c.Thresholds, err = thresholdsOf(labels, arrays)
	}
	return err
}
