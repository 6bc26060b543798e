// Package task has what models are trained for. A task is a file: which loss the outputs of a model
// have against labels, how predictions are counted and scored, and what a prediction looks like.
package task

import (
	"context"
	"errors"
	"fmt"

	"gdb/compute/backend"
	"gdb/kv"
	"gdb/sample"
)

// ErrNothing is the error of a metric over no labeled node: never a number.
var ErrNothing = errors.New("no labeled node to compute a metric over")

// Task is what a model is trained for. It is for one goroutine.
type Task interface {
	// Outputs is the width of the last layer.
	Outputs() int
	// Labeled is how many seeds of a mini-batch have labels.
	Labeled(b *sample.Batch) int
	// Blank gives all seeds of a mini-batch some label: to time a step on it.
	Blank(b *sample.Batch)
	// Loss computes the mean loss of a mini-batch, which backend.Backend.Losses tells, and writes
	// its gradient to grad. It may change the labels of the batch.
	Loss(be backend.Backend, grad, logits backend.Tensor, b *sample.Batch)
	// Remedy is what to try when the loss is not a number, besides a lower rate.
	Remedy() string
	// TrainScore is what the steps of an epoch, summed up, say of the predictions in training; of
	// classes that is the micro-averaged F1 whatever the metric.
	TrainScore(metric string, sum *backend.Loss) float64
	// NewTally counts predictions against labels; scores is for the metric roc-auc, else nil.
	NewTally(labels *sample.Labels, scores *Scores) Tally
	// Label is the prediction that the outputs of a node make, as the user named it.
	Label(outputs []float32) string
}

// Probable is a task whose predictions have probabilities.
type Probable interface {
	// Probabilities writes the probability of each class to out.
	Probabilities(out, logits []float32)
}

// Tally holds predictions against labels.
type Tally interface {
	// Add takes the outputs of some nodes.
	Add(ctx context.Context, nodes []sample.NodeID, outputs []float32) error
	// Finish computes what needs all predictions.
	Finish(ctx context.Context) error
	// Labeled is how many nodes with labels were seen.
	Labeled() uint64
	// Metric computes a metric by name.
	Metric(name string) (float64, error)
	// Loss is the mean of the loss that the model is trained with, without class weights.
	Loss() (float64, error)
}

// New is the task that labels are for, with a loss that fits them.
func New(l *kv.LabelsMeta, loss string) Task {
	if KindOf(l, loss) == KindTarget {
		return NewNumbers(loss)
	}
	return &Classes{Names: l.Classes, Multi: l.Kind == KindMulti}
}

// CheckOutput fails if the output of a node is NaN or infinite: it means nothing.
func CheckOutput(nodes []sample.NodeID, logits []float32) error {
	for i, v := range logits {
		if v-v != 0 {
			return fmt.Errorf("the output of node #%d is %g: check its features and those of its "+
				"neighbors for NaN and huge values", nodes[i/(len(logits)/len(nodes))], v)
		}
	}
	return nil
}
