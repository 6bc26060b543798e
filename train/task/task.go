// Package task defines what models are trained for. A task is a file that says which loss the
// outputs of a model have against labels, how predictions are counted and scored, and what a
// prediction looks like.
package task

import (
	"context"
	"errors"
	"fmt"

	"gdb/compute/backend"
	"gdb/internal/tables"
	"gdb/kv"
	"gdb/sample"
	"gdb/train/setting"
)

// ErrNothing is returned for a metric over no labeled node, instead of a number.
var ErrNothing = errors.New("no labeled node to compute a metric over")

// Task is what a model is trained for. It may be used by one goroutine.
type Task interface {
	// Outputs returns the width of the last layer.
	Outputs() int
	// Counted returns by what the loss of a batch is a mean: the seeds that have labels, each as
	// often as it counts. So the loss of two batches together is the mean of theirs by this.
	Counted(b *sample.Batch) float64
	// Blank gives all seeds of a batch some label, so that a step on it can be timed.
	Blank(b *sample.Batch)
	// LabelWords returns how many words of 32 bits the label of a seed takes on a device. Labels
	// returns the words of all seeds of a batch, whose labels it may change.
	LabelWords() int
	Labels(b *sample.Batch) []uint32
	// Loss computes the mean loss of a batch, which backend.Backend.Losses reports, and writes its
	// gradient. It may change the labels of the batch.
	Loss(be backend.Backend, o Outputs, b *sample.Batch)
	// Remedy says what to try, besides a lower learning rate, when the loss is not a number.
	Remedy() string
	// TrainScore returns the score of the predictions in training, from the sums over an epoch's
	// steps. For classes it is the micro-averaged F1, whatever the metric.
	TrainScore(metric string, sum *backend.Loss) float64
	// NewTally returns a tally of predictions against labels. scores is for the metrics
	// roc-auc and pr-auc, else nil.
	NewTally(labels *sample.Labels, scores *Scores) Tally
	// Predictions returns how predictions are written as columns of a table. probabilities asks for
	// a column for each class, and integers for classes whose names are integers as such.
	Predictions(probabilities, integers bool) (Predictions, error)
}

// Outputs are what a model computed of a batch: Logits, and where their gradient goes. Labels has
// the words of Task.Labels where a device has them already, else it is a tensor without rows.
type Outputs struct{ Logits, Grad, Labels backend.Tensor }

// Predictions writes predictions to a table.
type Predictions interface {
	// Columns returns the columns, the first of which is called prediction.
	Columns() []tables.Column
	// Write adds the values that a node's outputs make to a row.
	Write(row tables.Writer, outputs []float32)
}

// Tally compares predictions with labels.
type Tally interface {
	// Add counts the outputs of some nodes.
	Add(ctx context.Context, nodes []sample.NodeID, outputs []float32) error
	// Finish computes what needs all predictions.
	Finish(ctx context.Context) error
	// Labeled returns how many nodes with labels were counted.
	Labeled() uint64
	// Metric returns a metric by name.
	Metric(name string) (float64, error)
	// Loss returns the mean of the loss that the model is trained with, without class weights.
	Loss() (float64, error)
}

// New returns the task for labels, with a loss that fits them.
func New(l *kv.LabelsMeta, loss string) Task {
	if KindOf(l, loss) == KindTarget {
		return NewNumbers(loss)
	}
	return &Classes{Names: l.Classes, Multi: l.Kind == KindMulti}
}

// CheckOutput returns an error if an output of a node is NaN or infinite, since it has no meaning.
func CheckOutput(nodes []sample.NodeID, logits []float32) error {
	for i, v := range logits {
		if v-v != 0 {
			return fmt.Errorf("the output of node #%d is %g: %w (lower --lr), or its features, or "+
				"those of its neighbors, are NaN or huge", nodes[i/(len(logits)/len(nodes))], v,
				setting.ErrDiverged)
		}
	}
	return nil
}
