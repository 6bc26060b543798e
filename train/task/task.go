// Package task has what models are trained for. A task is a file: which loss the outputs of a model
// have against labels, how predictions are counted and scored, and what a prediction looks like.
package task

import (
	"errors"
	"fmt"

	"gdb/sample"
	"gdb/train/backend"
)

// Names of the metrics.
const (
	Accuracy = "accuracy"
	MicroF1  = "micro-f1"
	MacroF1  = "macro-f1"
	ROCAUC   = "roc-auc"
)

// ErrNothing is the error of a metric over no labeled node: never a number.
var ErrNothing = errors.New("no labeled node to compute a metric over")

// Task is what a model is trained for. It is for one goroutine.
type Task interface {
	// Outputs is the width of the last layer.
	Outputs() int
	// Labeled is how many seeds of a mini-batch have labels.
	Labeled(b *sample.Batch) int
	// Loss computes the mean loss of a mini-batch, which backend.Backend.Losses tells, and writes
	// its gradient to grad.
	Loss(be backend.Backend, grad, logits backend.Tensor, b *sample.Batch)
	// NewTally counts predictions against labels; scores is for the metric roc-auc, else nil.
	NewTally(labels *sample.Labels, scores *Scores) *Tally
	// Label is the prediction that the logits of a node make, as the user named it.
	Label(logits []float32) string
	// Probabilities writes the probability of each class to out.
	Probabilities(out, logits []float32)
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
