package task

import (
	"fmt"
	"slices"
	"strings"
)

// Names of the metrics: of classes, and of numbers.
const (
	Accuracy = "accuracy"
	MicroF1  = "micro-f1"
	MacroF1  = "macro-f1"
	ROCAUC   = "roc-auc"

	RMSE = "rmse" // root of the mean squared error
	MAE  = "mae"  // mean absolute error
	R2   = "r2"   // 1 less the squared errors over those of the mean of the labels
)

// Names of the losses. Those of numbers are of standardized labels.
const (
	LossSoftmax = "softmax"
	LossBCE     = "bce"
	LossMSE     = "mse"
	LossMAE     = "mae"
	LossHuber   = "huber"
)

// Kinds of labels, as a store names them.
const (
	KindClass  = "class"
	KindMulti  = "multi"
	KindTarget = "target"
)

// fits are the losses and metrics of a kind of labels, of each the default first.
var fits = []struct {
	kind, words     string
	losses, metrics []string
}{
	{KindClass, "classes", []string{LossSoftmax}, []string{Accuracy, MicroF1, MacroF1, ROCAUC}},
	{KindMulti, "several classes a node", []string{LossBCE},
		[]string{MicroF1, Accuracy, MacroF1, ROCAUC}},
	{KindTarget, "numbers", []string{LossMSE, LossMAE, LossHuber}, []string{RMSE, MAE, R2}},
}

// Fit replaces auto by the default of a kind of labels, and fails if a loss or a metric is not one
// of that kind.
func Fit(kind string, loss, metric *string) error {
	for _, f := range fits {
		if f.kind != kind {
			continue
		}
		for _, c := range []struct {
			name  string
			value *string
			known []string
		}{{"loss", loss, f.losses}, {"metric", metric, f.metrics}} {
			if *c.value == Auto {
				*c.value = c.known[0]
			}
			if !slices.Contains(c.known, *c.value) {
				return fmt.Errorf("--%s %s is not for labels that are %s: use --%s auto, or %s",
					c.name, *c.value, f.words, c.name, strings.Join(c.known, ", "))
			}
		}
		return nil
	}
	return fmt.Errorf("the labels are of kind %q, which no task is for", kind)
}

// Auto as a loss or a metric is the default of the labels.
const Auto = "auto"

// Losses are the names of all losses, and Metrics those of all metrics.
func Losses() (names []string) {
	for _, f := range fits {
		names = append(names, f.losses...)
	}
	return names
}

// Metrics are the names of all metrics.
func Metrics() []string { return []string{Accuracy, MicroF1, MacroF1, ROCAUC, RMSE, MAE, R2} }

// LowerIsBetter says of which metrics the least value is the best.
func LowerIsBetter(metric string) bool { return metric == RMSE || metric == MAE }

// Better says whether a value of a metric is better than another.
func Better(metric string, v, than float64) bool {
	if LowerIsBetter(metric) {
		return v < than
	}
	return v > than
}
