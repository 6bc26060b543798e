package train

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
)

// tuneGain is the share of the time that a new order may take to be chosen: smaller
// gains are noise.
const tuneGain = 0.97

// tune times steps on a sampled batch with orders of aggregation and product, place by place, and
// keeps the fastest for the whole run. The run then depends on what was measured, so the order is
// kept in run.json and used again when the run is resumed.
func (t *trainer) tune(ctx context.Context) error {
	order := uint64(0)
	least, err := t.timeOrder(ctx, order)
	for place := 0; err == nil && place < t.model.Places(); place++ {
		var took float64
		if took, err = t.timeOrder(ctx, order|1<<place); err == nil && took < tuneGain*least {
			order, least = order|1<<place, took
		}
	}
	var full *mem.LimitError
	if errors.As(err, &full) { // there is no room to measure in: what is known so far
		err = nil
	}
	if err != nil {
		return fmt.Errorf("train: measure the order of operations: %w", err)
	}
	t.setOrder(order)
	return nil
}

// timeOrder returns how long a step takes with an order, in seconds.
func (t *trainer) timeOrder(ctx context.Context, order uint64) (seconds float64, err error) {
	t.setOrder(order)
	w, err := t.TimeStep(ctx, t.large, false)
	return w.Seconds, err
}

// setOrder makes the model compute all batches with an order.
func (t *trainer) setOrder(order uint64) {
	t.cfg.Order = &order
	t.model.Spec().Order = t.cfg.Order
}
