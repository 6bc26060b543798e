package task

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/internal/tables"
	"gdb/sample"
)

// Numbers is regression: every node has one number. A model is trained on standardized labels, and
// its outputs are scaled back.
type Numbers struct {
	Scale Scale
	loss  backend.ErrorLoss
}

// NewNumbers returns the task for a loss: mse, mae or huber. Until Scale is set labels
// are not scaled.
func NewNumbers(loss string) *Numbers {
	n := &Numbers{Scale: Scale{Deviation: 1}, loss: backend.SquaredError}
	switch loss {
	case LossMAE:
		n.loss = backend.AbsoluteError
	case LossHuber:
		n.loss = backend.HuberError
	}
	return n
}

// Scale says how labels are standardized: the mean is subtracted, and the rest divided by
// the deviation.
type Scale struct {
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
}

// standard returns a standardized label; NaN stays NaN.
func (s Scale) standard(v float32) float32 {
	return float32((float64(v) - s.Mean) / s.Deviation)
}

// number returns the label that an output stands for.
func (s Scale) number(output float32) float64 { return float64(output)*s.Deviation + s.Mean }

// scaleChunk is how many labels are read at a time.
const scaleChunk = 8192

// ScaleOf returns the scale of the labels of some nodes, read in their order. Where the labels do
// not differ the deviation is 1. It takes 32 KiB of memory.
func ScaleOf(ctx context.Context, labels *sample.Labels, nodes []sample.NodeID) (Scale, error) {
	var m moments
	values := make([]float32, min(scaleChunk, len(nodes)))
	for first := 0; first < len(nodes); first += scaleChunk {
		part := nodes[first:min(first+scaleChunk, len(nodes))]
		if err := labels.Values(ctx, part, values); err != nil {
			return Scale{}, fmt.Errorf("read labels: %w", err)
		}
		for i, v := range values[:len(part)] {
			if err := checkNumber(part[i], v); err != nil {
				return Scale{}, err
			}
			if v == v {
				m.add(float64(v))
			}
		}
	}
	s := Scale{Mean: m.mean, Deviation: math.Sqrt(m.squares / float64(max(1, m.count)))}
	if s.Deviation == 0 {
		s.Deviation = 1
	}
	return s, nil
}

// checkNumber returns an error if a label is infinite.
func checkNumber(node sample.NodeID, v float32) error {
	if math.IsInf(float64(v), 0) {
		return fmt.Errorf("the label of node #%d is %g: give a number, or nothing for none", node,
			v)
	}
	return nil
}

// moments accumulates the mean of numbers and the sum of the squared distances to it
// (Welford's method).
type moments struct {
	count         uint64
	mean, squares float64
}

func (m *moments) add(v float64) {
	m.count++
	before := v - m.mean
	m.mean += before / float64(m.count)
	m.squares += before * (v - m.mean)
}

// Outputs returns 1.
func (n *Numbers) Outputs() int { return 1 }

// Counted returns how many seeds have a number.
func (n *Numbers) Counted(b *sample.Batch) (count float64) {
	for _, v := range b.Targets {
		if v == v {
			count++
		}
	}
	return count
}

// Blank gives all seeds the label zero.
func (n *Numbers) Blank(b *sample.Batch) { b.Targets = make([]float32, len(b.Seeds)) }

// LabelWords returns 1.
func (n *Numbers) LabelWords() int { return 1 }

// Labels standardizes the labels of the batch in place.
func (n *Numbers) Labels(b *sample.Batch) []uint32 {
	for i, v := range b.Targets {
		b.Targets[i] = n.Scale.standard(v)
	}
	return mem.View[uint32](mem.BytesOf(b.Targets))
}

// Loss computes the loss and its gradient, of standardized labels.
func (n *Numbers) Loss(be backend.Backend, o Outputs, b *sample.Batch) {
	labels := o.Labels
	if labels.Rows == 0 {
		n.Labels(b)
		labels = be.Host(b.Targets, len(b.Seeds), 1)
	}
	backend.Regression(be, n.loss, o.Grad, o.Logits, labels)
}

// Remedy names the loss in which a few outlying labels weigh less.
func (n *Numbers) Remedy() string {
	return "check the features for NaN and huge values; if a few labels are far from the others, " +
		"--loss huber"
}

// TrainScore returns the metric of the errors in training.
func (n *Numbers) TrainScore(metric string, sum *backend.Loss) float64 {
	rows := float64(max(1, sum.Rows))
	switch metric {
	case MAE:
		return n.Scale.Deviation * sum.Absolute / rows
	case R2: // standardized labels have a mean square of 1
		return 1 - sum.Squared/rows
	}
	return n.Scale.Deviation * math.Sqrt(sum.Squared/rows)
}

// Predictions returns the task itself: a prediction is a 32-bit float.
func (n *Numbers) Predictions(probabilities, _ bool) (Predictions, error) {
	if probabilities {
		return nil, errors.New("labels that are numbers have no probabilities: leave " +
			"--probabilities out")
	}
	return n, nil
}

// Columns returns the column of predictions.
func (n *Numbers) Columns() []tables.Column {
	return []tables.Column{{Name: "prediction", Kind: tables.Float32}}
}

// Write adds the number that an output stands for to a row.
func (n *Numbers) Write(row tables.Writer, outputs []float32) {
	row.Float32(float32(n.Scale.number(outputs[0])))
}

// NewTally returns a tally that sums errors from zero.
func (n *Numbers) NewTally(labels *sample.Labels, _ *Scores) Tally {
	return &NumberTally{scale: n.Scale, loss: n.loss, labels: labels}
}

// NumberTally sums the errors of predicted numbers.
type NumberTally struct {
	scale Scale
	loss  backend.ErrorLoss
	lossSum
	labels            *sample.Labels
	truth             moments
	squared, absolute float64
	values            []float32 // labels of the nodes that Add counts
}

// NumberMetrics holds all metrics of numbers, in the units of the labels.
type NumberMetrics struct {
	RMSE float64 `json:"rmse"`
	MAE  float64 `json:"mae"`
	R2   float64 `json:"r2"`
}

// Add counts the errors of the outputs for some nodes.
func (t *NumberTally) Add(ctx context.Context, nodes []sample.NodeID, outputs []float32) error {
	if err := CheckOutput(nodes, outputs); err != nil {
		return err
	}
	t.values = mem.Resized(t.values, len(nodes))
	if err := t.labels.Values(ctx, nodes, t.values); err != nil {
		return err
	}
	for i, v := range t.values {
		if v != v {
			continue
		}
		if err := checkNumber(nodes[i], v); err != nil {
			return err
		}
		e := t.scale.number(outputs[i]) - float64(v)
		t.squared, t.absolute = t.squared+e*e, t.absolute+math.Abs(e)
		t.truth.add(float64(v))
		t.lossSum.add(errorLoss(t.loss, e/t.scale.Deviation))
	}
	return nil
}

// Finish does nothing, because the metrics are sums.
func (t *NumberTally) Finish(context.Context) error { return nil }

// Labeled returns how many nodes had a number.
func (t *NumberTally) Labeled() uint64 { return t.truth.count }

// Metric returns a metric by name.
func (t *NumberTally) Metric(name string) (float64, error) {
	all, err := t.Metrics()
	switch {
	case err != nil:
		return 0, err
	case name == RMSE:
		return all.RMSE, nil
	case name == MAE:
		return all.MAE, nil
	case name == R2:
		return all.R2, nil
	}
	return 0, fmt.Errorf("unknown metric %q of numbers", name)
}

// Metrics returns all metrics. Where the labels do not differ, r2 is 1 if all predictions are
// right, else 0.
func (t *NumberTally) Metrics() (*NumberMetrics, error) {
	if t.truth.count == 0 {
		return nil, ErrNothing
	}
	n := float64(t.truth.count)
	m := &NumberMetrics{RMSE: math.Sqrt(t.squared / n), MAE: t.absolute / n}
	switch {
	case t.truth.squares > 0:
		m.R2 = 1 - t.squared/t.truth.squares
	case t.squared == 0:
		m.R2 = 1
	}
	return m, nil
}
